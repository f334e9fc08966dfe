"""NodeFlows made without a sampler: from flows of given edges, or of the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    LARGEST,
    as_count,
    as_ids,
    check_indptr,
    check_length,
    check_pairs,
    check_type,
    describe,
)
from nodeflow._core.base.sizes import check_memory
from nodeflow._core.base.types import ColumnsLike, IdsLike
from nodeflow._core.edges.columns import edge_numbers, is_float64
from nodeflow._core.rows.rows import take_rows
from nodeflow.flow._flow import Flow, FlowParts
from nodeflow.flow._layer import Layer
from nodeflow.flow._node_flow import NodeFlow
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure


def flow_from_edges(
    src: IdsLike,
    dst: IdsLike,
    *,
    num_src: int,
    num_dst: int,
    parent_eid: IdsLike | None = None,
    weight: Tensor | None = None,
    data: ColumnsLike | None = None,
) -> Flow:
    """Make a flow from edges given by local ids, for use in ``create_node_flow`` or by itself.

    The edges are grouped by destination; inside one destination they keep the order given.

    Args:
        src, dst: local ids ``[E]`` of the sources and destinations.
        num_src, num_dst: numbers of nodes of the two layers.
        parent_eid: parent ids ``[E]`` of the edges, -1 for an edge that has none; None for no
            parent edges.
        weight: estimator weights ``[E]``; None means 1.
        data: edge columns with a row per edge, in the order of ``src`` and ``dst``.

    Raises IndexError for an id out of range, ValueError for lengths that differ.

    >>> flow = flow_from_edges([0, 2, 1], [1, 0, 1], num_src=3, num_dst=2)
    >>> flow.edges()
    (tensor([2, 0, 1]), tensor([0, 1, 1]))
    """
    num_src = as_count(num_src, "num_src")
    num_dst = as_count(num_dst, "num_dst")
    sources = as_ids(src, "src", num_src, "source")
    ends = as_ids(dst, "dst", num_dst, "destination")
    check_pairs(sources, ends, "src and dst", "edge")
    check_memory(16 * num_dst, f"num_dst of {num_dst}", "ids of a layer count from 0 without gaps")
    # the sort is stable: edges of one destination stay in the order given
    indptr, order = map(torch.from_numpy, kernels.csr.sort_by_destination(ends, num_dst))
    structure = Structure._trusted(indptr, torch.from_numpy(sources)[order], num_src)
    return _flow(structure, order, parent_eid, weight, data)


def flow_from_csr(
    indptr: IdsLike,
    indices: IdsLike,
    *,
    num_src: int,
    parent_eid: IdsLike | None = None,
    weight: Tensor | None = None,
    data: ColumnsLike | None = None,
) -> Flow:
    """Make a flow from a CSR structure over destinations: ``indptr`` ``[num_dst + 1]`` and sources
    ``indices`` ``[E]``.

    The arguments that follow are those of ``flow_from_edges``. The structure is copied. Raises
    ValueError for an ``indptr`` that decreases, does not start at 0 or does not end at the number
    of edges.

    >>> flow = flow_from_csr([0, 2, 3], [0, 1, 2], num_src=3)
    >>> flow.edges()
    (tensor([0, 1, 2]), tensor([0, 0, 1]))
    """
    num_src = as_count(num_src, "num_src")
    sources = as_ids(indices, "indices", num_src, "source").copy()
    # the checks below name its values
    ends = as_ids(indptr, "indptr", LARGEST, "edge", lower=-LARGEST).copy()
    check_indptr(ends, len(sources))
    structure = Structure._trusted(torch.from_numpy(ends), torch.from_numpy(sources), num_src)
    return _flow(structure, None, parent_eid, weight, data)


def _flow(
    structure: Structure,
    order: Tensor | None,
    parent_eid: IdsLike | None,
    weight: Tensor | None,
    data: ColumnsLike | None,
) -> Flow:
    """Return a flow of given edges, whose other columns ``order`` puts in the edges' order."""
    size = structure.num_edges
    columns = Frame(size, data)
    eid = None
    if parent_eid is not None:
        eid = torch.from_numpy(as_ids(parent_eid, "parent_eid", LARGEST, "edge", lower=-1).copy())
        check_length(eid, "parent_eid", size, "edge")
    if weight is not None:
        weight = Frame(size, {"weight": weight})["weight"]
        if weight.shape != (size,) or weight.layout != torch.strided:
            raise ValueError(
                f"weight must have shape ({size},), one number per edge, got {tuple(weight.shape)}"
            )
        weight = weight.to(torch.float32, copy=True)
    if order is not None:
        columns = Frame(size, {name: take_rows(x, order) for name, x in columns.items()})
        if eid is not None:
            eid = eid[order]
        if weight is not None:
            weight = weight[order]
    src = Layer._trusted(structure.num_src)
    dst = Layer._trusted(structure.num_dst)
    return Flow._trusted(structure, src, dst, (0, 1), parent_eid=eid, weight=weight, data=columns)


