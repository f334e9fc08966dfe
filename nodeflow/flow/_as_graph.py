"""A NodeFlow as one graph: a node per NodeFlow id, or every parent node and edge once, with bits
for its layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow.graph import Graph, GraphFrame, Schema, with_schema

if TYPE_CHECKING:
    from nodeflow.flow._flow import Flow
    from nodeflow.flow._layer import Layer
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
    src, dst = _ends(batch, [_numpy(batch.layers(i)) for i in range(batch.num_layers)])
    return Graph.from_edges(src, dst, num_nodes=sum(batch.layer_sizes))


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
    flows = [flow for _, flow in batch.flows.items()]
    if max(len(layers), len(flows)) > 63:
        raise ValueError(
            "union has a bit per layer and flow, at most 63, and this NodeFlow has "
            f"{max(len(layers), len(flows))}"
        )
    nodes = np.concatenate([_numpy(layer.parent_nid) for layer in layers])
    eid = _joined([_parent_eid(flow) for flow in flows])
    schema = Schema.of_one_type(0, 0)
    if all(layer.has_schema for layer in layers):
        schema = layers[0].schema
    types = schema.types_of(nodes)
    kinds = schema.relations_of(eid)
    # edges that are no edges of the schema, as added self-loops and edges against their direction,
    # leave no types
    src, dst = _ends(batch, np.split(types, np.cumsum(batch.layer_sizes)[:-1]))
    if (eid < 0).any() or not np.array_equal(schema.ends()[kinds], np.stack([src, dst], 1)):
        schema = Schema.of_one_type(0, 0)
        types = np.zeros_like(nodes)
        kinds = np.zeros_like(eid)
    rows, first, ndata = _nodes_once(batch, nodes, types)
    src, dst = _ends(batch, rows)
    edges, distinct = _edges_once(flows, kinds, dst, src, eid)
    edata = {"flows": _bits(edges, len(distinct))}
    if flows and all(flow.has_parent for flow in flows):
        edata["parent_eid"] = torch.from_numpy(eid[distinct])
    if weights:
        edata["weight"] = _weights(flows, edges, len(distinct))
    graph = Graph.from_edges(
        src[distinct], dst[distinct], num_nodes=len(first), ndata=ndata, edata=edata
    )
    counted = schema.counted(types[first], kinds[distinct])
    return with_schema(graph, counted, lambda _, __, num_rows: GraphFrame(num_rows))


def _nodes_once(
    batch: NodeFlow, nodes: Ints, types: Ints
) -> tuple[list[Ints], Ints, dict[str, Tensor]]:
    """Return for each layer the rows of its nodes among the distinct ones, which are once.

    Also where each of these occurs first among ``nodes``, and their columns.
    """
    # a number per node, in each context of its own, gets its rank in the order of types and first
    # appearance
    key = nodes
    has_contexts = any(layer.context is not None for layer in batch.layers)
    if has_contexts:
        contexts = np.concatenate([_contexts(layer) for layer in batch.layers])
        key = nodes + (1 + nodes.max(initial=0)) * np.unique(contexts, return_inverse=True)[1]
    _, first, node = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, types[first]))
    rows = np.split(np.argsort(order)[node], np.cumsum(batch.layer_sizes)[:-1])
    first = first[order]
    ndata = {"parent_nid": torch.from_numpy(nodes[first]), "layers": _bits(rows, len(first))}
    if has_contexts:
        ndata["context"] = torch.from_numpy(contexts[first])
    return rows, first, ndata


def _ends(batch: NodeFlow, of_layers: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return a number for the source and the destination of every edge, by layer and local id."""
    src = []
    dst = []
    for (i, j), flow in batch.flows.items():
        sources, destinations = flow.edges()
        src.append(of_layers[i][_numpy(sources)])
        dst.append(of_layers[j][_numpy(destinations)])
    return _joined(src), _joined(dst)


def _parent_eid(flow: Flow) -> Ints:
    return _numpy(flow.parent_eid) if flow.has_parent else np.full(flow.num_edges, -1)


def _contexts(layer: Layer) -> Ints:
    if layer.context is None:
        return np.zeros(layer.num_nodes, np.int64)
    return _numpy(layer.context)


def _edges_once(
    flows: list[Flow], kinds: Ints, dst: Ints, src: Ints, eid: Ints
) -> tuple[list[Ints], Ints]:
    """Return for each flow the rows of its edges among the distinct ones, which are once.

    Also where each of these occurs first among the edges of all flows.
    """
    sizes = [flow.num_edges for flow in flows]
    of_flow = np.repeat(np.arange(len(flows)), sizes)
    numbers, distinct = _numbered(kinds, dst, src, eid, of_flow)
    return np.split(numbers, np.cumsum(sizes))[:-1], distinct


def _weights(flows: list[Flow], edges: list[Ints], size: int) -> Tensor:
    """Return the estimator weight of every edge in every flow, 0 in flows without it."""
    has_float64 = any(flow.weight.dtype == torch.float64 for flow in flows)
    kind = torch.float64 if has_float64 else torch.float32
    weights = torch.zeros(size, len(flows), dtype=kind, device="cpu")
    for k, (flow, rows) in enumerate(zip(flows, edges, strict=True)):
        weights[torch.from_numpy(rows), k] = flow.weight.cpu().to(kind)
    return weights


def _numbered(kinds: Ints, dst: Ints, src: Ints, eid: Ints, flow: Ints) -> tuple[Ints, Ints]:
    """Return the number of every edge among the distinct ones, in ascending order, and where each
    occurs first.
    """
    # equal edges come to lie side by side, those of one flow too
    order = np.lexsort((flow, eid, src, dst, kinds))
    index = np.arange(len(dst))
    starts = _starts(dst[order], src[order], eid[order])
    # a repeat within a flow is a further edge: the k-th repeats of all flows are one edge
    in_flow = starts | _starts(flow[order])
    again = index - np.maximum.accumulate(np.where(in_flow, index, 0))
    if again.any():
        by_repeat = np.lexsort((again, np.cumsum(starts)))
        order = order[by_repeat]
        again = again[by_repeat]
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
    sizes = ((np.uint8, 8), (np.int16, 15), (np.int32, 31), (np.int64, 63))
    kind = next(kind for kind, most in sizes if len(parts) <= most)
    bits: Ints = np.zeros(size, np.int64)
    for k, part in enumerate(parts):
        bits[part] |= 1 << k
    return torch.from_numpy(bits.astype(kind))


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _numpy(ids: Tensor) -> Ints:
    return ids.numpy(force=True)
