"""Probabilities min(1, c w) that add up to k per row: against exact fractions, and at the ends of the number range."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.weighted_reference import inclusion
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow import Graph, NeighborSampler
from nodeflow.sampling.base import inclusion_probabilities

rows_of_weights = st.lists(st.lists(st.integers(0, 40) | st.integers(0, 10**9), max_size=12), max_size=6)
wild = st.lists(st.floats(0, 1.7e308) | st.sampled_from([0.0, 1.0, 1e-300, 5e-324, 1.7e308]), min_size=1, max_size=30)


@settings(deadline=None)
@given(rows_of_weights, st.data())
def test_they_are_the_exact_fractions(rows: list[list[int]], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(-1, 8)) for _ in rows]
    indptr = np.cumsum([0, *map(len, rows)])
    found = inclusion_probabilities(np.array([w for row in rows for w in row], np.float64), indptr, counts)
    assert found.dtype == torch.float64
    wanted = [p for row, k in zip(rows, counts, strict=True) for p in inclusion(row, len(row) if k < 0 else k)]
    np.testing.assert_allclose(found, [float(p) for p in wanted], rtol=1e-13)
    assert all(p <= 1 for p in found)
    assert all(p == 1 for p, exact in zip(found, wanted, strict=True) if exact == 1)


@settings(deadline=None)
@given(wild, st.integers(1, 12))
def test_weights_of_any_size(weights: list[float], k: int) -> None:
    prob = inclusion_probabilities(weights, [0, len(weights)], k).numpy()
    positive = sum(w > 0 for w in weights)
    assert prob.sum() == pytest.approx(min(k, positive), rel=1e-12)
    assert ((prob >= 0) & (prob <= 1)).all()
    assert (prob[np.array(weights) == 0] == 0).all()
    order = np.argsort(weights, kind="stable")
    assert (np.diff(prob[order]) >= 0).all()  # a larger weight is not drawn less often


def test_they_are_those_that_neighbor_sampling_draws_with() -> None:
    """Weights of drawn edges are 1 / probability, by Sampford's method and by Deville's."""
    rng = np.random.default_rng(1)
    weight = rng.exponential(size=600) * (rng.random(600) < 0.9)
    dst = np.sort(rng.integers(6, size=600) ** 2 // 5)
    graph = Graph.from_edges(rng.integers(50, size=600), dst, num_nodes=50, edata={"w": torch.from_numpy(weight)})
    prob = inclusion_probabilities(weight, np.searchsorted(dst, np.arange(51)), 3)
    seen = set()
    for epoch in range(50):
        flow = NeighborSampler(graph, [3], prob="w")(range(50), epoch=epoch).flows[0]
        np.testing.assert_allclose(1 / flow.weight, prob[flow.parent_eid], rtol=1e-6)
        seen |= set(flow.parent_eid.tolist())
    assert len(seen) > 200


def test_floats_integers_and_lists_are_taken() -> None:
    wanted = [0.5, 0.5, 1.0]
    for weight in ([1, 1, 2], torch.tensor([1.0, 1.0, 2.0]), np.array([1, 1, 2], np.int32)):
        assert inclusion_probabilities(weight, torch.tensor([0, 3]), 2).tolist() == wanted
    assert inclusion_probabilities([], [0, 0], 3).tolist() == []


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"weight must be finite and not negative, but weight\[1\] is -2"):
        inclusion_probabilities([1.0, -2.0], [0, 2], 1)
    with pytest.raises(ValueError, match=r"weight\[0\] is nan"):
        inclusion_probabilities([np.nan], [0, 1], 1)
    with pytest.raises(ValueError, match="indptr must go from 0 to the number of edges 2, got 0 to 1"):
        inclusion_probabilities([1.0, 2.0], [0, 1], 1)
    with pytest.raises(ValueError, match=r"k must be an integer, or one per row \(1\), got shape \(2,\)"):
        inclusion_probabilities([1.0, 2.0], [0, 2], [1, 2])
    with pytest.raises(ValueError, match="but k of row 1 is -2"):
        inclusion_probabilities([1.0, 2.0], [0, 1, 2], [1, -2])
    with pytest.raises(TypeError, match=r"k must be an integer, or one per row, got float 1\.5"):
        inclusion_probabilities([1.0, 2.0], [0, 2], 1.5)
    with pytest.raises(TypeError, match="weight must be one-dimensional numbers"):
        inclusion_probabilities([[1.0], [2.0]], [0, 2], 1)
