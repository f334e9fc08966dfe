"""The edges that a sampler chose, and the NodeFlow made of them: layers, local ids, order and
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.calls import checked
from nodeflow._base.checks import (
    Ints,
    as_array,
    as_ids,
    check_indptr,
    check_length,
    describe,
    first_true,
)
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import IdsLike, SeedsLike
from nodeflow._edges.edges import Edges
from nodeflow.flow import Flow, FlowParts, Layer, NodeFlow
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure


class Choice(Frozen):
    """The edges a sampler chose for its destinations, grouped by destination.

    Args:
        indptr: int64 ``[num_dst + 1]``: where the edges of each destination begin and end.
        positions: int64 ``[E]``: positions in the sampler's edge arrays, such as
            ``Candidates.positions``.
        src: int64 ``[E]``: instead of ``positions``, the parent ids of the sources of edges that
            the parent graph does not have.
        eid: int64 ``[E]``: with ``src``, parent ids of the edges, -1 for an edge without one. None:
            all -1.
        weight: estimator weights, float32 ``[E]``, or a function without arguments that makes them
            when first asked for. None: 1.
        edata: columns with a row per chosen edge, for the frame of the flow.
        nodes: parent ids that the rows of ``ndata`` belong to: distinct sources of chosen edges.
        ndata: columns with a row per node of ``nodes``, for the frame of the source layer; other
            nodes get zeros.

    Attributes have the names of the arguments. ``indptr``, ``positions`` and ``src`` are numpy
    arrays, ``eid`` and ``nodes`` tensors (None where not given); ``edata`` and ``ndata`` are dicts.
    ``weight`` is a cell whose ``get()`` returns the estimator weights, float32 (or float64)
    ``[E]``; None: all are 1.

    ``Candidates.select`` makes a choice of candidates, so ``choose`` of a subclass can read that of
    its base class: ``np.isin(self.candidates(dst).positions, super().choose(dst, step).positions)``
    are the candidates that it chose.

    Raises TypeError for arrays that are not integers, ValueError for arrays that do not fit each
    other.

    >>> choice = Choice(torch.tensor([0, 2, 3]), src=torch.tensor([5, 7, 5]), weight=torch.tensor([0.5, 0.5, 1.0]))
    >>> choice.indptr, choice.src
    (array([0, 2, 3]), array([5, 7, 5]))
    """

    __slots__ = (
        "_fresh",
        "edata",
        "eid",
        "indptr",
        "ndata",
        "needs_weight",
        "nodes",
        "positions",
        "relations",
        "src",
        "weight",
    )
    indptr: Ints
    positions: Ints | None
    src: Ints | None
    eid: Tensor | None
    weight: Lazy[Tensor] | None
    needs_weight: bool | None
    edata: Mapping[str, Tensor]
    nodes: Tensor | None
    ndata: Mapping[str, Tensor]
    relations: Lazy[Tensor] | None
    _fresh: list[Ints] | None

    def __init__(
        self,
        indptr: IdsLike,
        positions: IdsLike | None = None,
        *,
        src: IdsLike | None = None,
        eid: IdsLike | None = None,
        weight: Tensor | Callable[[], Tensor] | Lazy[Tensor] | None = None,
        edata: Mapping[str, Tensor] | None = None,
        nodes: IdsLike | None = None,
        ndata: Mapping[str, Tensor] | None = None,
    ) -> None:
        if (positions is None) == (src is None):
            raise ValueError("a Choice takes either positions or src")
        if eid is not None and src is None:
            raise ValueError(
                "eid goes with src; edges given by positions have the ids of the parent's edges"
            )
        if indptr is None:
            raise TypeError(
                "indptr must say where the edges of each destination begin and end, got None"
            )
        if (nodes is None) != (ndata is None):
            raise ValueError("ndata goes with nodes, the parent ids that its rows belong to")
        arrays = {"indptr": indptr, "positions": positions, "src": src, "eid": eid, "nodes": nodes}
        ints = {name: _int64(value, name) for name, value in arrays.items() if value is not None}
        size = len(ints["src" if positions is None else "positions"])
        check_indptr(ints["indptr"], size)
        if eid is not None:
            check_length(ints["eid"], "eid", size, "chosen edge")
        if weight is None or isinstance(weight, Lazy):
            cell = weight
        elif callable(weight):
            cell = Lazy(lambda: _weight(weight(), size))
        else:
            cell = Lazy.of(_weight(weight, size).clone())
        self._set(
            indptr=ints["indptr"], positions=ints.get("positions"), src=ints.get("src"), _fresh=None
        )
        self._set(relations=None)
        self._set(
            weight=cell, needs_weight=False if cell is None else None, edata=dict(edata or {})
        )
        self._set(
            eid=None if eid is None else torch.from_numpy(ints["eid"]), ndata=dict(ndata or {})
        )
        self._set(nodes=None if nodes is None else torch.from_numpy(ints["nodes"]))

    @classmethod
    def of_kernel(
        cls,
        indptr: Ints,
        positions: Ints | None,
        src: Ints,
        weight: Callable[[], Tensor] | None,
        *,
        needs_weight: bool | None,
        eid: Tensor | None = None,
        edata: Mapping[str, Tensor] | None = None,
        nodes: Tensor | None = None,
        ndata: Mapping[str, Tensor] | None = None,
        relations: Lazy[Tensor] | None = None,
    ) -> Choice:
        """Return a Choice of arrays that a compiled loop made, which are not checked.

        ``src`` are the sources of the edges at ``positions``; None is for edges that the parent
        graph does not have, or whose parent ids are ``eid``. ``needs_weight`` says whether weights
        may vary within a destination (see ``Flow.needs_weight``). None: unknown, so weights are
        compared. ``relations``: the number of the relation of each edge; None: by its parent id.
        """
        self = cls.__new__(cls)
        self._set(
            indptr=indptr,
            positions=positions,
            src=src if positions is None else None,
            _fresh=[] if positions is None else [src],
            eid=eid,
            weight=None if weight is None else Lazy(weight),
            needs_weight=weight is not None and needs_weight,
            edata=edata or {},
            nodes=nodes,
            ndata=ndata or {},
            relations=relations,
        )
        return self

    def __repr__(self) -> str:
        return f"Choice({int(self.indptr[-1])} edges of {len(self.indptr) - 1} destinations)"

    @property
    def trusted(self) -> bool:
        """Whether a compiled loop made the arrays, so that they need no checks."""
        return self._fresh is not None

    def take_sources(self, edges: Edges) -> Ints:
        """Return the parent ids of the chosen edges' sources, in an array that the caller may write
        to.
        """
        try:
            return (self._fresh or []).pop()  # the kernel's own array, given away once
        except IndexError:
            if self.positions is None:
                return np.array(self.src)
            return cast(
                "Ints", edges.form.wide(edges.form.take(edges.arrays.indices, self.positions))
            )


def _int64(value: IdsLike, name: str) -> Ints:
    array = as_array(value, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be one-dimensional integers, got {describe(array)}")
    return np.array(array, np.int64)  # a copy: whoever made the array may write to it later


def _weight(value: Any, size: int) -> Tensor:
    weight = torch.as_tensor(value, dtype=torch.float32)
    if weight.shape != (size,):
        raise ValueError(
            f"weight must have shape ({size},), one per chosen edge, got {tuple(weight.shape)}"
        )
    return weight


Choose = Callable[..., Choice]
"""A function of the destinations (parent ids, int64) and the number of a flow that returns the
chosen edges.

