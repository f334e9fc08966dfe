"""Draws from candidates with unequal probabilities: against exact fractions, and a second method
with the same law.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.layerwise_reference import DRAWS, drawn, inclusion, law, pivotal
from _support.sampler_reference import chi_square, key_of
from _support.weighted_reference import inclusion as inclusion_of_row
from hypothesis import given, strategies as st

from nodeflow import Graph, NeighborSampler
from nodeflow.sampling._pps import (
    ladder,
    laid_out,
    list_probabilities,
    pick,
    pick_systematic,
    pick_with_replacement,
    scale_of,
)
from nodeflow.sampling.base import inclusion_probabilities

whole_scores = st.lists(st.integers(0, 40) | st.integers(0, 10**9), min_size=1, max_size=30)
wild_scores = st.lists(
    st.floats(0, 1e308) | st.sampled_from([0.0, 1.0, 1e-300, 5e-324]), min_size=1, max_size=30
)


@given(whole_scores, st.integers(1, 12))
def test_inclusion_probabilities_are_exact(scores, size):
    found = list_probabilities(np.array(scores, np.float64), size)
    wanted = inclusion(scores, size)
    np.testing.assert_allclose(found, [float(p) for p in wanted], rtol=1e-13)
    assert [p == 1 for p in found] == [p == 1 or p > 1 - Fraction(1, 10**15) for p in wanted]


@given(wild_scores, st.integers(1, 12), st.sampled_from(DRAWS), st.integers(0, 2**64 - 1))
def test_scores_of_any_size(scores, size, draw, key):
    """Whatever the scores: the sizes are right, nothing is drawn twice, and nothing that has no
    chance.
    """
    values = np.array(scores)
    ids = np.arange(len(scores)) * 7
    picked = pick(values, ids, size, draw, key)
    positive = int(np.count_nonzero(values * scale_of(values)))
    assert (np.diff(picked.places) > 0).all()
    assert (values[picked.places] > 0).all()
    assert (picked.mean > 0).all()
    if draw == "replacement":
        assert picked.times.sum() == (size if positive else 0)
    elif draw == "systematic":
        assert len(picked.places) == min(size, positive)
    prob = list_probabilities(values, size)
    assert prob.sum() == pytest.approx(min(size, positive), rel=1e-12)
    assert prob.max() <= 1


@examples(80)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=12),
    st.integers(1, 8),
    st.sampled_from(DRAWS),
    st.data(),
)
def test_the_draws_are_those_of_the_reference(scores, size, draw, data):
    ids = data.draw(st.permutations(range(100, 100 + len(scores))))
    key = data.draw(st.integers(0, 2**64 - 1))
    picked = pick(np.array(scores, np.float64), np.array(ids), size, draw, key)
    wanted = drawn(ids, scores, size, draw, key)
    assert dict(
        zip(np.array(ids)[picked.places].tolist(), picked.times.tolist(), strict=True)
    ) == dict(wanted)


SHAPES = [
    ([3, 1, 1, 5, 2, 2], 3),
    ([1, 1, 1, 1, 1, 1], 3),
    ([2, 3, 4, 3, 3], 2),
    ([5, 4, 3, 2, 1, 1], 4),
    ([1] * 6, 5),
]


@pytest.mark.parametrize(("scores", "size"), SHAPES)
def test_systematic_draws_have_the_pivotal_law(scores, size):
    """20,000 draws in one fixed order against the law of a different method, over whole sets.

    A set of probability 0.05 drawn one quarter too often is surely found (20,000 * 0.05 * 0.25^2 =
    62). Drawing a unit across a border again with chance b instead of b / (1 - a), or not at all,
    is far beyond that.
    """
    values = np.array(scores, np.float64)
    prob = list_probabilities(values, size)
    line = laid_out(prob, np.arange(len(scores)), 3)
    exact = inclusion(scores, size)
    order = [*line.certain.tolist(), *line.order.tolist()]
    table = pivotal({u: exact[u] for u in order})
    observed = Counter(
        tuple((u, 1) for u in pick_systematic(line, prob, key_of(k)).places.tolist())
        for k in range(20_000)
    )
    assert set(observed) <= set(table)
    outcomes = [o for o in table if table[o] * 20_000 > 5]
    counts = [observed[o] for o in outcomes]
    chances = np.array([float(table[o]) for o in outcomes])
    assert sum(counts) > 19_900
    if len(outcomes) > 1:
        assert chi_square(np.array(counts), chances / chances.sum() * sum(counts)) < 1


@pytest.mark.parametrize("draw", DRAWS)
def test_sets_have_their_law(draw):
    """10,000 draws over whole outcomes; one of probability 0.1 that is 30 % too frequent is surely
    found.
    """
    scores = [4, 0, 1, 3]
    table = law(range(4), scores, 2, draw)
    observed = Counter[object]()
    for k in range(10_000):
        picked = pick(np.array(scores, np.float64), np.arange(4), 2, draw, key_of(k))
        observed[tuple(zip(picked.places.tolist(), picked.times.tolist(), strict=True))] += 1
    assert set(observed) == set(table)
    counts = np.array([observed[o] for o in table])
    assert chi_square(counts, np.array([float(p) for p in table.values()]) * 10_000) < 1


@pytest.mark.parametrize("bits", [0, 1, 5, 12])
def test_a_guide_changes_nothing_but_the_time(bits):
    rng = np.random.default_rng(bits)
    scores = np.exp(5 * rng.normal(size=700)) * (rng.random(700) < 0.5)
    plain, guided = (pick_with_replacement(ladder(scores, b), 5000, 9) for b in (0, bits))
    for one, other in zip(plain, guided, strict=True):
        assert np.array_equal(one, other)
    assert (scores[plain.places] > 0).all()


def test_the_order_is_random_and_only_the_ids_decide_it():
    prob = np.full(50_000, 1 / 2)
    ids = np.random.default_rng(0).permutation(10**6)[:50_000]
    line = laid_out(prob, ids, 1)
    turned = laid_out(prob, ids[::-1].copy(), 1)
    assert np.array_equal(ids[line.order], ids[::-1][turned.order])
    assert np.array_equal(np.sort(line.order), np.arange(50_000))
    assert not np.array_equal(line.order, laid_out(prob, ids, 2).order)
    # where the ids below 500,000 stand: 50 bins of 1,000
    small = (ids[line.order] < 500_000).reshape(50, 1000).sum(1)
    assert np.abs(small - small.mean()).max() < 5.5 * np.sqrt(250)


@pytest.mark.parametrize("size", [1, 70_000])
def test_many_candidates(size):
    scores = np.random.default_rng(0).random(100_000)
    picked = pick(scores, np.arange(100_000), size, "systematic", 5)
    assert len(np.unique(picked.places)) == size
    np.testing.assert_allclose(
        (1 / picked.mean * scores[picked.places]).sum(), scores.sum(), rtol=3 / np.sqrt(size)
    )


rows_of_weights = st.lists(
    st.lists(st.integers(0, 40) | st.integers(0, 10**9), max_size=12), max_size=6
)
wild = st.lists(
    st.floats(0, 1.7e308) | st.sampled_from([0.0, 1.0, 1e-300, 5e-324, 1.7e308]),
    min_size=1,
    max_size=30,
)


@given(rows_of_weights, st.data())
def test_they_are_the_exact_fractions(rows, data):
    counts = [data.draw(st.integers(-1, 8)) for _ in rows]
    indptr = np.cumsum([0, *map(len, rows)])
    found = inclusion_probabilities(
        np.array([w for row in rows for w in row], np.float64), indptr, counts
    )
    assert found.dtype == torch.float64
    wanted = [
        p
        for row, k in zip(rows, counts, strict=True)
        for p in inclusion_of_row(row, len(row) if k < 0 else k)
    ]
    np.testing.assert_allclose(found, [float(p) for p in wanted], rtol=1e-13)
    assert all(p <= 1 for p in found)
    # where c w is 1 and not more, rounding may leave it a bit or two below: 31 of 93, three times
    assert all(p >= 1 - 2**-51 for p, exact in zip(found, wanted, strict=True) if exact == 1)


@given(wild, st.integers(1, 12))
def test_weights_of_any_size(weights, k):
    prob = inclusion_probabilities(weights, [0, len(weights)], k).numpy()
    positive = sum(w > 0 for w in weights)
    assert prob.sum() == pytest.approx(min(k, positive), rel=1e-12)
    assert ((prob >= 0) & (prob <= 1)).all()
    assert (prob[np.array(weights) == 0] == 0).all()
    order = np.argsort(weights, kind="stable")
    assert (np.diff(prob[order]) >= 0).all()  # a larger weight is not drawn less often


def test_they_are_those_that_neighbor_sampling_draws_with():
    """Weights of drawn edges are 1 / probability, by Sampford's method and by Deville's."""
    rng = np.random.default_rng(1)
    weight = rng.exponential(size=600) * (rng.random(600) < 0.9)
    dst = np.sort(rng.integers(6, size=600) ** 2 // 5)
    graph = Graph.from_edges(
        rng.integers(50, size=600), dst, num_nodes=50, edata={"w": torch.from_numpy(weight)}
    )
    prob = inclusion_probabilities(weight, np.searchsorted(dst, np.arange(51)), 3)
    seen = set()
    for epoch in range(50):
        flow = NeighborSampler(graph, [3], prob="w")(range(50), epoch=epoch).flows[0]
        np.testing.assert_allclose(1 / flow.weight, prob[flow.parent_eid], rtol=1e-6)
        seen |= set(flow.parent_eid.tolist())
    assert len(seen) > 200


def test_floats_integers_and_lists_are_taken():
    wanted = [0.5, 0.5, 1.0]
    for weight in ([1, 1, 2], torch.tensor([1.0, 1.0, 2.0]), np.array([1, 1, 2], np.int32)):
        assert inclusion_probabilities(weight, torch.tensor([0, 3]), 2).tolist() == wanted
    assert inclusion_probabilities([], [0, 0], 3).tolist() == []
