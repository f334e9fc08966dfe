"""Checks of every invariant of a NodeFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nodeflow._core.base.checks import LARGEST, blaming
from nodeflow._core.base.frozen import Lazy

if TYPE_CHECKING:
    from nodeflow.flow._flow import Flow
    from nodeflow.flow._layer import Layer
    from nodeflow.flow._node_flow import NodeFlow
    from nodeflow.graph import Graph


def validate(batch: NodeFlow) -> None:
    """Check every invariant of the structure again; raises ValueError that names the first broken
    one.

    ``nodeflow.testing.assert_valid`` is the same check for tests, where it raises AssertionError.
    """
    with blaming("not a valid NodeFlow", ValueError):
        _check(batch)


def _check(batch: NodeFlow) -> None:
    layers = batch.num_layers
    flows = batch.num_flows
    _require(
        layers > 0,
        "it must have at least one layer; samplers make NodeFlows, as in NeighborSampler(graph, "
        "[10, 10])(seeds), and create_node_flow makes one of flows",
    )
    _require(flows == layers - 1, f"{layers} layers need {layers - 1} flows, got {flows}")
    for i, layer in enumerate(batch.layers):
        check_layer(f"layer {i}", layer, batch.parent)
    # edges of the whole graph, so made once
    if batch.parent is None:
        ends = None
    else:
        ends = Lazy(batch.parent.edges)
    for (i, j), flow in batch.flows.items():
        name = f"flow {i}->{j}"
        _require(i < j, f"{name} must go to a later layer")
        _require(
            flow.src_layer is batch.layers[i] and flow.dst_layer is batch.layers[j],
            f"{name} joins other layers",
        )
        check_flow(name, flow, batch.parent, ends)
    index = batch.seed_index
    seeds = batch.back.num_nodes
    if batch.has_seed_ids:
        num_seeds = len(batch.seed_ids)
    else:
        num_seeds = len(index)
    _require(batch.seed_data.num_rows == num_seeds, "seed_data must have a row per seed")
    _require(
        index.dtype == torch.int64 and _within(index, 0, seeds),
        "seed_index must hold rows of the last layer",
    )


def check_layer(name: str, layer: Layer, graph: Graph | None) -> None:
    """Raise ValueError that names the first broken invariant of a layer of a NodeFlow of
    ``graph``.
    """
    _require(layer.data.num_rows == layer.num_nodes, f"{name}: wrong number of rows in its frame")
    if not layer.has_parent:
        return
    ids = layer.parent_nid
    if graph is None:
        upper = LARGEST
    else:
        upper = graph.num_nodes
    _require(ids.dtype == torch.int64, f"{name}: parent ids must be int64")
    _require(
        len(ids) == layer.num_nodes, f"{name}: {layer.num_nodes} nodes but {len(ids)} parent ids"
    )
    _require(_within(ids, 0, upper), f"{name}: a parent id is out of range")
    # contexts allow several rows of one node
    keys = ids.unsqueeze(1)
    if layer.context is not None:
        _require(
            layer.context.shape == ids.shape,
            f"{name}: {layer.num_nodes} nodes but {len(layer.context)} contexts",
        )
        keys = torch.stack([ids, layer.context], dim=1)
    distinct, counts = torch.unique(keys, dim=0, return_counts=True)
    if len(distinct) < len(ids):
        where = " in one context"
        if layer.context is None:
            where = ", without contexts"
        raise ValueError(f"{name} holds parent node {int(distinct[counts > 1][0, 0])} twice{where}")


def check_flow(
    name: str, flow: Flow, graph: Graph | None, all_ends: Lazy[tuple[Tensor, Tensor]] | None
) -> None:
    """Raise ValueError that names the first broken invariant of a flow; ``all_ends`` are those of
    the graph's edges.
    """
    indptr = flow.indptr
    indices = flow.indices
    _require(
        indptr.dtype == indices.dtype == torch.int64, f"{name}: indptr and indices must be int64"
    )
    _require(
        len(indptr) == flow.dst_layer.num_nodes + 1,
        f"{name}: indptr must have one entry more than destinations",
    )
    _require(flow.num_src == flow.src_layer.num_nodes, f"{name}: wrong number of sources")
    _require(
        int(indptr[0]) == 0 and int(indptr[-1]) == len(indices),
        f"{name}: indptr must end at {len(indices)}",
    )
    _require((indptr.diff() >= 0).all(), f"{name}: indptr decreases")
    _require(
        _within(indices, 0, flow.num_src), f"{name}: an edge starts at a row that is no source"
    )
    _require(flow.data.num_rows == flow.num_edges, f"{name}: wrong number of rows in its frame")
    _require(len(flow.weight) == flow.num_edges, f"{name}: wrong number of estimator weights")
    if not flow.has_parent:
        return
    edges = flow.parent_eid
    if graph is None:
        upper = LARGEST
    else:
        upper = graph.num_edges
    _require(edges.dtype == torch.int64, f"{name}: parent edge ids must be int64")
    _require(len(edges) == flow.num_edges, f"{name}: wrong number of parent edge ids")
    _require(_within(edges, -1, upper), f"{name}: a parent edge id is out of range")
    kept = edges >= 0
    known = flow.src_layer.has_parent and flow.dst_layer.has_parent and bool(kept.any())
    if all_ends is None or not known:
        return
    from_, to = flow.edges()
    src = flow.src_layer.parent_nid[from_][kept].cpu()
    dst = flow.dst_layer.parent_nid[to][kept].cpu()
    begins, ends = (nodes[edges[kept].cpu()] for nodes in all_ends.get())
    along = (begins == src) & (ends == dst)
    # sampled along out-edges
    against = (begins == dst) & (ends == src)
    _require((along | against).all(), f"{name}: an edge and its parent edge join different nodes")


def _within(ids: Tensor, lower: int, upper: int) -> bool:
    return ids.numel() == 0 or (int(ids.min()) >= lower and int(ids.max()) < upper)


def _require(holds: bool | Tensor, message: str) -> None:
    if not holds:
        raise ValueError(message)
