"""A NodeFlow as one graph: a node per NodeFlow id, or every parent node and edge once, with bits
for its layers.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.calls import checked
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.graph import Graph, GraphFrame, Schema, with_schema

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


def layer_offsets(batch: NodeFlow) -> tuple[int, ...]:
    """Return the NodeFlow id at which each layer begins, and the number of all nodes: L + 2
    numbers.
    """
    return tuple(accumulate(batch.layer_sizes, initial=0))


def flow_offsets(batch: NodeFlow) -> tuple[int, ...]:
    """Return the NodeFlow id at which each flow begins, and the number of all edges.

    The flows are those of ``flows.pairs()``: first those between consecutive layers, then those
    that skip layers.
    """
    return tuple(accumulate((flow.num_edges for _, flow in batch.flows.items()), initial=0))


def as_graph(batch: NodeFlow) -> Graph:
    """Return the structure over all layers as one graph: its nodes and edges are those of the
    NodeFlow, by NodeFlow id.

    So it answers questions across layers, with ``find_edges``, ``has_edges``, ``edge_ids``,
    ``in_edges`` and the degrees. It has no columns, lies on the CPU, and takes memory of its own.

    >>> from nodeflow import FullSampler
    >>> batch = FullSampler(Graph.from_edges([0, 1], [1, 2]), 2)([2])
    >>> batch.as_graph(), batch.layer_offsets()
    (Graph(6 nodes, 3 edges), (0, 3, 5, 6))
    >>> batch.as_graph().edges()
    (tensor([1, 2, 4]), tensor([3, 4, 5]))
    """
    starts = layer_offsets(batch)
    ends = [
        (src + starts[i], dst + starts[j])
        for (i, j), flow in batch.flows.items()
        for src, dst in [flow.edges()]
    ]
    src, dst = (_joined([_numpy(pair[k]) for pair in ends]) for k in (0, 1))
    return Graph.from_edges(src, dst, num_nodes=starts[-1])


@checked
def union(batch: NodeFlow, *, weights: bool = False) -> Graph:
    """Return one graph of all nodes and edges of this NodeFlow, each once, with layers and flows as
    bits.

    Flow i consists of the edges whose bit i is set, and layer i of the nodes whose bit i is set:
    ``graph.edata["flows"] >> i & 1``. A node is one in all layers, in each context of its own. The
    graph is stored in less memory than separate flows where flows share edges, and can be plotted,
    converted and sampled as any other.

    Nodes come type after type, in the order of first appearance, layer 0 first; edges relation
    after relation, by destination, then source. Edges of no relation, and those drawn against their
    direction, leave a graph of one type.

    The columns are

    - nodes: ``parent_nid`` int64; ``layers``, bits; with contexts ``context`` int64;
    - edges: ``flows``, bits; ``parent_eid`` int64 where all flows have parent edges; with
      ``weights`` also ``weight`` ``[num_edges, flows]``, the estimator weight of the edge in every
      flow, 0 in flows without it.

    Bits have the narrowest integer type; flows that skip layers come after the others, as in
    ``flows.pairs()``. An edge that is drawn repeatedly in a flow is there as often as in the flow
    that has it most. The graph has no other columns of frames, and lies in main memory.

    Raises ValueError for a layer without parent nodes, and for more than 63 flows.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1, 1])([0])
    >>> graph = batch.union()
    >>> graph.ndata["parent_nid"], graph.ndata["layers"]
    (tensor([0, 2, 1]), tensor([7, 3, 1], dtype=torch.uint8))
    >>> graph.edges(), graph.edata["flows"]
    ((tensor([1, 2]), tensor([0, 1])), tensor([3, 1], dtype=torch.uint8))
    """
    layers = batch.layers
    flows = list(batch.flows.items())
    if (number := max(batch.num_layers, len(flows))) > 63:
        raise ValueError(
            f"union has a bit per layer and flow, at most 63, and this NodeFlow has {number}"
        )
    nodes = np.concatenate([_numpy(layer.parent_nid) for layer in layers])
    contexts = None
    if any(layer.context is not None for layer in layers):
        contexts = _joined(
            [np.zeros(len(x), np.int64) if x.context is None else _numpy(x.context) for x in layers]
        )
    cuts = np.cumsum(batch.layer_sizes)[:-1]
    eid = _joined(
        [_numpy(f.parent_eid) if f.has_parent else np.full(f.num_edges, -1) for _, f in flows]
    )
    schema = (
        layers[0].schema if all(layer.has_schema for layer in layers) else Schema.of_one_type(0, 0)
    )
    types = schema.types_of(nodes)
    kinds = schema.relations_of(eid)
    of_layer = np.split(types, cuts)
    src = _joined([of_layer[i][_numpy(flow.indices)] for (i, _), flow in flows])
    dst = _joined([of_layer[j][_numpy(flow.structure.dst)] for (_, j), flow in flows])
    if (eid < 0).any() or not np.array_equal(schema.ends()[kinds], np.stack([src, dst], 1)):
        schema = Schema.of_one_type(0, 0)
        types = np.zeros_like(nodes)
        kinds = np.zeros_like(eid)
    # a number per node, in each context of its own, gets its rank in the order of types and first
    # appearance
    key = nodes
    if contexts is not None:
        key = nodes + (1 + nodes.max(initial=0)) * np.unique(contexts, return_inverse=True)[1]
    _, first, node = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, types[first]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    rows = np.split(rank[node], cuts)
    first = first[order]
    ndata = {"parent_nid": torch.from_numpy(nodes[first]), "layers": _bits(rows, len(first))}
    if contexts is not None:
        ndata["context"] = torch.from_numpy(contexts[first])

    src = _joined([rows[i][_numpy(flow.indices)] for (i, _), flow in flows])
    dst = _joined([rows[j][_numpy(flow.structure.dst)] for (_, j), flow in flows])
    sizes = [flow.num_edges for _, flow in flows]
    edge, distinct = _numbered(kinds, dst, src, eid, np.repeat(np.arange(len(flows)), sizes))
    edges = np.split(edge, np.cumsum(sizes)[:-1]) if flows else []
    edata = {"flows": _bits(edges, len(distinct))}
    if flows and all(flow.has_parent for _, flow in flows):
        edata["parent_eid"] = torch.from_numpy(eid[distinct])
    if weights:
        kind = (
            torch.float64
            if any(flow.weight.dtype == torch.float64 for _, flow in flows)
            else torch.float32
        )
        edata["weight"] = torch.zeros(len(distinct), len(flows), dtype=kind, device="cpu")
        for k, (_, flow) in enumerate(flows):
            edata["weight"][torch.from_numpy(edges[k]), k] = flow.weight.cpu().to(kind)
    # edges are numbered by relation, and stored by destination
    ids = np.argsort(dst[distinct], kind="stable")
    stored = distinct[ids]
    indptr = np.searchsorted(dst[stored], np.arange(len(first) + 1))
    graph = Graph(
        indptr,
        src[stored],
        edge_ids=None if (np.diff(ids) == 1).all() else ids,
        ndata=ndata,
        edata=edata,
    )
    own = schema.counted(types[first], kinds[distinct])
    return with_schema(graph, own, lambda _, __, num_rows: GraphFrame(num_rows))


def _numbered(kinds: Ints, dst: Ints, src: Ints, eid: Ints, flow: Ints) -> tuple[Ints, Ints]:
    """Return the number of every edge among the distinct ones, in ascending order, and where each
    occurs first.
    """
    order = np.lexsort((flow, eid, src, dst, kinds))
    index = np.arange(len(dst))
    starts = _starts(dst[order], src[order], eid[order])
    # a repeat within a flow is a further edge: the k-th repeats of all flows are one edge
    in_flow = starts | _starts(flow[order])
    again = index - np.maximum.accumulate(np.where(in_flow, index, 0))
    if again.any():
        order, again = (part[np.lexsort((again, np.cumsum(starts)))] for part in (order, again))
        starts = _starts(dst[order], src[order], eid[order], again)
    number = np.empty_like(order)
    number[order] = np.cumsum(starts) - 1
    first: Ints = order[starts]
    return number, first


def _starts(*columns: Ints) -> Array:
    """Return a mask of the rows that differ from the one before."""
    starts = np.ones(len(columns[0]), np.bool_)
    starts[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return starts


def _bits(parts: list[Ints], size: int) -> Tensor:
    """Return an integer per row in which bit k says whether part k holds the row, ``[size]``."""
    count = len(parts)
    kind = (
        np.uint8
        if count <= 8
        else np.int16
        if count <= 15
        else np.int32
        if count <= 31
        else np.int64
    )
    bits: Ints = np.zeros(size, np.int64)
    for k, part in enumerate(parts):
        bits[part] |= 1 << k
    return torch.from_numpy(bits.astype(kind))


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _numpy(ids: Tensor) -> Ints:
    return ids.numpy(force=True)
