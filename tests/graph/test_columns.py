"""Columns that samplers read: the numbers of edges, and the errors that name an edge."""

from __future__ import annotations

import pytest
import torch

from nodeflow import Graph, NeighborSampler
from nodeflow.graph._columns import edge_numbers


def graph_with(values, kind):
    return Graph.from_edges([0, 1, 2], [2, 2, 0], edata={"w": torch.tensor(values, dtype=kind)})


@pytest.mark.parametrize("value", [1e31, -1e31, 1e-31])
def test_sizes_that_float32_sums_cannot_hold(value):
    with pytest.raises(ValueError, match=r"0 or sizes from 1e-30 to 1e\+30, so that weighted sums of float32 rows"):
        NeighborSampler(graph_with([0.0, 1e30, value], torch.float64), [1], weight="w")
    with pytest.raises(ValueError, match="but edge 2 has"):
        edge_numbers(graph_with([0.0, 1e30, value], torch.float64), "w", "weight")


def test_sizes_at_the_limits_keep_their_precision():
    graph = graph_with([0.0, -1e30, 1e-30], torch.float64)
    assert edge_numbers(graph, "w", "weight").tolist() == [0.0, -1e30, 1e-30]
    assert NeighborSampler(graph, [-1], weight="w")([2, 0]).flows[0].weight.tolist() == [0.0, -1e30, 1e-30]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_are_finite(value):
    with pytest.raises(ValueError, match="must be finite, but edge 1 has"):
        edge_numbers(graph_with([0.0, value, 1.0], torch.float32), "w", "weight")
    with pytest.raises(ValueError, match="finite and not negative, but edge 2 has -1"):
        edge_numbers(graph_with([0.0, 1.0, -1.0], torch.float32), "w", "prob", signed=False)