With contexts, its third argument is the context of every destination.
"""


@checked
def assemble(
    graph: Graph,
    edges: Edges,
    seeds: SeedsLike,
    num_flows: int,
    choose: Choose,
    *,
    include_dst: bool = True,
    reuse: bool = False,
    contexts: Ints | None = None,
) -> NodeFlow:
    """Return the NodeFlow that ``choose`` decides on, from the seeds down to the inputs.

    Args:
        graph: the parent graph.
        edges: its edge arrays in the direction of sampling.
        seeds: parent ids of the last layer, repeats allowed.
        num_flows: number of flows.
        choose: called with the destinations of a flow and its number, last flow first. With
            ``reuse``, only with the destinations that no earlier call had.
        include_dst: begin every layer with the nodes of the next one.
        reuse: keep the edges of a node that is a destination again.
        contexts: context of every seed, int64 ``[num_seeds]``. Nodes reached from a seed belong to
            its context; a parent node in two contexts is two nodes. None: all belong to one
            context.

    Raises TypeError or IndexError for seeds that are not ids, ValueError for a Choice that does not
    fit.

    >>> from nodeflow import FullSampler, Graph
    >>> sampler = FullSampler(Graph.from_edges([0, 1, 2], [2, 2, 0]), 1)
    >>> def every(dst, number):
    ...     return sampler.candidates(dst).select(sampler.candidates(dst).eid >= 0)
    >>> assemble(sampler.graph, sampler.reader.edges, [2], 2, every)
    NodeFlow(3 -> 3 -> 1 nodes, 3 + 2 edges)
    """
    keys = as_ids(seeds, "seeds", graph.num_nodes).copy()
    parts = _Parts(graph, edges, num_flows, choose, contexts is not None)
    number = 1
    if contexts is not None:
        keys += graph.num_nodes * contexts
        number = int(contexts.max(initial=0)) + 1
    form = edges.form
    with form.numbering(graph.num_nodes * number) as numbering:
        index = form.tensor(numbering.extend(form.array(keys)))
        layers, flows = (
            parts.reused(numbering) if reuse else parts.resampled(numbering, include_dst)
        )
    return NodeFlow._trusted(layers, flows, parent=graph, seed_index=index)


class _Parts:
    """Makes the layers and flows of a NodeFlow.

    With contexts, a node is numbered by the key ``context * num_nodes + parent id``; without, by
    its parent id, which is the same for context 0.
    """

    def __init__(
        self, graph: Graph, edges: Edges, num_flows: int, choose: Choose, contexts: bool
    ) -> None:
        self.graph = graph
        self.edges = edges
        self.num_flows = num_flows
        self.choose = choose
        self.contexts = contexts
        self.form = edges.form

    def resampled(self, numbering: Any, include_dst: bool) -> tuple[list[Layer], list[Flow]]:
        """Every flow draws afresh."""
        # with ``include_dst`` a layer holds all nodes so far, so one numbering serves all; else
        # drawn nodes, sorted
        keys = numbering.nodes
        layers = [self.layer(keys)]
        flows = []
        for i in reversed(range(self.num_flows)):
            choice, src = self.chosen(keys, i)
            if include_dst:
                local = numbering.extend(src)
                keys = numbering.nodes
            else:
                keys, local = self.form.distinct(src)
            layers.append(self.layer(keys, choice))
            flows.append(self.flow(choice, local, layers[-1], layers[-2], i, prefix=include_dst))
        return layers[::-1], flows[::-1]

    def reused(self, numbering: Any) -> tuple[list[Layer], list[Flow]]:
        """One structure over all nodes reached; each layer and flow is a prefix of it."""
        choices: list[Choice] = []
        local = [numbering.nodes[:0]]
        num_nodes = [0, len(numbering.nodes)]
        num_edges = [0]
        for i in reversed(range(self.num_flows)):
            # the nodes before these drew in a flow nearer to the seeds
            choice, src = self.chosen(numbering.nodes[num_nodes[-2] :], i)
            if choice.edata or choice.nodes is not None:
                raise ValueError(
                    "with reuse=True flows are prefixes of one structure: no columns of a Choice"
                )
            choices.append(choice)
            local.append(numbering.extend(src))
            num_nodes.append(len(numbering.nodes))
            num_edges.append(num_edges[-1] + len(src))
        starts = (
            choice.indptr[1:] + start for choice, start in zip(choices, num_edges, strict=False)
        )
        indptr = self.form.joined([self.form.array(np.zeros(1, np.int64)), *starts])
        arrays = self.form.tensor(indptr), self.form.tensor(self.form.joined(local))
        whole = self.layer(numbering.nodes)
        context = whole.context
        needs = {choice.needs_weight for choice in choices}
        weighted = any(choice.weight is not None for choice in choices)
        parts: FlowParts = {
            "parent_eid": Lazy(
                lambda: torch.cat([parent_eid(self.edges, choice).get() for choice in choices])
            ),
            "weight": Lazy(lambda: torch.cat([self.weights_of(choice) for choice in choices]))
            if weighted
            else None,
            "needs_weight": True if True in needs else None if None in needs else False,
        }
        if all(choice.relations is not None for choice in choices):
            numbers = [choice.relations for choice in choices if choice.relations is not None]
            parts["relations"] = Lazy(lambda: torch.cat([each.get() for each in numbers]))
        layers = [
            Layer._trusted(
                size, whole.parent_nid[:size], context=None if context is None else context[:size]
            )
            for size in reversed(num_nodes[1:])
        ]
        return layers, [
            first_rows(num_edges[self.num_flows - i], *arrays, layers[i], layers[i + 1], i, parts)
            for i in range(self.num_flows)
        ]

    def weights_of(self, choice: Choice) -> Tensor:
        """The estimator weights of a Choice, also where all are 1."""
        if choice.weight is None:
            return self.form.placed(np.ones(int(choice.indptr[-1]), np.float32))
        return choice.weight.get()

    def chosen(self, keys: Ints, flow: int) -> tuple[Choice, Ints]:
        """Ask for edges of the nodes ``keys``; returns the Choice and the keys of the sources."""
        dst, context = (
            (keys % self.graph.num_nodes, keys // self.graph.num_nodes)
            if self.contexts
            else (keys, None)
        )
        context_of_dst = () if context is None else (self.form.tensor(context),)
        choice = self.choose(self.form.tensor(dst), flow, *context_of_dst)
        check_choice(self.graph, self.edges, choice, dst, flow)
        src = choice.take_sources(self.edges)
        if context is not None:
            self.form.add_to_rows(choice.indptr, src, context * self.graph.num_nodes)
        return choice, src

    def layer(self, keys: Ints, choice: Choice | None = None) -> Layer:
        """The layer of the nodes ``keys``, with the node columns of the Choice that reached
        them.
        """
        if not self.contexts:
            layer = Layer._trusted(len(keys), self.form.tensor(keys))
        else:
            n = self.graph.num_nodes
            tensor = self.form.tensor
            layer = Layer._trusted(len(keys), tensor(keys % n), context=tensor(keys // n))
        if choice is not None and choice.nodes is not None:
            layer.data.update(_spread(choice.ndata, layer.rows_of(choice.nodes), len(keys)))
        return layer

    def flow(
        self, choice: Choice, local: Ints, src: Layer, dst: Layer, i: int, *, prefix: bool
    ) -> Flow:
        """The flow of the chosen edges, whose sources have the local ids ``local``."""
        structure = Structure._trusted(
            self.form.tensor(choice.indptr), self.form.tensor(local), src.num_nodes
        )
        parts: FlowParts = {
            "parent_eid": parent_eid(self.edges, choice),
            "data": Frame(len(local), choice.edata),
        }
        parts |= {"weight": choice.weight, "needs_weight": choice.needs_weight, "prefix": prefix}
        parts["relations"] = choice.relations
        return Flow._trusted(structure, src, dst, (i, i + 1), **parts)


def _spread(columns: Mapping[str, Tensor], rows: Tensor, size: int) -> dict[str, Tensor]:
    """Columns of ``size`` rows with the given ones at ``rows`` and zeros elsewhere,
    differentiable.
    """
    if len(rows) and int(rows.min()) < 0:
        raise ValueError("nodes of the Choice must be sources of chosen edges, each named once")
    return {
        name: values.new_zeros((size, *values.shape[1:])).index_put((rows,), values)
        for name, values in columns.items()
    }


def first_rows(
    size: int, indptr: Tensor, indices: Tensor, src: Layer, dst: Layer, i: int, parts: FlowParts
) -> Flow:
    """Return flow i, of the first ``size`` edges of a structure, which lead to ``dst``; ``parts``
    are those of all.
    """

    def first(cell: Lazy[Tensor] | None) -> Lazy[Tensor] | None:
        return None if cell is None else Lazy(lambda: cell.get()[:size])

    own: FlowParts = {
        **parts,
        "parent_eid": first(parts["parent_eid"]),
        "weight": first(parts["weight"]),
    }
    own["relations"] = first(parts.get("relations"))
    own["prefix"] = True
    structure = Structure._trusted(indptr[: dst.num_nodes + 1], indices[:size], src.num_nodes)
    return Flow._trusted(structure, src, dst, (i, i + 1), **own)


def check_choice(graph: Graph, edges: Edges, choice: object, dst: Ints, flow: int) -> None:
    """Raise an error unless ``choice`` is a Choice whose edges exist and belong to the destinations
    of a flow.
    """
    if not isinstance(choice, Choice):
        raise TypeError(f"choose must return a Choice, got {type(choice).__name__}")
    if len(choice.indptr) != len(dst) + 1:
        raise ValueError(
            f"the Choice for flow {flow} is for {len(choice.indptr) - 1} destinations, not for "
            f"{len(dst)}"
        )
    if choice.trusted:
        return
    if choice.positions is None:
        as_ids(choice.src, "src of the Choice", graph.num_nodes)
        if choice.eid is not None:
            as_ids(choice.eid, "eid of the Choice", graph.num_edges, "edge", lower=-1)
        return
    positions = as_ids(
        choice.positions, "positions of the Choice", len(edges.indices), "edge position"
    )
    first, end = (np.repeat(ends, np.diff(choice.indptr)) for ends in edges.spans_of(dst))
    if (i := first_true((positions < first) | (positions >= end))) is not None:
        raise ValueError(
            f"positions[{i}] of the Choice is {positions[i]}, but the edges of its destination "
            f"{np.repeat(dst, np.diff(choice.indptr))[i]} lie at {first[i]} to {end[i] - 1}; "
            "positions count in the sampler's edge arrays, not edge ids (see Candidates.select)"
        )


def parent_eid(edges: Edges, choice: Choice) -> Lazy[Tensor]:
    """Return the parent ids of the chosen edges, -1 for an edge without one."""
    positions = choice.positions
    eid = choice.eid
    if positions is not None:
        return Lazy(lambda: edges.parent_eid(positions))
    size = int(choice.indptr[-1])
    return Lazy(lambda: torch.from_numpy(np.full(size, -1))) if eid is None else Lazy.of(eid)
