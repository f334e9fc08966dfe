"""From chosen edges to a NodeFlow: layers, local ids, order and weights. Nothing here is random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._check import Ints, as_ids
from nodeflow._frozen import Lazy
from nodeflow.flow import Flow, Layer
from nodeflow.graph import Graph
from nodeflow.node_flow import NodeFlow
from nodeflow.sampling.choice import Choice, Edges
from nodeflow.sampling.numbering import Numbering
from nodeflow.structure import Structure

Choose = Callable[[Tensor, int], Choice]
"""Chooses edges for the destinations (parent ids, int64) of a flow, given by number."""


def edges_along(graph: Graph, direction: str) -> Edges:
    """Return the edge arrays of ``graph`` along which neighbours are looked up: "in" or "out", else ValueError."""
    if direction not in ("in", "out"):
        raise ValueError(f"direction must be 'in' or 'out', got {direction!r}")
    return Edges(*(graph.csc() if direction == "in" else graph.csr()))


def assemble(
    graph: Graph,
    edges: Edges,
    seeds: Any,
    num_flows: int,
    choose: Choose,
    *,
    include_dst: bool = True,
    reuse: bool = False,
) -> NodeFlow:
    """Build the NodeFlow that ``choose`` decides on, from the seeds down to the inputs.

    Args:
        graph: the parent graph.
        edges: its edge arrays in the direction of sampling.
        seeds: parent ids of the last layer, repeats allowed.
        num_flows: number of flows.
        choose: called with the destinations of a flow and its number, last flow first. With ``reuse`` it sees only the
            destinations that no flow before had.
        include_dst: begin every layer with the nodes of the next one.
        reuse: keep the edges of a node that is a destination again.

    Raises TypeError or IndexError for what are no seeds, and ValueError for a Choice that does not fit.
    """
    asked = as_ids(seeds, "seeds", graph.num_nodes)
    with Numbering(graph.num_nodes) as numbering:
        index = torch.from_numpy(numbering.extend(asked.copy()))
        if reuse:
            layers, flows = _reused(graph, edges, numbering, num_flows, choose)
        elif include_dst:
            layers, flows = _resampled(graph, edges, numbering, num_flows, choose)
        else:
            layers, flows = _neighbors_only(graph, edges, numbering.nodes, num_flows, choose)
    return NodeFlow(layers, flows, parent=graph, seed_index=index)


Parts = tuple[list[Layer], list[Flow]]


def _resampled(graph: Graph, edges: Edges, numbering: Numbering, num_flows: int, choose: Choose) -> Parts:
    """Every flow draws afresh; a layer is what was numbered so far, so one numbering serves all of them."""
    layers, flows = [_layer(numbering.nodes)], []
    for i in reversed(range(num_flows)):
        choice = _chosen(graph, edges, choose, numbering.nodes, i)
        local = numbering.extend(choice.take_sources(edges))
        layers.append(_layer(numbering.nodes))
        flows.append(_flow(edges, choice, local, layers[-1], layers[-2], i, prefix=True))
    return layers[::-1], flows[::-1]


def _neighbors_only(graph: Graph, edges: Edges, seeds: Ints, num_flows: int, choose: Choose) -> Parts:
    """Every flow draws afresh; a layer holds the drawn neighbours only, sorted."""
    layers, flows, dst = [_layer(seeds)], [], seeds
    for i in reversed(range(num_flows)):
        choice = _chosen(graph, edges, choose, dst, i)
        with Numbering(graph.num_nodes) as numbering:
            local = numbering.extend(choice.take_sources(edges))
            dst, rank = np.unique(numbering.nodes, return_inverse=True)
        layers.append(_layer(dst))
        flows.append(_flow(edges, choice, rank[local], layers[-1], layers[-2], i, prefix=False))
    return layers[::-1], flows[::-1]


def _reused(graph: Graph, edges: Edges, numbering: Numbering, num_flows: int, choose: Choose) -> Parts:
    """One structure over all nodes reached; each layer and flow is a prefix of it."""
    choices: list[Choice] = []
    locals_, num_nodes, num_edges, done = [np.zeros(0, np.int64)], [len(numbering.nodes)], [0], 0
    for i in reversed(range(num_flows)):
        choice = _chosen(graph, edges, choose, numbering.nodes[done:], i)
        done = len(numbering.nodes)
        locals_.append(numbering.extend(choice.take_sources(edges)))
        choices.append(choice)
        num_nodes.append(len(numbering.nodes))
        num_edges.append(num_edges[-1] + len(locals_[-1]))
    starts = [choice.indptr[1:] + start for choice, start in zip(choices, num_edges, strict=False)]
    indptr = torch.from_numpy(np.concatenate([np.zeros(1, np.int64), *starts]))
    indices = torch.from_numpy(np.concatenate(locals_))
    ids = torch.from_numpy(numbering.nodes)
    eid = Lazy(lambda: torch.cat([_parent_eid(edges, choice).get() for choice in choices]))
    weight = None if all(choice.weight is None for choice in choices) else _joined_weight(choices)
    layers = [Layer(size, ids[:size]) for size in reversed(num_nodes)]
    flows = []
    for i in range(num_flows):
        size, ends = num_edges[num_flows - i], (layers[i], layers[i + 1], (i, i + 1))
        structure = Structure(indptr[: layers[i + 1].num_nodes + 1], indices[:size], layers[i].num_nodes)
        scale = None if weight is None else _prefix(weight, size)
        flows.append(Flow(structure, *ends, parent_eid=_prefix(eid, size), weight=scale, prefix=True))
    return layers, flows


def _layer(ids: Ints) -> Layer:
    return Layer(len(ids), torch.from_numpy(ids))


def _flow(edges: Edges, choice: Choice, local: Ints, src: Layer, dst: Layer, i: int, *, prefix: bool) -> Flow:
    structure = Structure(torch.from_numpy(choice.indptr), torch.from_numpy(local), src.num_nodes)
    eid = _parent_eid(edges, choice)
    return Flow(structure, src, dst, (i, i + 1), parent_eid=eid, weight=choice.weight, prefix=prefix)


def _prefix(cell: Lazy[Tensor], size: int) -> Lazy[Tensor]:
    return Lazy(lambda: cell.get()[:size])


def _joined_weight(choices: list[Choice]) -> Lazy[Tensor]:
    def joined() -> Tensor:
        ones = (torch.from_numpy(np.ones(int(choice.indptr[-1]), np.float32)) for choice in choices)
        return torch.cat([one if c.weight is None else c.weight.get() for c, one in zip(choices, ones, strict=True)])

    return Lazy(joined)


def _chosen(graph: Graph, edges: Edges, choose: Choose, dst: Ints, flow: int) -> Choice:
    choice = choose(torch.from_numpy(dst), flow)
    if not isinstance(choice, Choice):
        raise TypeError(f"choose must return a Choice, got {type(choice).__name__}")
    if len(choice.indptr) != len(dst) + 1:
        raise ValueError(f"the Choice for flow {flow} is for {len(choice.indptr) - 1} destinations, not for {len(dst)}")
    if not choice.trusted:
        _check(graph, edges, choice, dst)
    return choice


def _check(graph: Graph, edges: Edges, choice: Choice, dst: Ints) -> None:
    """Raise IndexError or ValueError for a Choice of edges that are not there, or not at these destinations."""
    if choice.positions is None:
        as_ids(choice.src, "src of the Choice", graph.num_nodes)
        if choice.eid is not None:
            as_ids(choice.eid, "eid of the Choice", graph.num_edges, "edge", lower=-1)
        return
    at = as_ids(choice.positions, "positions of the Choice", len(edges.near), "edge position")
    node = np.repeat(dst, np.diff(choice.indptr))
    strange = (at < edges.indptr[node]) | (at >= edges.indptr[node + 1])
    if strange.any():
        i = int(strange.argmax())
        raise ValueError(
            f"positions[{i}] of the Choice is {at[i]}, but the edges of its destination {node[i]} lie at "
            f"{edges.indptr[node[i]]} to {edges.indptr[node[i] + 1] - 1}; positions are places in the graph's edge "
            "arrays, not edge ids (see Candidates.select)"
        )


def _parent_eid(edges: Edges, choice: Choice) -> Lazy[Tensor]:
    positions, eid = choice.positions, choice.eid
    if positions is not None:
        return Lazy(lambda: edges.parent_eid(positions))
    return Lazy.of(torch.from_numpy(np.full(int(choice.indptr[-1]), -1)) if eid is None else eid)
