"""Induced edges: all edges of the graph among the nodes of a batch, drawn or not."""

from __future__ import annotations

import numpy as np
import torch

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_type, describe
from nodeflow._edges.edges import NOTHING
from nodeflow.flow import Flow, Layer, NodeFlow
from nodeflow.ops import Structure
from nodeflow.sampling._bound import BoundSampler
from nodeflow.sampling._distributed import with_rows_of
from nodeflow.sampling._reader import Reader
from nodeflow.sampling._subgraph import edges_from


def induced(batch: NodeFlow, sampler: BoundSampler) -> NodeFlow:
    """Return the NodeFlow with the layers of ``batch``, and all edges among their nodes, drawn or not.

    Flow i holds every edge from a node of layer i to a node of layer i + 1, in the graph's order, in the direction of
    the sampler; with contexts, those of one context. As a transform of a loader:
    ``NodeFlowLoader(..., transform=lambda batch: induced(batch, sampler))``.

    Estimator weights are those of the edges (the sampler's ``weight`` column, or 1). Outputs are exact for the subgraph
    of the nodes. They are not unbiased for the whole graph: sums lack the edges from outside.

    Args:
        batch: a NodeFlow in main memory whose layers have parent nodes.
        sampler: the sampler of the batch. Its direction, ``edge_filter``, ``weight`` and ``without_edges`` hold. Of a
            ``LinkSampler`` pass what it wraps, without the edges that it excludes:
            ``links.sampler.without_edges(...)``.

    Columns of layers and seeds are shared with ``batch``; flows have no columns, and flows that skip layers are left
    out. Cost: for every flow, the sum of the degrees of its destinations.

    Raises TypeError for anything but a NodeFlow and a sampler that looks up edges, and for a sampler with times,
    where some edges lie in the future; ValueError for a batch of another graph, on another device, or without parent
    nodes.

    >>> from nodeflow import Graph, NeighborSampler
    >>> graph = Graph.from_edges([1, 2, 2, 1], [0, 0, 1, 2])
    >>> sampler = NeighborSampler(graph, [1, -1])
    >>> batch = sampler([0])
    >>> batch, induced(batch, sampler)
    (NodeFlow(3 -> 3 -> 1 nodes, 3 + 2 edges), NodeFlow(3 -> 3 -> 1 nodes, 4 + 2 edges))
    """
    check_type(batch, "batch", NodeFlow, "a NodeFlow")
    if not isinstance(sampler, BoundSampler):
        raise TypeError(
            f"sampler must be one that looks up edges, such as NeighborSampler, got {describe(sampler)}; of a "
            "LinkSampler pass its sampler, links.sampler.without_edges(...)"
        )
    if sampler.takes_times:
        raise TypeError(f"{type(sampler).__name__} hides edges from seeds by their times: induced would show them all")
    if batch.parent is None or batch.parent.uid != sampler.graph.uid:
        raise ValueError(f"batch must be a batch of the sampler's graph, {sampler.graph}, got one of {batch.parent}")
    if batch.device.type != "cpu":
        raise ValueError(f"batch must be in main memory, got one on {batch.device}; call induced before batch.to")
    layers = [layer.with_frame() for layer in batch.layers]
    ends = [layer.parent_nid.numpy() for layer in layers[1:]]
    reader, size = with_rows_of(sampler, np.concatenate([NOTHING, *ends])).reader, sampler.graph.num_nodes
    flows = [_flow(reader, layers[i], layers[i + 1], i, size) for i in range(batch.num_flows)]
    ids = batch.seed_ids if batch.has_seed_ids else None
    result = NodeFlow._trusted(layers, flows, parent=batch.parent, seed_index=batch.seed_index, seed_ids=ids)
    result.seed_data.update(batch.seed_data)
    return result


def _flow(reader: Reader, src: Layer, dst: Layer, i: int, num_nodes: int) -> Flow:
    table, _ = kernels.induced.tabulate(_keys(src, num_nodes))
    indptr, indices, positions = edges_from(reader.edges, table, _keys(dst, num_nodes), num_nodes)
    structure = Structure(torch.from_numpy(indptr), torch.from_numpy(indices), src.num_nodes)
    parts = reader.flow_parts(positions)
    parts["needs_weight"] = reader.weights is not None
    return Flow._trusted(structure, src, dst, (i, i + 1), **parts)


def _keys(layer: Layer, num_nodes: int) -> Ints:
    """A number for every node and context."""
    nodes: Ints = layer.parent_nid.numpy()
    return nodes if layer.context is None else nodes + num_nodes * layer.context.numpy()
