"""The edges that a sampler chose, and the NodeFlow made of them: layers, local ids, order and
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import (
    Ints,
    as_array,
    as_ids,
    check_indptr,
    check_length,
    describe,
    first_true,
)
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import IdsLike
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.forms import Form
from nodeflow.flow import Flow, FlowParts, Layer
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure

Columns: TypeAlias = "Mapping[str, Tensor]"
"""Columns of a frame, by name."""


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
    edata: Columns
    nodes: Tensor | None
    ndata: Columns
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
        edata: Columns | None = None,
        nodes: IdsLike | None = None,
        ndata: Columns | None = None,
    ) -> None:
        if (positions is None) == (src is None):
            raise ValueError("a Choice takes either positions or src")
        if eid is not None and src is None:
            raise ValueError(
                "eid goes with src; edges given by positions have the ids of the parent's edges"
            )
        if (nodes is None) != (ndata is None):
            raise ValueError("ndata goes with nodes, the parent ids that its rows belong to")
        arrays = {"positions": positions, "src": src, "eid": eid, "nodes": nodes}
        ints = {name: _int64(value, name) for name, value in arrays.items() if value is not None}
        tensors = {name: torch.from_numpy(ints[name]) for name in ("eid", "nodes") if name in ints}
        size = len(ints["src" if positions is None else "positions"])
        ends = _int64(indptr, "indptr")
        check_indptr(ends, size)
        if eid is not None:
            check_length(ints["eid"], "eid", size, "chosen edge")
        if weight is None or isinstance(weight, Lazy):
            cell = weight
        elif callable(weight):
            cell = Lazy(lambda: _weight(weight(), size))
        else:
            cell = Lazy.of(_weight(weight, size).clone())
        self._set(
            indptr=ends,
            positions=ints.get("positions"),
            src=ints.get("src"),
            _fresh=None,
            eid=tensors.get("eid"),
            weight=cell,
            needs_weight=None if cell else False,
            edata=dict(edata or {}),
            nodes=tensors.get("nodes"),
            ndata=dict(ndata or {}),
            relations=None,
        )

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
        edata: Columns | None = None,
        nodes: Tensor | None = None,
        ndata: Columns | None = None,
        relations: Lazy[Tensor] | None = None,
    ) -> Choice:
        """Return a Choice of arrays that a compiled loop made, which are not checked.

        ``src`` are the sources of the edges at ``positions``; None is for edges that the parent
        graph does not have, or whose parent ids are ``eid``. ``needs_weight`` says whether weights
        may vary within a destination (see ``Flow.needs_weight``). None: unknown, so weights are
        compared. ``relations``: the number of the relation of each edge; None: by its parent id.
        """
        self = cls.__new__(cls)
        # the array of sources is given away once, and looked up again after that
        fresh = [src]
        kept_src = None
        if positions is None:
            fresh = []
            kept_src = src
        # a small batch spends most of its time in calls: one ``_set``, and no checks
        self._set(
            indptr=indptr,
            positions=positions,
            src=kept_src,
            _fresh=fresh,
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
    # a copy: whoever made the array may write to it later
    return np.array(array, np.int64)


def _weight(value: Any, size: int) -> Tensor:
    weight = torch.as_tensor(value, dtype=torch.float32)
    if weight.shape != (size,):
        raise ValueError(
            f"weight must have shape ({size},), one per chosen edge, got {tuple(weight.shape)}"
        )
    return weight


NodesOf: TypeAlias = tuple[Tensor, Tensor | None]
"""The parent ids of the nodes of a layer, and their contexts."""


def flows_of(
    edges: Edges,
    choices: Sequence[Choice],
    sources: Sequence[Ints],
    nodes: Sequence[NodesOf],
    *,
    prefix: bool,
) -> tuple[list[Layer], list[Flow]]:
    """Return the layers of ``nodes``, and flows of chosen edges between them, the last ones first.

    ``sources`` are the rows of the edges' sources in their layers.
    """
    layers = [Layer._trusted(len(ids), ids, context=context) for ids, context in nodes]
    form = edges.form
    flows = []
    for k, choice in enumerate(choices):
        i = len(choices) - 1 - k
        indices = form.tensor(sources[k])
        src = layers[k + 1]
        if choice.nodes is not None:
            rows = src.rows_of(choice.nodes)
            src.data.update(_spread(choice.ndata, rows, src.num_nodes))
        indptr = form.tensor(choice.indptr)
        structure = Structure._trusted(indptr, indices, src.num_nodes)
        flow = Flow._trusted(
            structure,
            src,
            layers[k],
            (i, i + 1),
            parent_eid=parent_eid(edges, choice),
            data=Frame(len(indices), choice.edata),
            weight=choice.weight,
            needs_weight=choice.needs_weight,
            prefix=prefix,
            relations=choice.relations,
        )
        flows.append(flow)
    return layers, flows


def prefixes(
    edges: Edges, choices: Sequence[Choice], sources: Sequence[Ints], nodes: Sequence[NodesOf]
) -> tuple[list[Layer], list[Flow]]:
    """Return layers and flows that are the first rows of one structure, the last ones first.

    Choice k has the edges of those ``nodes`` that layer k has beyond layer k - 1.
    """
    if any(choice.edata or choice.nodes is not None for choice in choices):
        raise ValueError(
            "with reuse=True flows are prefixes of one structure: no columns of a Choice"
        )
    form = edges.form
    # how many edges the flows nearer to the seeds have, up to each
    num_edges = list(accumulate(map(len, sources)))
    # every flow added the edges of the nodes that were new in its layer, so edges stand in the
    # order of the nodes of the last layer, and the edges of flow i are the first of all
    indptrs = [form.array(np.zeros(1, np.int64))]
    for choice, begin in zip(choices, [0, *num_edges], strict=False):
        indptrs.append(choice.indptr[1:] + begin)
    indptr = form.tensor(form.joined(indptrs))
    indices = form.tensor(form.joined(sources))
    parts = _joined_parts(edges, choices)
    last_nodes, contexts = nodes[-1]
    layers = []
    for size in (len(ids) for ids, _ in nodes):
        if contexts is None:
            context = None
        else:
            context = contexts[:size]
        layers.append(Layer._trusted(size, last_nodes[:size], context=context))
    flows = []
    for k, size in enumerate(num_edges):
        i = len(choices) - 1 - k
        flows.append(first_rows(size, indptr, indices, layers[k + 1], layers[k], i, parts))
    return layers, flows


def _joined_parts(edges: Edges, choices: Sequence[Choice]) -> FlowParts:
    """The parts of a flow of all edges that were chosen."""
    ids = [parent_eid(edges, choice) for choice in choices]
    parts: FlowParts = {
        "parent_eid": _joined_cell(ids),
        "weight": None,
        "needs_weight": needs_weight(choice.needs_weight for choice in choices),
    }
    if any(choice.weight is not None for choice in choices):
        parts["weight"] = _joined_cell([_weights_of(choice, edges.form) for choice in choices])
    relations = [choice.relations for choice in choices if choice.relations is not None]
    if len(relations) == len(choices):
        parts["relations"] = _joined_cell(relations)
    return parts


def _weights_of(choice: Choice, form: Form) -> Lazy[Tensor]:
    """The estimator weights of a Choice, also where all are 1."""
    num_edges = choice.indptr[-1]

    def ones() -> Tensor:
        return form.placed(np.ones(int(num_edges), np.float32))  # waits for a device

    return choice.weight or Lazy(ones)


def _joined_cell(cells: Sequence[Lazy[Tensor]]) -> Lazy[Tensor]:
    return Lazy(lambda: torch.cat([cell.get() for cell in cells]))


def needs_weight(answers: Iterable[bool | None]) -> bool | None:
    """Return whether edges of several choices need weights: None, unless one does or none does."""
    # one flow that needs weights decides for all; one that does not know leaves all unknown
    distinct = set(answers)
    return True in distinct or (None if None in distinct else False)


def _spread(columns: Columns, rows: Tensor, size: int) -> dict[str, Tensor]:
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

    structure = Structure._trusted(indptr[: dst.num_nodes + 1], indices[:size], src.num_nodes)
    return Flow._trusted(
        structure,
        src,
        dst,
        (i, i + 1),
        parent_eid=first(parts["parent_eid"]),
        weight=first(parts["weight"]),
        needs_weight=parts["needs_weight"],
        relations=first(parts.get("relations")),
        prefix=True,
    )


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
            f"positions[{i}] of the Choice is {positions[i]}, but the edges of its destination lie "
            f"at {first[i]} to {end[i] - 1} in the sampler's edge arrays (see Candidates.select)"
        )


def parent_eid(edges: Edges, choice: Choice) -> Lazy[Tensor]:
    """Return the parent ids of the chosen edges, -1 for an edge without one."""
    positions = choice.positions
    if positions is not None:
        return Lazy(lambda: edges.parent_eid(positions))
    if choice.eid is not None:
        return Lazy.of(choice.eid)
    size = int(choice.indptr[-1])
    return Lazy(lambda: torch.from_numpy(np.full(size, -1)))
