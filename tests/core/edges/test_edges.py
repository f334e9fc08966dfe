"""Arrays of edges as samplers read them, and columns of numbers of edges."""

from __future__ import annotations

import numpy as np
import torch

from nodeflow import Graph, NeighborSampler
from nodeflow._core.edges import columns, edges as edge_arrays


def test_arrays_are_copied_and_read_only():
    indices = np.array([1, 0, 1])
    edges = edge_arrays.Edges([0, 2, 3], indices, [5, 9, 2])
    indices[:] = 7
    assert edges.indices.tolist() == [1, 0, 1]
    assert edges.ids(np.array([2, 0])).tolist() == [2, 5]
    for array in (edges.indptr, edges.indices, edges.edge_ids):
        assert not array.flags.writeable
    shared = edge_arrays.Edges._trusted(edges.indptr, edges.indices, edges.edge_ids)
    assert np.shares_memory(shared.indices, edges.indices)


def test_edges_left_out():
    graph = Graph.from_edges([0, 1, 2, 0, 1], [2, 2, 2, 1, 1], edge_ids=[4, 3, 2, 1, 0])
    whole = edge_arrays.edges_along(graph, "in")
    patch = whole.without(np.array([3, 3])).patch
    assert whole.patch is None
    assert patch.rows.tolist() == [2]
    assert whole.ids(patch.left_out).tolist() == [3]
    assert whole.ids(patch.positions).tolist() == [2, 4]
    assert patch.edges.indices.tolist() == [2, 0]
    assert patch.edges.indptr.tolist() == [0, 2]


def graph_with(values, kind):
    return Graph.from_edges([0, 1, 2], [2, 2, 0], edata={"w": torch.tensor(values, dtype=kind)})


def test_sizes_at_the_limits_keep_their_precision():
    graph = graph_with([0.0, -1e30, 1e-30], torch.float64)
    assert columns.edge_numbers(graph, "w", "weight").tolist() == [0.0, -1e30, 1e-30]
    assert NeighborSampler(graph.view(weight="w"), [-1])([2, 0]).flows[0].weight.tolist() == [
        0.0,
        -1e30,
        1e-30,
    ]
