"""BernoulliSampler: every edge on its own, with the promised probability; against plain Python and
by enumeration.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from _support.sampler_reference import (
    Stream,
    chi_square,
    fingerprint,
    picked_positions,
    random_graph,
    rows_drawn,
    star,
)
from _support.views import viewed
from _support.weighted_reference import assert_unbiased_exactly, crowd, subset_table

from nodeflow import FullSampler, Graph
from nodeflow._kernels.arrays import reserve
from nodeflow.sampling import BernoulliSampler


def chance(degree: int, fanout: int = 0, rate: float = 0.0) -> Fraction:
    """Of one edge to be kept, exactly."""
    if fanout == 0:
        return Fraction(rate)
    return Fraction(1) if fanout < 0 else 1 - (1 - Fraction(1, degree)) ** fanout


def log_rejection(degree: int, fanout: int, rate: float) -> float:
    if fanout == 0:
        return math.log1p(-rate) if rate < 1 else -math.inf
    return -math.inf if fanout < 0 or degree == 1 else fanout * math.log1p(-1 / degree)


def jump(word: int, rejection: float) -> int:
    """How many edges are passed over."""
    return math.floor(math.log(((word >> 11) + 1) * 2.0**-53) / rejection)


def kept(
    graph: Graph, ids: list[int], fanout: int = 0, rate: float = 0.0, **call: int
) -> list[list[int]]:
    """The edges that distinct seeds keep in the only flow, by jumps from one to the next."""

    def draw_row(rows: list[int], key: int, v: int) -> list[int]:
        rejection = log_rejection(len(rows) or 1, fanout, rate)
        rng = Stream(key, v)
        at = 0
        found = []
        if rejection == -math.inf:
            return rows
        while (at := at + jump(rng.word(), rejection)) < len(rows):
            found.append(rows[at])
            at += 1
        return found

    return rows_drawn(graph, ids, draw_row, "bernoulli", **call)


RATES = [
    (0, 0.5),
    (0, 0.03),
    (0, 1.0),
    (1, 0.0),
    (2, 0.0),
    (7, 0.0),
    (50, 0.0),
    (-1, 0.0),
    (0, 1e-12),
]


def make(graph: Graph, fanout: int, rate: float, flows: int = 1, **options) -> BernoulliSampler:
    if fanout:
        return viewed(BernoulliSampler, graph, [fanout] * flows, **options)
    return viewed(BernoulliSampler, graph, rates=[rate] * flows, **options)


@pytest.mark.parametrize(("fanout", "rate"), RATES)
def test_equals_pure_python(fanout, rate):
    rng = np.random.default_rng(0)
    for number, graph in enumerate([random_graph(1), random_graph(2, 12, 400), star(300, hubs=4)]):
        for epoch in range(4):
            ids = rng.permutation(graph.num_nodes)[:12].tolist()
            batch = make(graph, fanout, rate, seed=number)(ids, epoch=epoch)
            batch.validate()
            assert picked_positions(batch) == kept(
                graph, ids, fanout, rate, seed=number, epoch=epoch
            )
            for v, own in zip(
                ids, batch.flows[0].weight.split(batch.flows[0].in_degrees.tolist()), strict=True
            ):
                p = chance(int(graph.in_degrees([v])), fanout, rate) if len(own) else Fraction(1)
                assert own.tolist() == pytest.approx([float(1 / p)] * len(own), rel=1e-7)


# ---- the law


@pytest.mark.parametrize(
    ("degree", "fanout", "rate"), [(4, 2, 0), (5, 1, 0), (3, 6, 0), (5, 0, 0.3), (4, 0, 0.9)]
)
def test_every_subset_is_as_likely_as_the_product(degree, fanout, rate):
    """40,000 draws over at most 32 subsets: a deviation of 5 % in all of them is found."""
    hubs = 40_000
    p = chance(degree, fanout, rate)
    batch = make(crowd([1] * degree, hubs), fanout, rate)(range(hubs))
    subsets = [s for n in range(degree + 1) for s in itertools.combinations(range(degree), n)]
    law = {s: p ** len(s) * (1 - p) ** (degree - len(s)) for s in subsets}
    table = subset_table(batch, degree)
    expected = np.array([float(chance) for chance in law.values()]) * hubs
    assert chi_square(np.array([table.get(s, 0) for s in subsets]), expected) < 1
    assert_unbiased_exactly(batch, degree, law)


def test_jumps_are_geometric_to_the_last_bits():
    """The jump is at least m just where U <= (1 - p)^m, which is checked in exact arithmetic near
    these borders.
    """
    for rate in (0.5, 0.3, 0.01, 1e-6, 1e-12, 0.999):
        rejection = math.log1p(-rate)
        for m in (1, 2, 3, 10, 1000, 10**6):
            border = (
                math.floor((1 - Fraction(rate)) ** m * 2**53)
                if m < 5000
                else round(2**53 * math.exp(m * rejection))
            )
            if border < 2**30:
                continue
            slack = border // 2**49 + 2 if m < 5000 else border // 2**40
            assert jump((border - slack - 1) << 11, rejection) >= m
            if border + slack < 2**53:
                assert jump((border + slack - 1) << 11, rejection) < m


# ---- sizes


def test_numbers_are_in_flow_order():
    src = torch.arange(3, 2003)
    graph = Graph.from_edges(
        torch.cat([src, src]), torch.cat([torch.zeros(2000), torch.full((2000,), 3.0)]).long()
    )
    degrees = [flow.in_degrees for flow in BernoulliSampler(graph, rates=[1.0, 0.01])([0, 3]).flows]
    assert degrees[0][:2].tolist() == [2000, 2000]
    assert degrees[1].max() < 60  # 20 in the mean, 9 standard errors below 60
    degrees = [flow.in_degrees for flow in BernoulliSampler(graph, [-1, 20])([0, 3]).flows]
    assert degrees[0][:2].tolist() == [2000, 2000]
    assert degrees[1].max() < 60


def test_all_and_nothing():
    graph = random_graph(3)
    full = fingerprint(FullSampler(graph, 2)([1, 2]))
    for sampler in (
        BernoulliSampler(graph, [-1, -1]),
        BernoulliSampler(graph, rates=[1, 1.0]),
        BernoulliSampler(graph, [10**6, 2**62]),  # 1 - p is 0 in float64
    ):
        assert fingerprint(sampler([1, 2])) == full
    assert BernoulliSampler(graph, rates=[1e-300, 5e-324])([1, 2]).flow_sizes == (0, 0)
    alone = Graph.from_edges([1], [0])
    assert BernoulliSampler(alone, [1])([0, 1]).flows[0].weight.tolist() == [1]
    assert BernoulliSampler(Graph([0], []), [1])([]).layer_sizes == (0, 0)


def test_more_edges_than_expected_find_room():
    """The kernel has room for six standard deviations more than the mean, and moves to a larger
    array beyond.
    """
    full = np.array([7, 8, 9])
    larger = reserve(full, 3, 2)
    assert len(larger) >= 5
    assert larger[:3].tolist() == [7, 8, 9]
    assert len(reserve(full, 2, 1)) == 3
