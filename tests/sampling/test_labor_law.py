"""The law of LABOR: weighted sums are unbiased and have the paper's variance, by integration over
all random numbers.

What is integrated is the reference; ``test_labor.py`` shows that the sampler is the reference, with
its weights.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from _support.labor_reference import (
    cells,
    draw_sequential,
    expected_sources,
    importance,
    poisson_probability,
    solve,
)

from nodeflow import Graph
from nodeflow.sampling import LaborSampler

# sources of three destinations that share some; one more has no more than the fanout, and some have
# a source twice
ROWS = {
    "shared": [[4, 5, 6, 7, 8], [5, 6, 9], [4, 9, 8, 6], [5, 7]],
    "nested": [[4, 5, 6, 7, 8, 9], [4, 5, 6], [4]],
    "repeated": [[4, 4, 5, 6], [4, 5, 5], [6, 5, 4]],
}
VALUES = dict(zip(range(4, 10), [1.0, -2.0, 3.5, 7.0, 0.25, 11.0], strict=True))


def estimates(rows: list[list[int]], drawn: list[dict[int, object]]) -> list[float]:
    return [
        sum(float(inverse) * VALUES[row[j]] for j, inverse in picks.items())
        for row, picks in zip(rows, drawn, strict=True)
    ]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("iterations", [0, 1, 3, "converged"])
@pytest.mark.parametrize("k", [1, 2])
def test_poisson_sums_are_unbiased_with_the_variance_of_the_paper(name, iterations, k):
    """Mean, variance, and covariance of two destinations: sum over shared sources of (1 / max(p,
    p') - 1) x^2.
    """
    rows = ROWS[name]
    chance = [[float(p) for p in ps] for ps in poisson_probability(rows, k, iterations)]
    total = 0.0
    mean = np.zeros(len(rows))
    second = np.zeros((len(rows), len(rows)))
    for probability, drawn in cells(rows, k, iterations):
        value = np.array(estimates(rows, drawn))
        total += float(probability)
        mean += float(probability) * value
        second += float(probability) * np.outer(value, value)
    full = np.array([sum(VALUES[t] for t in row) for row in rows])
    assert total == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(mean, full, rtol=0, atol=1e-12)
    expected = np.zeros_like(second)
    for (a, row), (b, other) in itertools.product(enumerate(rows), repeat=2):
        for (t, p), (u, q) in itertools.product(
            zip(row, chance[a], strict=True), zip(other, chance[b], strict=True)
        ):
            if t == u:  # several edges from one source are drawn together
                expected[a, b] += (1 / max(p, q) - 1) * VALUES[t] ** 2
    np.testing.assert_allclose(second - np.outer(mean, mean), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_sequential_sums_are_unbiased(name, k):
    """All orders of the numbers are equally likely, and for LABOR-0 the draw depends on nothing
    else.
    """
    rows = ROWS[name]
    every = sorted({(t, row[:j].count(t)) for row in rows for j, t in enumerate(row)})
    mean = np.zeros(len(rows))
    orders = list(itertools.permutations(range(len(every))))
    for order in orders:
        rank = dict(zip(every, order, strict=True))
        drawn = draw_sequential(rows, k, 0, lambda t, copy, r=rank: Fraction(r[t, copy], len(r)))
        assert [len(picks) for picks in drawn] == [min(k, len(row)) for row in rows]
        mean += estimates(rows, drawn)
    full = [sum(VALUES[t] for t in row) for row in rows]
    np.testing.assert_allclose(mean / len(orders), full, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("iterations", [1, "converged"])
def test_sequential_weights_with_importance_are_unbiased(name, iterations):
    """Every edge counts 1 in the mean over its own number, whatever the other numbers are.

    Where its number passes another's rank the draw may change; between these points the count is
    constant.
    """
    rows = ROWS[name]
    rng = np.random.default_rng(0)
    pi, _ = importance(rows, 2, iterations)
    for _ in range(10):
        number = {(t, copy): x for t in range(4, 10) for copy, x in enumerate(rng.random(3))}
        for v, row in enumerate(rows):
            copies = [(t, row[:j].count(t)) for j, t in enumerate(row)]
            for j, edge in enumerate(copies):
                others = [number[e] / pi[e[0]] * pi[edge[0]] for e in copies if e != edge]
                ends = sorted({0.0, 1.0, *(x for x in others if x < 1)})
                mean = 0.0
                for low, high in itertools.pairwise(ends):
                    moved = {**number, edge: (low + high) / 2}
                    drawn = draw_sequential(
                        rows, 2, iterations, lambda t, copy, m=moved: m[t, copy]
                    )
                    mean += (high - low) * drawn[v].get(j, 0)
                assert mean == pytest.approx(1, abs=1e-12)


# ---- importance


@pytest.mark.parametrize("iterations", [0, 1, 2, "converged"])
def test_weights_keep_the_variance_of_neighbour_sampling(iterations):
    """For every destination the weights 1 / p of all its edges add up to d^2 / k, the condition c_s
    is solved from.

    So sum (1/p - 1), the variance for uncorrelated values of variance 1, is d^2/k (1 - k/d), that
    of k of d without replacement.
    """
    rng = np.random.default_rng(1)
    k = 3
    rows = [sorted(rng.choice(30, d, replace=False) + 6) for d in (12, 8, 5, 3, 20, 4)]
    for row, chance in zip(rows, poisson_probability(rows, k, iterations), strict=True):
        assert float(sum(1 / p for p in chance)) == pytest.approx(
            len(row) ** 2 / min(k, len(row)), rel=1e-6
        )


def test_solving_with_probabilities_at_one():
    """By hand: pi = (4, 1, 1, 1), k = 2 of 4: the first has probability 1, the others 3 / (8 -
    1).
    """
    assert solve([4, 1, 1, 1], 2) == pytest.approx(3 / 7)
    assert solve([1, 1, 1, 1], 2) == pytest.approx(1 / 2)
    assert solve([0.5, 2], 2) == 2


def test_rounds_lower_the_number_of_sources():
    """LABOR-* <= LABOR-2 <= LABOR-1 <= LABOR-0, which the fixed point iteration guarantees, on
    random rows.
    """
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = [rng.choice(40, rng.integers(1, 15), replace=False).tolist() for _ in range(10)]
        sizes = [expected_sources(rows, 3, i) for i in (0, 1, 2, 3, "converged")]
        assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(sizes))


# ---- in the mean, with the public tool


def test_hajek_estimates_the_mean_of_equal_values_exactly():
    """And trades bias for that: a destination that draws nothing counts 0, with probability (1 -
    k/d)^d.
    """
    graph = Graph.from_edges(range(1, 5), [0] * 4)
    sampler = LaborSampler(graph, [1], estimator="hajek")
    sums = np.array([float(sampler([0], epoch=k).flows[0].weight.sum()) for k in range(1000)])
    assert set(sums.round(5)) == {0.0, 4.0}
    chance = 0.75**4
    assert abs((sums == 0).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / 1000)
