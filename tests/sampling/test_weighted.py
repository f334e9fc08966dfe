"""NeighborSampler with ``prob``: its exact law, its weights, and the very draws.

The proof has four steps. The laws of the methods over whole subsets, in fractions, have the
promised probabilities as marginals: Sampford's, and that of the ordered pivotal method (another
algorithm, which has the law of Deville's by a theorem). Alias tables say, in
fractions, what the weights say. The package draws exactly what a Python version of the methods
draws. And counts of whole subsets agree with the laws.

Chi-square tests have a false-alarm rate of 1e-6; one with m cells nearly always finds a relative
deviation r of all cells from n draws once n r^2 > 8 sqrt(m) + 40.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
import torch
from _support.sampler_reference import (
    Stream,
    chi_square,
    hash_of,
    key_of,
    picked_positions,
    random_graph,
)
from _support.weighted_reference import (
    assert_unbiased_exactly,
    by_rejection,
    crowd,
    draw_weighted,
    inclusion,
    law_of,
    marginals,
    pivotal,
    sampford,
    strata,
    subset_table,
    weighted_edges,
)

from nodeflow import Graph, NeighborSampler

LISTS = [
    ([1, 1, 1, 1], 2),
    ([1, 2, 3], 1),
    ([1, 2, 3, 4, 5], 2),
    ([5, 4, 3, 2, 1], 3),
    ([3, 1, 4, 1, 5, 3], 3),
    ([1, 1, 1, 7], 2),  # one edge is certain
    ([8, 4, 2, 1, 1], 3),  # a second one is, once the first is set aside
    ([2, 0, 1, 0, 1], 2),  # c w is exactly 1
    ([7, 6, 5, 4, 0, 5], 4),  # long parts on both sides of borders
    ([0, 5, 0, 0], 1),  # a single edge
]
SHORT = [  # no probability is above 1/2, and few draws are repeats: Sampford's method
    ([1, 1, 1, 1], 2),
    ([2, 1, 3], 1),
    ([1, 2, 3, 4, 5, 5, 0], 2),
    ([3, 1, 4, 1, 5, 0, 9, 2, 6, 5, 3, 5, 8, 9, 7], 3),
    ([1000, 999, 3, 998, 1, 1000], 2),
]


# ---- the law


def test_the_pivotal_law_has_the_promised_marginals():
    """Deville's method has the law of the ordered pivotal method (Chauvet 2012)."""
    rng = random.Random(0)
    lists = list(LISTS)
    for _ in range(60):
        weights = [rng.choice([0, 1, 2, 3, 7, 20]) for _ in range(rng.randint(2, 6))]
        k = rng.randint(1, len(weights))
        if sum(w > 0 for w in weights) > k:
            lists.append((weights, k))
    for weights, k in lists:
        pi = inclusion(weights, k)
        law = pivotal(pi)
        assert sum(pi) == k
        assert sum(law.values()) == 1
        assert marginals(law, len(pi)) == pi
        assert {len(subset) for subset in law} == {k}


@pytest.mark.parametrize(("weights", "k"), SHORT)
def test_sampfords_law_has_the_promised_marginals(weights, k):
    assert by_rejection(weights, k)
    law = sampford(weights, k)
    assert sum(law.values()) == 1
    assert marginals(law, len(weights)) == inclusion(weights, k)
    # as it is drawn: in proportion to w, each but the first stays with (1 - top) / (1 - pi), else
    # all are drawn anew
    single = [Fraction(w, sum(weights)) for w in weights]
    top = max(single) * k
    drawn = defaultdict(Fraction)
    for places in itertools.permutations(range(len(weights)), k):
        stay = math.prod((1 - top) / (1 - k * single[i]) for i in places[1:])
        drawn[tuple(sorted(places))] += math.prod(single[i] for i in places) * stay
    total = sum(drawn.values())
    assert {subset: p / total for subset, p in drawn.items() if p} == law
    squares = sum(p * p for p in single)
    assert -math.log(total) <= k * (k - 1) * (max(single) + squares / 2) * 2  # attempts are few


def test_sampfords_marginals_are_exact_for_random_weights():
    """Also from weights that are not whole numbers: float64 values are fractions."""
    rng = np.random.default_rng(7)
    for k in (2, 3, 4):
        weights = (rng.random(11) * (rng.random(11) < 0.9) + 1e-3).tolist()
        assert marginals(sampford(weights, k), 11) == [
            k * Fraction(w) / sum(map(Fraction, weights)) for w in weights
        ]


@pytest.mark.parametrize(("weights", "k"), [*LISTS, *SHORT])
def test_every_subset_is_as_likely_as_the_law_says(weights, k):
    """40,000 draws: a subset that is drawn 5 % too often or too rarely among 20 is found
    (noncentrality 100).
    """
    law = law_of(weights, k)
    hubs = 40_000
    batch = NeighborSampler(crowd(weights, hubs), [k], prob="w")(range(hubs))
    table = subset_table(batch, len(weights))
    assert set(table) <= set(law)  # what has no probability is never drawn
    if len(law) > 1:
        subsets = sorted(law)
        observed = np.array([table.get(subset, 0) for subset in subsets])
        assert chi_square(observed, np.array([float(law[subset]) * hubs for subset in subsets])) < 1


