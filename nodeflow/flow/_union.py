"""A NodeFlow as one graph: every node and edge once, with the layers and flows that hold it as bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.graph import Graph

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


def union(batch: NodeFlow, *, weights: bool = False) -> Graph:
    """Return one graph of all nodes and edges of this NodeFlow, each once, with layers and flows as bits.

    Flow i consists of the edges whose bit i is set, and layer i of the nodes whose bit i is set:
    ``graph.edata["flows"] >> i & 1``. A node is one in all layers, in each context of its own. The graph is stored in
    less memory than separate flows where flows share edges, and can be plotted, converted and sampled as any other.

    Nodes come in the order of first appearance, layer 0 first; edges by destination, then source. The columns are

    - nodes: ``parent_nid`` int64; ``layers``, bits; with contexts ``context`` int64;
    - edges: ``flows``, bits; ``parent_eid`` int64 where all flows have parent edges; with ``weights`` also ``weight``
      ``[num_edges, flows]``, the estimator weight of the edge in every flow, 0 in flows without it.

    Bits have the narrowest integer type; flows that skip layers come after the others, as in ``flows.pairs()``. An edge
    that is drawn repeatedly in a flow is there as often as in the flow that has it most. The graph has no other
    columns of frames, and lies in main memory.

    Raises ValueError for a layer without parent nodes, and for more than 63 flows.

    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1, 1])([0])
    >>> graph = batch.union()
    >>> graph.ndata["parent_nid"], graph.ndata["layers"]
    (tensor([0, 2, 1]), tensor([7, 3, 1], dtype=torch.uint8))
    >>> graph.edges(), graph.edata["flows"]
    ((tensor([1, 2]), tensor([0, 1])), tensor([3, 1], dtype=torch.uint8))
    """
    if (number := max(batch.num_layers, len(batch.flows.pairs()))) > 63:
        raise ValueError(f"union has a bit per layer and flow, at most 63, and this NodeFlow has {number}")
    keys = _keys(batch)
    _, first, inverse = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
    number_of = np.empty(len(first), np.int64)
    number_of[np.argsort(first)] = np.arange(len(first))
    bounds = np.cumsum([len(part) for part in keys])[:-1]
    rows = np.split(number_of[inverse], bounds)  # the node of every row of every layer
    first.sort()
    ndata = {"parent_nid": torch.from_numpy(np.concatenate([_numpy(x.parent_nid) for x in batch.layers])[first])}
    ndata["layers"] = _bits(rows, len(first))
    if any(layer.context is not None for layer in batch.layers):
        contexts = [np.zeros(len(x), np.int64) if x.context is None else _numpy(x.context) for x in batch.layers]
        ndata["context"] = torch.from_numpy(np.concatenate(contexts)[first])
    flows = list(batch.flows.items())
    parents = bool(flows) and all(flow.has_parent for _, flow in flows)
    all_src = all_dst = all_eid = np.zeros(0, np.int64)
    if flows:
        ends = [(rows[i][_numpy(f.indices)], rows[j][_numpy(f.structure.dst)]) for (i, j), f in flows]
        eid = [_numpy(f.parent_eid) if f.has_parent else np.full(f.num_edges, -1) for _, f in flows]
        all_src, all_dst = (np.concatenate(part) for part in zip(*ends, strict=True))
        all_eid = np.concatenate(eid)
    sizes = [flow.num_edges for _, flow in flows]
    edge, distinct = _edges(all_src, all_dst, all_eid, np.repeat(np.arange(len(flows)), sizes))
    src, dst, ids = all_src[distinct], all_dst[distinct], all_eid[distinct]
    edges = np.split(edge, np.cumsum(sizes)[:-1]) if flows else []
    edata = {"flows": _bits(edges, len(distinct))}
    if parents:
        edata["parent_eid"] = torch.from_numpy(ids)
    if weights:
        kinds = {flow.weight.dtype for _, flow in flows}
        kind = torch.float64 if torch.float64 in kinds else torch.float32
        edata["weight"] = torch.zeros(len(distinct), len(flows), dtype=kind, device="cpu")
        for k, (_, flow) in enumerate(flows):
            edata["weight"][torch.from_numpy(edges[k]), k] = flow.weight.cpu().to(kind)
    indptr = np.searchsorted(dst, np.arange(len(first) + 1))
    return Graph(indptr, src, ndata=ndata, edata=edata)


def _keys(batch: NodeFlow) -> list[Ints]:
    """A number for every node and context, per layer."""
    nodes = [_numpy(layer.parent_nid) for layer in batch.layers]
    if all(layer.context is None for layer in batch.layers):
        return nodes
    contexts = [np.zeros(len(x), np.int64) if x.context is None else _numpy(x.context) for x in batch.layers]
    distinct = np.unique(np.concatenate(contexts))
    size = 1 + max((int(part.max(initial=0)) for part in nodes), default=0)
    return [part + size * np.searchsorted(distinct, c) for part, c in zip(nodes, contexts, strict=True)]


def _edges(src: Ints, dst: Ints, eid: Ints, flow: Ints) -> tuple[Ints, Ints]:
    """The number of every edge among the distinct ones by destination, source and id, and where each occurs first."""
    order = np.lexsort((flow, eid, src, dst))
    starts = _starts(src[order], dst[order], eid[order])
    # an edge that one flow has twice is two edges: the second one is that of other flows that have it twice
    again = _since(starts | _starts(flow[order]))
    if again.any():
        order, again = (part[np.lexsort((again, np.cumsum(starts)))] for part in (order, again))
        starts = _starts(src[order], dst[order], eid[order], again)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(starts) - 1
    first: Ints = order[starts]
    return number, first


def _starts(*columns: Ints) -> Array:
    """A mask of the rows that differ from the one before."""
    starts = np.ones(len(columns[0]), np.bool_)
    if len(starts):
        starts[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return starts


def _since(starts: Array) -> Ints:
    """Distance of each row from the last start, in rows."""
    index = np.arange(len(starts))
    since: Ints = index - np.maximum.accumulate(np.where(starts, index, 0)) if len(starts) else index
    return since


def _bits(parts: list[Ints], size: int) -> Tensor:
    """An integer per row in which bit k says whether part k holds the row, ``[size]``."""
    count = len(parts)
    kind = np.uint8 if count <= 8 else np.int16 if count <= 15 else np.int32 if count <= 31 else np.int64
    bits: Ints = np.zeros(size, np.int64)
    for k, part in enumerate(parts):
        bits[part] |= 1 << k
    return torch.from_numpy(bits.astype(kind))


def _numpy(ids: Tensor) -> Ints:
    array: Ints = ids.numpy(force=True)
    return array
