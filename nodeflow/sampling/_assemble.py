"""From chosen edges to a NodeFlow: layers, local ids, order and weights. Nothing here is random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids, first_true
from nodeflow._base.frozen import Lazy
from nodeflow._base.types import SeedsLike
from nodeflow._edges.edges import Edges
from nodeflow._edges.numbering import Numbering
from nodeflow.flow import Flow, FlowParts, Layer, NodeFlow
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure
from nodeflow.sampling._choice import Choice

Choose = Callable[..., Choice]
"""A function of the destinations (parent ids, int64) and the number of a flow that returns the chosen edges.

With contexts, its third argument is the context of every destination.
"""


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
    """Build the NodeFlow that ``choose`` decides on, from the seeds down to the inputs.

    Args:
        graph: the parent graph.
        edges: its edge arrays in the direction of sampling.
        seeds: parent ids of the last layer, repeats allowed.
        num_flows: number of flows.
        choose: called with the destinations of a flow and its number, last flow first. With ``reuse``, only with the
            destinations that no earlier call had.
        include_dst: begin every layer with the nodes of the next one.
        reuse: keep the edges of a node that is a destination again.
        contexts: context of every seed, int64 ``[num_seeds]``. Nodes reached from a seed belong to its context; a
            parent node in two contexts is two nodes. None: all belong to one context.

    Raises TypeError or IndexError for seeds that are not ids, ValueError for a Choice that does not fit.

    >>> from nodeflow import Graph
    >>> from nodeflow.sampling.base import edges_along
    >>> graph = Graph.from_edges([0, 1, 2], [2, 2, 0])
    >>> edges = edges_along(graph, "in")
    >>> def first(dst, number):
    ...     dst = np.asarray(dst)
    ...     degrees = np.minimum(np.diff(edges.indptr)[dst], 1)
    ...     return Choice(np.concatenate([[0], degrees.cumsum()]), positions=edges.indptr[dst][degrees > 0])
    >>> [layer.parent_nid.tolist() for layer in assemble(graph, edges, [2], 2, first).layers]
    [[2, 0], [2, 0], [2]]
    """
    keys = as_ids(seeds, "seeds", graph.num_nodes).copy()
    parts = _Parts(graph, edges, num_flows, choose, contexts is not None)
    number = 1
    if contexts is not None:
        keys += graph.num_nodes * contexts
        number = int(contexts.max(initial=0)) + 1
    with Numbering(graph.num_nodes * number) as numbering:
        index = torch.from_numpy(numbering.extend(keys))
        layers, flows = parts.reused(numbering) if reuse else parts.resampled(numbering, include_dst)
    return NodeFlow._trusted(layers, flows, parent=graph, seed_index=index)


class _Hop(NamedTuple):
    """The nodes that drew in one flow of a batch whose nodes draw once."""

    choice: Choice  # the edges that they drew
    ends: Ints  # where the edges of each end in the structure of all hops, ``[num_dst]``
    local: Ints  # local ids of the sources, ``[E]``
    num_edges: int  # of this hop and of those nearer to the seeds


class _Parts:
    """Makes the layers and flows of a NodeFlow.

    With contexts, a node is numbered by the key ``context * num_nodes + parent id``; without, by its parent id, which
    is the same for context 0.
    """

    def __init__(self, graph: Graph, edges: Edges, num_flows: int, choose: Choose, contexts: bool) -> None:
        self.graph, self.edges, self.num_flows, self.choose, self.contexts = graph, edges, num_flows, choose, contexts

    def resampled(self, numbering: Numbering, include_dst: bool) -> tuple[list[Layer], list[Flow]]:
        """Every flow draws afresh.

        With ``include_dst`` a layer holds all nodes numbered so far, so one numbering serves all layers; without, the
        drawn neighbours only, sorted.
        """
        keys = numbering.nodes
        layers, flows = [self.layer(keys)], []
        for i in reversed(range(self.num_flows)):
            choice, src = self.chosen(keys, i)
            if include_dst:
                local = numbering.extend(src)
                keys = numbering.nodes
            else:
                with Numbering(int(src.max(initial=0)) + 1) as drawn:
                    local = drawn.extend(src)
                    keys, rank = np.unique(drawn.nodes, return_inverse=True)
                local = rank[local]
            layers.append(self.layer(keys, choice))
            flows.append(self.flow(choice, local, layers[-1], layers[-2], i, prefix=include_dst))
        return layers[::-1], flows[::-1]

    def reused(self, numbering: Numbering) -> tuple[list[Layer], list[Flow]]:
        """One structure over all nodes reached; each layer and flow is a prefix of it."""
        hops: list[_Hop] = []
        num_nodes, num_edges = [len(numbering.nodes)], 0
        for i in reversed(range(self.num_flows)):
            # the nodes before these drew in a flow nearer to the seeds
            choice, src = self.chosen(numbering.nodes[num_nodes[-2] if hops else 0 :], i)
            if choice.edata or choice.nodes is not None:
                raise ValueError("with reuse=True flows are prefixes of one structure: no columns of a Choice")
            hops.append(_Hop(choice, choice.indptr[1:] + num_edges, numbering.extend(src), num_edges + len(src)))
            num_edges = hops[-1].num_edges
            num_nodes.append(len(numbering.nodes))
        choices = [hop.choice for hop in hops]
        indptr = torch.from_numpy(np.concatenate([np.zeros(1, np.int64), *(hop.ends for hop in hops)]))
        indices = torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *(hop.local for hop in hops)]))
        whole = self.layer(numbering.nodes)
        context = whole.context
        eid = Lazy(lambda: torch.cat([parent_eid(self.edges, choice).get() for choice in choices]))
        weighted = any(choice.weight is not None for choice in choices)
        weight = Lazy(lambda: torch.cat([_weight(choice) for choice in choices])) if weighted else None
        said = {choice.needs_weight for choice in choices}
        needed = True if True in said else None if None in said else False
        layers = [
            Layer._trusted(size, whole.parent_nid[:size], context=None if context is None else context[:size])
            for size in reversed(num_nodes)
        ]
        flows = []
        for i, hop in enumerate(reversed(hops)):
            size = hop.num_edges
            structure = Structure(indptr[: layers[i + 1].num_nodes + 1], indices[:size], layers[i].num_nodes)
            parts: FlowParts = {"parent_eid": prefix(eid, size), "weight": prefix(weight, size)}
            parts |= {"needs_weight": needed, "prefix": True}
            flows.append(Flow._trusted(structure, layers[i], layers[i + 1], (i, i + 1), **parts))
        return layers, flows

    def chosen(self, keys: Ints, flow: int) -> tuple[Choice, Ints]:
        """Ask for edges of the nodes ``keys``; returns the Choice and the keys of the sources."""
        dst, context = (keys % self.graph.num_nodes, keys // self.graph.num_nodes) if self.contexts else (keys, None)
        context_of_dst = () if context is None else (torch.from_numpy(context),)
        choice = self.choose(torch.from_numpy(dst), flow, *context_of_dst)
        check_choice(self.graph, self.edges, choice, dst, flow)
        src = choice.take_sources(self.edges)
        if context is not None:
            src += np.repeat(context * self.graph.num_nodes, np.diff(choice.indptr))
        return choice, src

    def layer(self, keys: Ints, choice: Choice | None = None) -> Layer:
        """The layer of the nodes ``keys``, with the node columns of the Choice that reached them."""
        if not self.contexts:
            layer = Layer._trusted(len(keys), torch.from_numpy(keys))
        else:
            n = self.graph.num_nodes
            layer = Layer._trusted(len(keys), torch.from_numpy(keys % n), context=torch.from_numpy(keys // n))
        if choice is not None and choice.nodes is not None:
            layer.data.update(_spread(choice.ndata, layer.rows_of(choice.nodes), len(keys)))
        return layer

    def flow(self, choice: Choice, local: Ints, src: Layer, dst: Layer, i: int, *, prefix: bool) -> Flow:
        """The flow of the chosen edges, whose sources have the local ids ``local``."""
        structure = Structure(torch.from_numpy(choice.indptr), torch.from_numpy(local), src.num_nodes)
        parts: FlowParts = {"parent_eid": parent_eid(self.edges, choice), "data": Frame(len(local), choice.edata)}
        parts |= {"weight": choice.weight, "needs_weight": choice.needs_weight, "prefix": prefix}
        return Flow._trusted(structure, src, dst, (i, i + 1), **parts)


def _spread(columns: Mapping[str, Tensor], rows: Tensor, size: int) -> dict[str, Tensor]:
    """Columns of ``size`` rows with the given ones at ``rows`` and zeros elsewhere, differentiable."""
    if len(rows) and int(rows.min()) < 0:
        raise ValueError("nodes of the Choice must be sources of chosen edges, each named once")
    return {
        name: values.new_zeros((size, *values.shape[1:])).index_put((rows,), values) for name, values in columns.items()
    }


def prefix(cell: Lazy[Tensor] | None, size: int) -> Lazy[Tensor] | None:
    """Return the first ``size`` entries of a tensor, computed when first asked for; None for None."""
    return None if cell is None else Lazy(lambda: cell.get()[:size])


def _weight(choice: Choice) -> Tensor:
    """The estimator weights of a Choice, also where all are 1."""
    if choice.weight is None:
        return torch.ones(int(choice.indptr[-1]), dtype=torch.float32, device="cpu")
    return choice.weight.get()


def check_choice(graph: Graph, edges: Edges, choice: object, dst: Ints, flow: int) -> None:
    """Raise an error unless ``choice`` is a Choice whose edges exist and belong to the destinations of a flow."""
    if not isinstance(choice, Choice):
        raise TypeError(f"choose must return a Choice, got {type(choice).__name__}")
    if len(choice.indptr) != len(dst) + 1:
        raise ValueError(f"the Choice for flow {flow} is for {len(choice.indptr) - 1} destinations, not for {len(dst)}")
    if choice.trusted:
        return
    if choice.positions is None:
        as_ids(choice.src, "src of the Choice", graph.num_nodes)
        if choice.eid is not None:
            as_ids(choice.eid, "eid of the Choice", graph.num_edges, "edge", lower=-1)
        return
    positions = as_ids(choice.positions, "positions of the Choice", len(edges.indices), "edge position")
    row = np.repeat(edges.rows_of(dst)[:: edges.rows_per_node], np.diff(choice.indptr))
    first, end = edges.indptr[row], edges.indptr[row + edges.rows_per_node]
    if (i := first_true((positions < first) | (positions >= end))) is not None:
        raise ValueError(
            f"positions[{i}] of the Choice is {positions[i]}, but the edges of its destination "
            f"{np.repeat(dst, np.diff(choice.indptr))[i]} lie at {first[i]} to {end[i] - 1}; positions count in the "
            "sampler's edge arrays, not edge ids (see Candidates.select)"
        )


def parent_eid(edges: Edges, choice: Choice) -> Lazy[Tensor]:
    """Return the parent ids of the chosen edges, -1 for an edge without one."""
    positions, eid = choice.positions, choice.eid
    if positions is not None:
        return Lazy(lambda: edges.parent_eid(positions))
    size = int(choice.indptr[-1])
    return Lazy(lambda: torch.from_numpy(np.full(size, -1))) if eid is None else Lazy.of(eid)
