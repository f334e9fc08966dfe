"""The random numbers of LABOR: uniform, independent where they should be, and shared where they
should be.

Chi-square at a false-alarm rate of 1e-6 a test with fixed seeds; a table of m cells nearly always
finds a relative deviation r of all cells from n draws once n r^2 > 8 sqrt(m) + 40.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from _support.labor_reference import cells
from _support.sampler_reference import chi_square, picked_positions, star

from nodeflow import Graph, _kernels as kernels
from nodeflow.sampling import LaborSampler


def numbers(key: int, ids: np.ndarray) -> np.ndarray:
    found = np.empty(len(ids), np.uint32)
    kernels.labor.hash_block(ids, np.array([key, key, key], np.uint64), np.uint32(0), found)
    return found


IDS = np.arange(1 << 18, dtype=np.int32)
FIRST = numbers(1, IDS)

# 262,144 pairs in 64 cells: one pair in 50 that is equal (or a deviation of 2 % of all cells) is
# found
PAIRS = {
    "keys": lambda: (FIRST, numbers(2, IDS)),
    "keys one high bit apart": lambda: (FIRST, numbers(1 + (1 << 63), IDS)),
    "keys whose low halves agree": lambda: (FIRST, numbers(1 + (1 << 32), IDS)),
    "neighbouring ids": lambda: (FIRST[:-1], FIRST[1:]),
    "ids a power of two apart": lambda: (FIRST[: 1 << 17], FIRST[1 << 17 :]),
    "reflected ids": lambda: (FIRST, FIRST[::-1]),
    "high and low bits": lambda: (FIRST, FIRST << np.uint32(29)),
    "high and middle bits": lambda: (FIRST, FIRST << np.uint32(13)),
    "multiples of 4,096": lambda: (numbers(1, IDS << 12), numbers(1, (IDS << 12) + 1)),
    "ids beyond 32 bits": lambda: (FIRST, numbers(1, IDS.astype(np.int64) + 2**32)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_numbers_are_uniform_and_independent(name):
    first, second = PAIRS[name]()
    table = (first >> np.uint32(29)) * np.uint32(8) + (second >> np.uint32(29))
    assert chi_square(np.bincount(table, minlength=64)) < 1
    assert chi_square(np.bincount(first >> np.uint32(22), minlength=1024)) < 1


def test_numbers_of_one_id_over_keys():
    """For one node over 20,000 keys, as over the flows of a run, and of two nodes together."""
    ids = np.array([0, 1, 12345], np.int32)
    found = np.array([numbers(key, ids) for key in range(20_000)]) >> np.uint32(28)
    for column in found.T:
        assert chi_square(np.bincount(column, minlength=16)) < 1
    assert chi_square(np.bincount(found[:, 0] * 16 + found[:, 1], minlength=256)) < 1


def test_every_bit_of_key_and_id_changes_half_of_the_number():
    """Avalanche: a flipped bit of the key or the id flips every bit of the number with probability
    one half.

    Over 16,384 ids the share of flips is within 6 sigma (0.023) for all 96 x 32 pairs of bits.
    """
    ids = np.arange(1 << 14, dtype=np.int32)
    plain = numbers(77, ids)
    changed = [numbers(77, ids ^ np.int32(1 << b)) for b in range(31)]
    changed += [numbers(77 ^ (1 << b), ids) for b in range(64)]
    for other in changed:
        flips = np.unpackbits((plain ^ other).view(np.uint8).reshape(-1, 4), axis=1).mean(0)
        assert abs(flips - 0.5).max() < 6 * 0.5 / math.sqrt(len(ids))


# ---- subsets


def subsets(
    sampler: LaborSampler, seeds: list[int], starts: list[int], draws: int, flow: int = -1
) -> np.ndarray:
    """Which edges each seed drew, as the bits of a number, ``[draws, seeds]``."""
    found = []
    for k in range(draws):
        picked = picked_positions(sampler(seeds, epoch=k), flow)
        found.append(
            [sum(1 << (e - s) for e in ids) for s, ids in zip(starts, picked, strict=False)]
        )
    return np.array(found)


@pytest.mark.parametrize("iterations", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_subset_has_its_probability(iterations):
    """The joint law of two destinations with common sources: every pair of subsets, against
    integration.

    Destination 0 has sources 2..6, destination 1 has 4..7: the cells are all 2^5 * 2^4 pairs; those
    that cannot occur do not, and 4,000 draws find a cell of probability 0.02 that is off by a half.
    """
    rows = [[2, 3, 4, 5, 6], [4, 5, 6, 7]]
    graph = Graph.from_edges([t for row in rows for t in row], [0] * 5 + [1] * 4, num_nodes=8)
    law = np.zeros((32, 16))
    for probability, drawn in cells(rows, 2, iterations):
        law[tuple(sum(1 << j for j in picks) for picks in drawn)] += float(probability)
    draws = 4_000
    found = subsets(LaborSampler(graph, [2], iterations=iterations), [0, 1], [0, 5], draws)
    counts = np.zeros_like(law)
    np.add.at(counts, (found[:, 0], found[:, 1]), 1)
    assert counts[law == 0].sum() == 0
    often = law * draws >= 5
    rest = draws - counts[often].sum(), draws * (1 - law[often].sum())
    assert chi_square([*counts[often], rest[0]], [*(law[often] * draws), rest[1]]) < 1


def test_sequential_subsets_are_equally_likely():
    """Also where a source has two edges: numbers of their own make all 6 pairs of 4 edges equally
    likely.
    """
    for src in ([1, 2, 3, 4], [1, 1, 2, 3], [1, 1, 1, 1]):
        sampler = LaborSampler(Graph.from_edges(src, [0] * 4), [2], method="sequential")
        found = subsets(sampler, [0], [0], 1500)[:, 0]
        counts = np.bincount(found, minlength=16)[[3, 5, 6, 9, 10, 12]]
        assert counts.sum() == 1500
        assert chi_square(counts) < 1


# ---- dependence


@pytest.mark.parametrize("iterations", [0, 1])
def test_batch_dependency(iterations):
    """Batches at distance b share the numbers of a fraction max(0, 1 - b/4) of the nodes, and each
    is a fair draw.

    40,000 sources, drawn with probability one half: two batches agree on a source with probability
    (1 + shared) / 2, within 5 sigma (0.0125). A renewal of all nodes at the same batch is found at
    once: it shares all or nothing.
    """
    size = 40_000
    sampler = LaborSampler(star(size), [size // 2], batch_dependency=4, iterations=iterations)
    drawn = torch.zeros(10, size, dtype=torch.bool)
    for k in range(10):
        drawn[k, sampler([0], batch_number=k).flows[0].parent_eid] = True
    sigma = 0.5 / math.sqrt(size)
    for k in range(10):
        assert abs(float(drawn[k].double().mean()) - 0.5) < 5 * sigma
        for b in range(10 - k):
            same = float((drawn[k] == drawn[k + b]).double().mean())
            assert abs(same - (1 + max(0, 1 - b / 4)) / 2) < 5 * sigma
    other = torch.zeros(size, dtype=torch.bool)
    other[sampler([0], batch_number=0, epoch=1).flows[0].parent_eid] = True
    assert abs(float((drawn[0] == other).double().mean()) - 0.5) < 5 * sigma


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dependent", "wanted"), [pytest.param(False, 4, marks=pytest.mark.slow), (True, 6)]
)
def test_shared_numbers_bias_sums_over_two_flows(dependent, wanted):
    # Both neighbours of node 0 have each other and themselves. With N ~ Bin(2, 1/2) sources below
    # 1/2, shared numbers give 4 N^2, of mean 6 and variance 36; numbers of their own have the mean
    # 4, the true sum, and variance 20. The tolerance is 5 standard errors: fails by chance once in
    # 10^6.
    graph = Graph.from_edges([1, 2, 1, 2, 1, 2], [0, 0, 1, 1, 2, 2])
    sampler = LaborSampler(graph, [1, 1], layer_dependency=dependent)
    sums = []
    for epoch in range(3000):
        low, high = sampler([0], epoch=epoch).flows
        inner = low.aggregate(torch.ones(low.num_src, 1), weight=low.weight)
        sums.append(float(high.aggregate(inner, weight=high.weight)))
    assert abs(sum(sums) / len(sums) - wanted) < 5 * (36 / len(sums)) ** 0.5