@checked
def create_node_flow(
    flows: Sequence[Flow] | Mapping[tuple[int, int], Flow],
    layers: Sequence[IdsLike | None] | None = None,
    *,
    parent: Graph | None = None,
) -> NodeFlow:
    """Make a NodeFlow from flows, with or without a parent graph.

    Args:
        flows: the flows between consecutive layers, in order; or a dict from pairs ``(i, j)`` to
            flows, in which every consecutive pair and any pairs that skip layers occur.
        layers: for every layer its parent ids, or None for nodes without parent ids (pooled nodes).
            None: no layer has parent ids. A single layer without flows is legal.
        parent: the parent graph.

    The NodeFlow takes the columns of the flows' frames, and shares their memory.

    Raises ValueError for sizes that do not fit together, a parent id twice in one layer, or a
    missing consecutive flow; IndexError for a parent id out of range.

    >>> low = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> high = flow_from_edges([0], [0], num_src=1, num_dst=1)
    >>> skip = flow_from_edges([1], [0], num_src=2, num_dst=1)
    >>> create_node_flow({(0, 1): low, (1, 2): high, (0, 2): skip}, [[5, 6], None, [5]])
    NodeFlow(2 -> 1 -> 1 nodes, 2 + 1 edges, 0->2: 1 edges)
    """
    if not isinstance(flows, Mapping | list | tuple):
        raise TypeError(
            f"flows must be a list of flows or a dict, got {describe(flows)}; put one flow in a "
            "list"
        )
    named = flows
    if not isinstance(named, Mapping):
        named = {(i, i + 1): flow for i, flow in enumerate(named)}
    for pair, flow in named.items():
        check_type(flow, f"flows[{pair}]", Flow, "a Flow (see flow_from_edges)")
        numbers = isinstance(pair, tuple) and [type(number) for number in pair] == [int, int]
        if not numbers or not 0 <= pair[0] < pair[1]:
            raise ValueError(
                f"a flow goes from a layer i to a later layer j, got the pair {pair!r}"
            )
    if layers is None:
        layers = [None] * (max((j for _, j in named), default=0) + 1)
    count = len(layers)
    chain = [(i, i + 1) for i in range(count - 1)]
    missing = [pair for pair in chain if pair not in named]
    beyond = [pair for pair in named if pair[1] >= count]
    if missing or beyond or count == 0:
        raise ValueError(
            f"{count} layers need the flows {chain} (an empty one is legal); missing {missing}, "
            f"beyond the last layer {beyond}"
        )
    parts = [_layer(i, ids, named, parent) for i, ids in enumerate(layers)]
    joined = [flow.between(parts[i], parts[j], (i, j)) for (i, j), flow in named.items()]
    return NodeFlow(parts, joined, parent=parent)


def _layer(
    i: int, ids: IdsLike | None, flows: Mapping[tuple[int, int], Flow], graph: Graph | None
) -> Layer:
    sizes = {flow.num_src for (a, _), flow in flows.items() if a == i}
    sizes |= {flow.num_dst for (_, b), flow in flows.items() if b == i}
    parent_nid = None
    if ids is not None:
        upper = LARGEST if graph is None else graph.num_nodes
        parent_nid = torch.from_numpy(as_ids(ids, f"layers[{i}]", upper).copy())
        sizes.add(len(parent_nid))
    if not sizes:
        raise ValueError(f"layer {i} has neither a flow nor parent ids to tell its size")
    if len(sizes) > 1:
        raise ValueError(
            f"layer {i} has different sizes in its flows and parent ids: {sorted(sizes)}"
        )
    return Layer._trusted(sizes.pop(), parent_nid)


