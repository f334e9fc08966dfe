"""Statistics of the draws: every subset (or sequence) equally likely, and all draws independent of
each other.

Every test compares counts with their expectation by chi-square at a false-alarm rate of 1e-6 (about
60 such tests: 6e-5 together); seeds are fixed, so the outcome never varies. ``test_planted.py``
plants the faults these tests are to find and shows that they do. Power, where nothing else is said:
a chi-square test with m cells nearly always finds a relative deviation r of all cells from n draws
once n r^2 > 8 sqrt(m) + 40.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from _support.layerwise_reference import DRAWS
from _support.sampler_reference import chi_square, star
from _support.views import viewed
from _support.weighted_reference import assert_unbiased_exactly, uniform_law

from nodeflow import (
    BernoulliSampler,
    FastGCNSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    NeighborSampler,
    RandomWalkSampler,
    ShadowSampler,
    TemporalNeighborSampler,
)
from nodeflow.sampling.base import SamplerBase


def drawn(
    degree: int, fanout: int, *, hubs: int, replace: bool = False, seed: int = 0, **run
) -> np.ndarray:
    """Positions that each of many like nodes draws, ``[hubs, fanout]``."""
    batch = NeighborSampler(star(degree, hubs), [fanout], replace=replace, seed=seed)(
        range(hubs), **run
    )
    rows = batch.flows[0].parent_eid.numpy().reshape(hubs, fanout)
    return rows - np.arange(hubs)[:, None] * degree


def subset_counts(rows: np.ndarray, degree: int, fanout: int) -> np.ndarray:
    codes = np.bitwise_or.reduce(1 << rows, axis=1)
    every = [
        sum(1 << p for p in subset) for subset in itertools.combinations(range(degree), fanout)
    ]
    found = dict(zip(*(a.tolist() for a in np.unique(codes, return_counts=True)), strict=True))
    assert set(found) <= set(every)
    return np.array([found.get(code, 0) for code in every])


SHAPES = [
    (2, 1),
    (3, 1),
    (3, 2),
    (5, 1),
    (5, 2),
    (5, 3),
    (5, 4),
    (7, 3),
    (8, 7),
    (10, 2),
    (10, 5),
    (13, 12),
    (12, 6),
]


@pytest.mark.parametrize(("degree", "fanout"), SHAPES)
def test_every_subset_is_equally_likely(degree, fanout):
    cells = math.comb(degree, fanout)
    # 200 draws per cell: an imbalance of 20 % between subsets is found even with 924 cells, 3 %
    # with two
    hubs = max(100_000, 200 * cells)
    assert chi_square(subset_counts(drawn(degree, fanout, hubs=hubs), degree, fanout)) < 1


def test_every_subset_is_equally_likely_down_the_flows():
    """Seven nodes that all have the same seven in-neighbours: each flow draws for all of them."""
    nodes = np.arange(7)
    graph = Graph.from_edges(np.tile(nodes, 7), np.repeat(nodes, 7))
    for options in ({}, {"include_dst": False}):
        rows: list[list[np.ndarray]] = [[], [], []]
        for epoch in range(1000):
            batch = viewed(NeighborSampler, graph, [3, 3, 3], **options)(nodes, epoch=epoch)
            for i, flow in enumerate(batch.flows):
                rows[i].append(flow.parent_eid.numpy().reshape(-1, 3) % 7)
        for flow_rows in rows:
            assert chi_square(subset_counts(np.concatenate(flow_rows), 7, 3)) < 1


@pytest.mark.parametrize(
    ("degree", "fanout"), [(1, 3), (2, 1), (2, 3), (2, 5), (3, 2), (3, 4), (5, 3), (7, 2)]
)
def test_with_replacement_every_sequence_is_equally_likely(degree, fanout):
    rows = drawn(degree, fanout, hubs=100_000, replace=True)
    counts = np.bincount((rows * degree ** np.arange(fanout)).sum(1), minlength=degree**fanout)
    assert counts.size == degree**fanout
    if degree > 1:
        assert chi_square(counts) < 1


@pytest.mark.parametrize("replace", [False, True])
def test_weighted_sums_are_unbiased_exactly(replace):
    batch = NeighborSampler(star(5, hubs=1000), [2], replace=replace)(range(1000))
    assert_unbiased_exactly(batch, 5, uniform_law(range(5), 2, replace=replace))


# ---- hubs


# a sampler, the number of hubs, of calls, and of edges that all calls draw in the mean (None:
# repeats count once)
HUBS: dict[str, tuple[Callable[[Graph], SamplerBase], int, int, int | None]] = {
    "bernoulli": (partial(BernoulliSampler, rates=[0.03]), 1, 300, 630_000),
    "random walk": (
        partial(RandomWalkSampler, num_flows=1, num_walks=40, walk_length=1),
        20,
        25,
        20_000,
    ),
}
for fanout, replace in itertools.product([1, 10, 40], [False, True]):
    number = 250 if fanout == 40 else 1000
    uniform = partial(NeighborSampler, fanouts=[fanout], replace=replace)
    HUBS[f"neighbor, {fanout}, {replace=}"] = (uniform, 20, number, 20 * number * fanout)
for kind, draw in itertools.product([LayerSampler, LadiesSampler, FastGCNSampler], DRAWS):
    layer = partial(kind, layer_sizes=[2000], draw=draw)
    HUBS[f"{kind.__name__}, {draw}"] = (layer, 1, 20, None if draw == "replacement" else 40_000)
for method in ("poisson", "sequential"):
    HUBS[f"labor, {method}"] = (partial(LaborSampler, fanouts=[200], method=method), 1, 100, 20_000)


@pytest.mark.parametrize("name", HUBS)
def test_hub_of_70_000(name):
    """Beyond 16 bits: a modulo of 16 random bits never draws the last 4,464 edges, or draws some
    twice as often.

    64 bins of about 1,094 edges. With 200,000 draws a bin drawn 25 % too often has noncentrality
    195 and is always found, with 40,000 one drawn half as often again (156), with 20,000 one drawn
    twice as often (312).
    """
    make, hubs, calls, mean = HUBS[name]
    degree = 70_000
    sampler = make(star(degree, hubs))
    flows = [sampler(range(hubs), batch_number=k).flows[0] for k in range(calls)]
    rows = torch.cat([flow.src_layer.parent_nid[flow.indices] for flow in flows]).numpy() - hubs
    if name == "random walk":
        rows = np.repeat(rows, torch.cat([flow.data["visits"] for flow in flows]).numpy())
    edges = np.linspace(0, degree, 65).astype(np.int64)
    assert rows.min() >= 0
    assert rows.max() < degree
    assert mean is None or abs(len(rows) - mean) < 5 * math.sqrt(mean)
    assert chi_square(np.histogram(rows, bins=edges)[0], np.diff(edges) / degree * len(rows)) < 1
    # the lowest bits must be fair too
    assert chi_square(np.bincount(rows % 16, minlength=16)) < 1


@pytest.mark.parametrize(
    ("degree", "fanout", "hubs"),
    [(5000, 1000, 400), (100, 33, 20_000), (100, 99, 20_000), (65, 64, 20_000)],
)
def test_hashed_draws(degree, fanout, hubs):
    """Fanouts beyond the scan: no edge twice, each edge equally often, each pair of neighbouring
    edges too.

    The counts of a sample without replacement vary less than multinomial ones, by the factor 1 -
    fanout / degree, by which the statistic is scaled back. A planted fault that favours the last
    edge of 100 by one half is always found.
    """
    rows = drawn(degree, fanout, hubs=hubs)
    rows.sort(axis=1)
    assert (np.diff(rows, axis=1) > 0).all()
    counts = np.bincount(rows.ravel(), minlength=degree)
    spread = (1 - fanout / degree) * degree / (degree - 1)
    assert chi_square(counts) / spread < 1
    # how many of edges e and e + 1 are drawn: hypergeometric in expectation, within 5.5 sigma over
    # all pairs
    both = (np.diff(rows, axis=1) == 1).sum(1)
    chance = fanout * (fanout - 1) / (degree * (degree - 1)) * (degree - 1)
    assert abs(both.mean() - chance) < 5.5 * both.std() / math.sqrt(hubs) + 1e-9


# ---- independence


PAIRS = {
    "ids one power of two apart": lambda: (
        drawn(7, 1, hubs=131_072)[:65536],
        drawn(7, 1, hubs=131_072)[65536:],
    ),
    "first and second draw": lambda: tuple(drawn(7, 2, hubs=60_000, replace=True).T),
    "with and without replacement": lambda: (
        drawn(7, 2, hubs=60_000, replace=True)[:, 1],
        drawn(7, 1, hubs=60_000),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_draws_are_independent(name):
    # 49 cells, 60,000 pairs: if one draw in 25 copied the other, n r^2 = 60,000 * 6 * 0.04^2 = 576
    # and it is found
    first, second = PAIRS[name]()
    assert chi_square(np.bincount(first.ravel() * 7 + second.ravel(), minlength=49)) < 1


def test_reshuffled_order_is_uniform():
    """Every order of five seeds equally often over epochs."""
    from nodeflow import NodeFlowLoader

    loader = NodeFlowLoader(NeighborSampler(star(2, hubs=5), [1]), range(5), 5, shuffle=True)
    orders = [tuple(batch.seeds.tolist()) for _ in range(3000) for batch in loader]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert counts.size == 120
    assert chi_square(counts) < 1


ROWS: dict[str, Any] = {
    "neighbor": lambda g, flows, **o: viewed(NeighborSampler, g, [1] * flows, **o),
    "replace": lambda g, flows, **o: viewed(NeighborSampler, g, [1] * flows, replace=True, **o),
    "prob": lambda g, flows, **o: viewed(NeighborSampler, g, [1] * flows, prob="w", **o),
    "prob, replace": lambda g, flows, **o: viewed(
        NeighborSampler, g, [1] * flows, prob="w", replace=True, **o
    ),
    "bernoulli": lambda g, flows, **o: viewed(BernoulliSampler, g, rates=[0.5] * flows, **o),
    "labor": lambda g, flows, **o: viewed(LaborSampler, g, [2] * flows, **o),
    "labor, sequential": lambda g, flows, **o: viewed(
        LaborSampler, g, [2] * flows, method="sequential", **o
    ),
    "labor, 1": lambda g, flows, **o: viewed(LaborSampler, g, [2] * flows, iterations=1, **o),
    "temporal": lambda g, flows, **o: viewed(TemporalNeighborSampler, g, [1] * flows, **o),
    "random walk": lambda g, flows, **o: viewed(
        RandomWalkSampler, g, flows, num_walks=1, walk_length=1, **o
    ),
    "shadow": lambda g, flows, **o: viewed(ShadowSampler, g, flows, depth=1, fanout=1, **o),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_draw_independently_in_epochs_batches_seeds_flows_and_of_each_other(name):
    """Joint tables of what 40,000 nodes draw of 4 edges, against the product of the margins.

    If one draw in 20 copied the other, n r^2 = 40,000 * 3 * 0.05^2 = 300 and it is found.
    """
    hubs = 40_000
    edges = np.arange(160_000)
    graph = Graph.from_edges(
        hubs + edges, edges // 4, edata={"w": torch.tensor([1, 2, 3, 2.0]).repeat(hubs)}
    )
    graph.edata["time"] = torch.arange(160_000) % 4

    def codes(
        flow: int = 0, flows: int = 1, seed: int = 0, more: int = 0, **call: Any
    ) -> np.ndarray:
        times = {"times": [9] * (hubs + more)} if name == "temporal" else {}
        one = ROWS[name](graph, flows, seed=seed)(range(hubs + more), **times, **call).flows[flow]
        edge = one.src_layer.parent_nid[one.indices].numpy() - hubs
        found = np.zeros(hubs, np.int64)
        np.bitwise_or.at(found, edge // 4, 1 << edge % 4)
        return found

    first = codes()
    both = [codes(flow, flows=2) for flow in (0, 1)]
    runs = [
        codes(epoch=1),
        codes(batch_number=0),
        codes(epoch=1, batch_number=0),
        codes(seed=1),
        codes(more=1),
    ]
    runs.append(np.roll(first, 1))
    pairs = [*((first, run) for run in runs), (runs[0], runs[3]), (runs[1], runs[2])]
    # all flows of a scope have the same edges
    for one, other in pairs if name == "shadow" else [*pairs, both]:
        joint = np.bincount(one * 16 + other, minlength=256).reshape(16, 16)
        expected = np.outer(joint.sum(1), joint.sum(0)) / hubs
        assert chi_square(joint[expected > 0], expected[expected > 0]) < 1
