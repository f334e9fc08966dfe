"""Arrays of edges as samplers read them, and columns of numbers of edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nodeflow import Graph, NeighborSampler
from nodeflow._core.edges.columns import edge_numbers
from nodeflow._core.edges.edges import Edges, edges_along
from nodeflow._core.edges.node_rows import NodeRows


@pytest.mark.parametrize(
    ("arrays", "options", "error", "words"),
    [
        (([0, 1], [0.5], None), {}, TypeError, "indices must be integers"),
        (([0, 2, 1, 3], [0, 1, 2], None), {}, ValueError, "indptr must"),
        (([0, 2], [0, 0, 0], None), {}, ValueError, "indptr must"),
        (([], [], None), {}, ValueError, "from 0 to the number"),
        (([0, 1], [1], None), {}, IndexError, r"indices\[0\] is 1"),
        (([0, 1], [-1], None), {}, IndexError, r"indices\[0\] is -1"),
        (
            ([0, 1, 1], [1], None),
            {"node_rows": NodeRows([1], [[0, 1]])},
            IndexError,
            r"indices\[0\] is 1",
        ),
        (
            ([0, 1, 1, 1], [0], None),
            {"node_rows": NodeRows([1], [[0, 1]])},
            ValueError,
            "the 2 rows of node_rows, got 3",
        ),
        (
            ([0, 1], [0], None),
            {"node_rows": 2},
            TypeError,
            "node_rows must be a NodeRows or None, got int 2",
        ),
        (([0, 2], [0, 0], [3]), {}, ValueError, r"one entry per edge \(2\), got 1"),
        (([0, 2], [0, 0], [3, 3]), {}, ValueError, "distinct"),
        (([0, 2], [0, 0], [3, -3]), {}, IndexError, r"edge_ids\[1\] is -3"),
    ],
)
def test_the_constructor_checks(arrays, options, error, words):
    with pytest.raises(error, match=words):
        Edges(*arrays, **options)


def test_arrays_are_copied_and_read_only():
    indices = np.array([1, 0, 1])
    edges = Edges([0, 2, 3], indices, [5, 9, 2])
    indices[:] = 7
    assert edges.indices.tolist() == [1, 0, 1]
    assert edges.ids(np.array([2, 0])).tolist() == [2, 5]
    for array in (edges.indptr, edges.indices, edges.edge_ids):
        assert not array.flags.writeable
    shared = Edges._trusted(edges.indptr, edges.indices, edges.edge_ids)
    assert np.shares_memory(shared.indices, edges.indices)


def test_edges_left_out():
    graph = Graph.from_edges([0, 1, 2, 0, 1], [2, 2, 2, 1, 1], edge_ids=[4, 3, 2, 1, 0])
    whole = edges_along(graph, "in")
    patch = whole.without(np.array([3, 3])).patch
    assert whole.patch is None
    assert patch.rows.tolist() == [2]
    assert whole.ids(patch.left_out).tolist() == [3]
    assert whole.ids(patch.positions).tolist() == [2, 4]
    assert patch.edges.indices.tolist() == [2, 0]
    assert patch.edges.indptr.tolist() == [0, 2]


def graph_with(values, kind):
    return Graph.from_edges([0, 1, 2], [2, 2, 0], edata={"w": torch.tensor(values, dtype=kind)})


@pytest.mark.parametrize("value", [1e31, -1e31, 1e-31])
def test_sizes_that_float32_sums_cannot_hold(value):
    with pytest.raises(
        ValueError, match=r"0 or sizes from 1e-30 to 1e\+30, so that weighted sums of float32 rows"
    ):
        NeighborSampler(graph_with([0.0, 1e30, value], torch.float64).view(weight="w"), [1])
    with pytest.raises(ValueError, match="but edge 2 has"):
        edge_numbers(graph_with([0.0, 1e30, value], torch.float64), "w", "weight")


def test_sizes_at_the_limits_keep_their_precision():
    graph = graph_with([0.0, -1e30, 1e-30], torch.float64)
    assert edge_numbers(graph, "w", "weight").tolist() == [0.0, -1e30, 1e-30]
    assert NeighborSampler(graph.view(weight="w"), [-1])([2, 0]).flows[0].weight.tolist() == [
        0.0,
        -1e30,
        1e-30,
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_are_finite(value):
    with pytest.raises(ValueError, match="must be finite, but edge 1 has"):
        edge_numbers(graph_with([0.0, value, 1.0], torch.float32), "w", "weight")
    with pytest.raises(ValueError, match="finite and not negative, but edge 2 has -1"):
        edge_numbers(graph_with([0.0, 1.0, -1.0], torch.float32), "w", "prob", signed=False)