def empty_node_flow(graph: Graph, num_flows: int) -> NodeFlow:
    """Return a NodeFlow of ``graph`` without nodes and edges, of ``num_flows`` flows."""
    flow = flow_from_edges([], [], num_src=0, num_dst=0, parent_eid=[])
    return create_node_flow([flow] * num_flows, [[]] * (num_flows + 1), parent=graph)


@checked
def create_full_node_flow(
    graph: Graph, num_layers: int, *, add_self_loop: bool = False, weight: str | None = None
) -> NodeFlow:
    """Make the NodeFlow of the whole graph for a GNN of ``num_layers`` layers.

    Every layer holds all nodes in the order of their ids, every flow all edges. The structure is
    stored once, whatever ``num_layers``; each layer and flow has a frame of its own.

    Args:
        graph: the parent graph.
        num_layers: number of message-passing layers = number of flows; the NodeFlow has one layer
            of nodes more.
        add_self_loop: give every node an edge to itself, last among its in-edges, with parent edge
            id -1.
        weight: name of an edge column of finite numbers, which become ``flow.weight``. A sampler
            with the same ``weight`` has estimator weights for sums with these numbers. None:
            weights of 1.

    Raises ValueError for a negative ``num_layers`` or a column that is not finite, and KeyError for
    an unknown column. Raises ValueError for ``weight`` together with ``add_self_loop``, because the
    column has no number for the new self-loops: add them to the graph first, by
    ``transform.add_self_loops``.

    >>> from nodeflow import Graph
    >>> create_full_node_flow(Graph.from_edges([0, 1], [1, 0]), 3)
    NodeFlow(2 -> 2 -> 2 -> 2 nodes, 2 + 2 + 2 edges)
    """
    count = as_count(num_layers, "num_layers")
    if weight is not None and add_self_loop:
        raise ValueError(
            f"weight={weight!r} has no numbers for self-loops made here; add them to the graph "
            "with transform.add_self_loops, and to the column"
        )
    indptr, indices, edge_ids = graph.csc()
    edges = np.arange(graph.num_edges) if edge_ids is None else edge_ids.astype(np.int64)
    sources = indices.astype(np.int64)
    if add_self_loop:
        # the loop of a node comes after its in-edges
        nodes = np.arange(graph.num_nodes)
        sources = np.insert(sources, indptr[1:], nodes)
        edges = np.insert(edges, indptr[1:], -1)
        indptr = indptr + np.arange(graph.num_nodes + 1)
    structure = Structure._trusted(
        torch.from_numpy(indptr.copy()), torch.from_numpy(sources), graph.num_nodes
    )
    layer = Layer._trusted(graph.num_nodes, torch.from_numpy(np.arange(graph.num_nodes)))
    parts: FlowParts = {"parent_eid": torch.from_numpy(edges), "needs_weight": True}
    if weight is not None:
        kind = np.float64 if is_float64(graph, weight) else np.float32
        numbers = edge_numbers(graph, weight, "weight")
        parts["weight"] = torch.from_numpy(numbers[edges].astype(kind))
    return shared_node_flow(graph, layer, structure, count, **parts)


def shared_node_flow(
    graph: Graph,
    layer: Layer,
    structure: Structure,
    num_flows: int,
    seed_ids: Tensor | None = None,
    **shared: Unpack[FlowParts],
) -> NodeFlow:
    """Return the NodeFlow whose layers all hold the nodes of ``layer`` and whose flows all are
    ``structure``.

    The structure is stored once. Each layer and flow has a frame of its own; those of the layers
    have the columns of ``layer``. ``shared`` are the other parts of all flows. The parts are not
    checked.
    """
    # which share the lookup of parent ids too
    layers = [layer, *(layer.with_frame() for _ in range(num_flows))]
    shared["prefix"] = True
    flows = [
        Flow._trusted(structure, layers[i], layers[i + 1], (i, i + 1), **shared)
        for i in range(num_flows)
    ]
    return NodeFlow._trusted(layers, flows, parent=graph, seed_ids=seed_ids)
