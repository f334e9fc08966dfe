"""Edges: the constructor checks its arrays, the trusted one does not; edges left out, and positions of ids."""

from __future__ import annotations

import numpy as np
import pytest

from nodeflow import Graph
from nodeflow.graph._edges import Edges, edges_along


@pytest.mark.parametrize(
    ("arrays", "options", "error", "words"),
    [
        (([0, 1], [0.5], None), {}, TypeError, "indices must be integers"),
        (([0, 2, 1, 3], [0, 1, 2], None), {}, ValueError, "indptr must"),
        (([0, 2], [0, 0, 0], None), {}, ValueError, "indptr must"),
        (([], [], None), {}, ValueError, "from 0 to the number"),
        (([0, 1], [1], None), {}, IndexError, r"indices\[0\] is 1"),
        (([0, 1], [-1], None), {}, IndexError, r"indices\[0\] is -1"),
        (([0, 1, 1], [1], None), {"rows_per_node": 2}, IndexError, r"indices\[0\] is 1"),
        (([0, 1, 1, 1], [0], None), {"rows_per_node": 2}, ValueError, "2 rows per node"),
        (([0, 1], [0], None), {"rows_per_node": 0}, ValueError, "rows_per_node must be at least 1"),
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
    assert edges.positions_of(np.array([2, 9])).tolist() == [2, 1]
    for array in (edges.indptr, edges.indices, edges.edge_ids):
        assert not array.flags.writeable
    shared = Edges.trusted(edges.indptr, edges.indices, edges.edge_ids)
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