@pytest.mark.parametrize(
    ("weights", "k"), [([1, 2, 3], 2), ([3, 0, 1, 4], 2), ([5], 3), ([1, 9, 0], 3)]
)
def test_with_replacement_every_sequence_is_as_likely_as_the_product(weights, k):
    hubs = 40_000
    d = len(weights)
    batch = NeighborSampler(crowd(weights, hubs), [k], prob="w", replace=True)(range(hubs))
    rows = batch.flows[0].parent_eid.numpy().reshape(hubs, k) % d
    counts = np.bincount((rows * d ** np.arange(k)).sum(1), minlength=d**k)
    single = np.array(weights) / sum(weights)
    chance = np.array([math.prod(single[c // d**j % d] for j in range(k)) for c in range(d**k)])
    assert not counts[chance == 0].any()
    # of Hansen and Hurwitz 1943
    wanted = 1 / (k * torch.from_numpy(single)[rows.ravel()])
    torch.testing.assert_close(batch.flows[0].weight.double(), wanted, rtol=1e-7, atol=0)
    if (chance > 0).sum() > 1:
        assert chi_square(counts[chance > 0], chance[chance > 0] * hubs) < 1


# ---- the weights


@pytest.mark.parametrize(("weights", "k"), [*LISTS, *SHORT[:3]])
def test_unbiased_exactly(weights, k):
    """Probability times estimate over all subsets is the full sum; the package has these weights
    for each subset.
    """
    batch = NeighborSampler(crowd(weights, 8000), [k], prob="w")(range(8000))
    assert_unbiased_exactly(batch, len(weights), law_of(weights, k))
    pi = torch.tensor([float(p) for p in inclusion(weights, k)], dtype=torch.float64)
    flow = batch.flows[0]
    wanted = 1 / pi[flow.parent_eid % len(weights)]
    torch.testing.assert_close(flow.weight.double(), wanted, rtol=2**-23, atol=0)
    graph = crowd(weights, 2)
    graph.edata["a"] = torch.arange(2.0 * len(weights)) - 3
    possible = torch.tensor(weights * 2) > 0
    sampler = NeighborSampler(graph.view(weight="a"), [k], prob="w")
    assert sampler.estimand().equal(graph.edata["a"].double() * possible)


# ---- the very same draws


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_equals_pure_python(direction, replace):
    rng = np.random.default_rng(1)
    for number, fanout in enumerate([1, 2, 3, 5, 8, 20, -1]):
        graph = random_graph(number, 30, 400)
        weights = rng.random(400) ** (number % 4 + 0.5) * (rng.random(400) < 0.85)
        graph.edata["w"] = torch.from_numpy(
            weights.astype(np.float32 if number % 2 else np.float64)
        )
        for epoch in range(3):
            ids = rng.permutation(30)[:12].tolist()
            sampler = NeighborSampler(
                graph.view(direction), [fanout], prob="w", replace=replace, seed=number
            )
            batch = sampler(ids, epoch=epoch)
            batch.validate()
            run = {"direction": direction, "seed": number, "epoch": epoch}
            assert picked_positions(batch) == weighted_edges(
                graph, "w", fanout, ids, replace=replace, **run
            )


@pytest.mark.parametrize("order", ["mixed", "ascending", "descending", "rare"])
def test_long_lists_equal_pure_python(order):
    """Lists of several hundred edges, drawn from in both ways."""
    rng = np.random.default_rng(2)
    lists = [rng.random(n) ** 4 for n in (7, 8, 9, 33, 500, 777)]
    if order in ("ascending", "descending"):
        lists = [np.sort(w)[:: 1 if order == "ascending" else -1] for w in lists]
    elif order == "rare":
        lists = [w * (rng.random(len(w)) < 0.1) for w in lists]
    dst = np.repeat(np.arange(6), [len(w) for w in lists])
    column = torch.from_numpy(np.concatenate(lists).astype(np.float32))
    graph = Graph.from_edges(np.arange(len(dst)) % 50, dst, num_nodes=50, edata={"w": column})
    for fanout, replace, epoch in itertools.product([1, 7, 40], [False, True], range(8)):
        batch = NeighborSampler(graph, [fanout], prob="w", replace=replace)(range(6), epoch=epoch)
        expected = weighted_edges(graph, "w", fanout, range(6), replace=replace, epoch=epoch)
        assert picked_positions(batch) == expected


# ---- hubs


@pytest.mark.parametrize("replace", [False, True])
def test_points_have_all_their_bits(replace):
    """On 300,000 edges 2 % of the draws depend on the bits of a point beyond 24, and so some 40 of
    these 2,000.

    Without replacement they are too many for Sampford's method.
    """
    degree = 300_000
    k = 2000
    weights = np.random.default_rng(5).random(degree)
    batch = NeighborSampler(crowd(weights, 1, np.float64), [k], prob="w", replace=replace)([0])
    key = key_of(key_of(0, 0, 0, hash_of([0])), 0)
    if replace:
        expected = draw_weighted(weights.tolist(), k, True, key, 0)
    else:
        expected = strata(weights.tolist(), k, Stream(key, 0))
    assert picked_positions(batch)[0] == expected


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("kind", "k"), [("mild", 400), ("heavy", 200), ("mild", 120)])
def test_hub_of_70_000(kind, k, replace):
    """ "heavy" has a few edges that are certain; 120 are drawn by Sampford's method, 400 are too
    many for it.
    """
    rng = np.random.default_rng(3)
    degree = 70_000
    weights = (rng.random(degree) if kind == "mild" else rng.pareto(1.1, degree)).astype(np.float32)
    weights[rng.random(degree) < 0.1] = 0
    assert by_rejection(weights.tolist(), k) == (k == 120)
    batch = NeighborSampler(crowd(weights, 1), [k], prob="w", replace=replace)([0])
    expected = draw_weighted(
        weights.tolist(), k, replace, key_of(key_of(0, 0, 0, hash_of([0])), 0), 0
    )
    assert picked_positions(batch)[0] == expected
    w = weights.astype(np.float64)
    pi = (
        k * w / w.sum() if replace else np.array([float(p) for p in inclusion(weights.tolist(), k)])
    )
    np.testing.assert_allclose(batch.flows[0].weight, 1 / pi[expected], rtol=1e-6)
