"""Negatives: the exact law of every way to draw them, independence, and that a draw always ends.

False alarms: 1e-6 for every chi-square test (about 25 here); seeds are fixed, so the outcome never
varies. Power: see ``test_uniform.py``; a test with m cells nearly always finds a relative deviation
r of all cells from n draws once n r^2 > 8 sqrt(m) + 40.
"""

from __future__ import annotations

import decimal
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _support.link_reference import (
    DST,
    SRC,
    allowed,
    assert_law,
    negatives,
    negatives_of,
    node_weights,
)
from _support.sampler_reference import chi_square
from _support.strategies import calls, edge_ids
from hypothesis import given, strategies as st

from nodeflow import Graph, NeighborSampler
from nodeflow.sampling import LinkSampler
from nodeflow.sampling._negative import degree_weights
from nodeflow.testing import graphs


def drawn(
    graph: Graph, eid: Any, *, run: dict[str, Any] | None = None, **options: Any
) -> np.ndarray:
    """Parent ids of the negatives, ``[B, K]``."""
    return negatives_of(LinkSampler(NeighborSampler(graph, [1]), **options), eid, **(run or {}))


SMALL = Graph.from_edges(SRC, DST, num_nodes=8)
LAWS = [
    {},
    {"negatives": "degree"},
    {"filter_known": True},
    {"negatives": "degree", "filter_known": True},
]


def chances(graph: Graph, u: int, options: dict[str, Any]) -> np.ndarray:
    """The probability of every node to be drawn for source ``u``, from the definition, in
    float64.
    """
    chance = np.ones(graph.num_nodes)
    if options.get("negatives") == "degree":
        chance = graph.in_degrees().numpy().astype(np.float64) ** options.get("power", 0.75)
    if options.get("filter_known"):
        chance[[n for n in range(graph.num_nodes) if n not in allowed(graph, u)]] = 0
    return chance / chance.sum()


# ---- the exact law


@given(st.data())
def test_negatives_are_those_of_the_reference(data):
    graph = data.draw(graphs(min_nodes=1))
    laws = {
        "negatives": data.draw(st.sampled_from(["uniform", "degree"])),
        "filter_known": data.draw(st.booleans()),
    }
    eid = data.draw(edge_ids(graph))
    if laws["filter_known"]:  # sources that have a negative
        weights = node_weights(graph, laws["negatives"])
        src = graph.edges()[0].tolist()
        eid = [e for e in eid if any(weights[n] for n in allowed(graph, src[e]))]
    chunk = data.draw(st.none() | st.integers(1, 4))
    if laws["filter_known"] and chunk:  # chunks that have a negative
        groups = [eid[i : i + chunk] for i in range(0, len(eid), chunk)]
        shared = [
            set.intersection(*(set(allowed(graph, src[e])) for e in group)) for group in groups
        ]
        chunk = chunk if all(any(weights[n] for n in nodes) for nodes in shared) else None
    run = data.draw(calls)
    count = data.draw(st.integers(0, 4))
    seed = data.draw(st.integers(-2, 2))
    found = drawn(graph, eid, num_negatives=count, chunk=chunk, seed=seed, run=run, **laws)
    options = {
        "law": laws["negatives"],
        "filter_known": laws["filter_known"],
        "chunk": chunk,
        "seed": seed,
    }
    assert found.shape == (len(eid), count)
    assert found.tolist() == negatives(graph, eid, count, **options, **run)


@pytest.mark.parametrize("power", [0.25, 0.75, 1.0, 2.0, 7.5])
def test_weights_are_in_proportion_to_powers_of_degrees(power):
    degrees = np.array([0, 1, 2, 3, 7, 7, 1000, 0, 65_537])
    weights = [int(w) for w in degree_weights(degrees, power)]
    assert 2**60 < sum(weights) < 2**62
    exact = [
        Fraction(0) if d == 0 else Fraction(decimal.Decimal(int(d)) ** decimal.Decimal(power))
        for d in degrees
    ]
    for weight, wanted in zip(weights, exact, strict=True):
        share = wanted / sum(exact)
        assert (weight == 0) == (share == 0)
        # rounding down to a whole number of 2^-61, and 28 digits of the numbers compared with
        assert (
            abs(Fraction(weight, sum(weights)) - share)
            < Fraction(len(degrees), 2**60) + share / 10**20
        )


def test_weights_of_extreme_degrees_stay_positive_and_finite():
    assert degree_weights(np.array([1, 10**9, 0]), 1000.0).tolist() == [1, 2**61, 0]
    assert degree_weights(np.zeros(3, np.int64), 0.75).tolist() == [0, 0, 0]
    assert degree_weights(np.zeros(0, np.int64), 0.75).tolist() == []
    many = degree_weights(np.ones(10**6, np.int64), 0.75)
    assert (many == 2**61 // 10**6).all()


def test_weights_do_not_depend_on_the_decimal_context():
    degrees = np.arange(50)
    before = degree_weights(degrees, 0.75)
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP, Emin=-5, Emax=5)):
        assert (degree_weights(degrees, 0.75) == before).all()


@pytest.mark.parametrize("options", LAWS, ids=str)
def test_pairs_of_negatives_have_the_law_of_the_definition(options):
    """Joint counts of two negatives of one row, over 60,000 rows; impossible ones never occur.

    At most 64 cells: one drawn instead of another in 5 % of the draws is surely found.
    """
    found = drawn(SMALL, np.zeros(60_000, np.int64), num_negatives=2, **options)
    chance = chances(SMALL, 0, options)
    assert_law(found[:, 0] * 8 + found[:, 1], np.outer(chance, chance).ravel())


# ---- independence

# 7 nodes, every one with one in- and one out-edge
CYCLE = Graph.from_edges(np.arange(7), (np.arange(7) + 1) % 7)
MANY = np.zeros(60_000, np.int64)
PAIRS = {
    "rows": lambda: tuple(drawn(CYCLE, MANY).reshape(-1, 2).T),
    "rows one power of two apart": lambda: tuple(
        drawn(CYCLE, np.zeros(65_536, np.int64)).reshape(2, -1)
    ),
    "columns": lambda: tuple(drawn(CYCLE, MANY, num_negatives=3)[:, 1:].T),
    "epochs": lambda: tuple(drawn(CYCLE, MANY, run={"epoch": k}).ravel() for k in (0, 1)),
    "batches": lambda: tuple(drawn(CYCLE, MANY, run={"batch_number": k}).ravel() for k in (0, 1)),
    "seeds": lambda: tuple(drawn(CYCLE, MANY, seed=k).ravel() for k in (0, 1)),
    "seed and epoch": lambda: (
        drawn(CYCLE, MANY, seed=1).ravel(),
        drawn(CYCLE, MANY, run={"epoch": 1}).ravel(),
    ),
    "lists of edges": lambda: (drawn(CYCLE, MANY).ravel(), drawn(CYCLE, MANY + 1).ravel()),
}


@pytest.mark.parametrize("name", PAIRS)
def test_negatives_are_independent(name):
    # 49 cells, at least 30,000 pairs: one draw in 20 that copies the other is found
    first, second = PAIRS[name]()
    assert chi_square(np.bincount(first * 7 + second, minlength=49)) < 1


# ---- chunks


def test_edges_of_a_chunk_share_their_negatives():
    found = drawn(CYCLE, range(7), num_negatives=50, chunk=3)
    assert (found[0] == found[1]).all()
    assert (found[1] == found[2]).all()
    assert (found[3:6] == found[3]).all()
    assert len({tuple(row) for row in found.tolist()}) == 3
    assert (found[6] != found[5]).any()
    alone, one = (drawn(CYCLE, range(7), num_negatives=5, chunk=c) for c in (None, 1))
    assert (alone == one).all()
    whole = drawn(CYCLE, range(7), num_negatives=5, chunk=10**12)
    assert (whole == whole[0]).all()


def test_chunks_have_the_uniform_law():
    found = drawn(CYCLE, np.zeros(120_000, np.int64), chunk=2, num_negatives=2)[::2]
    assert chi_square(np.bincount(found[:, 0] * 7 + found[:, 1], minlength=49)) < 1


# ---- hubs, dense graphs, and the end of every draw


@pytest.mark.parametrize("law", ["uniform", "degree"])
def test_a_hub_of_50_000_known_neighbours(law):
    """Of 50,010 nodes the hub 0 knows all but 9, which trial and error would find once in 5,000
    tries.
    """
    unknown = [1, 2, 77, 4_000, 31_000, 31_001, 49_999, 50_008, 50_009]
    others = np.setdiff1d(np.arange(1, 50_010), unknown)
    order = np.random.default_rng(0).permutation(others)
    src = np.concatenate([np.zeros(len(order), np.int64), np.full(5 * len(unknown), 5)])
    dst = np.concatenate([order, np.repeat(unknown, 5)])
    graph = Graph.from_edges(src, dst, num_nodes=50_010)
    found = drawn(graph, np.zeros(18_000, np.int64), filter_known=True, negatives=law).ravel()
    nodes, counts = np.unique(found, return_counts=True)
    assert nodes.tolist() == unknown
    assert chi_square(counts) < 1  # 9 cells of 2,000: a node drawn one tenth too often is found


def test_uniform_over_many_nodes():
    """100,000 nodes in 64 bins and by remainder: no bits are lost."""
    found = drawn(Graph.from_edges([0], [1], num_nodes=100_000), MANY).ravel()
    assert chi_square(np.bincount(found * 64 // 100_000, minlength=64)) < 1
    assert chi_square(np.bincount(found % 16, minlength=16)) < 1


def complete(size: int) -> Graph:
    return Graph.from_edges(*np.array(list(itertools.permutations(range(size), 2))).T)


def test_a_node_that_knows_all_others_has_no_negative():
    words = "no negative is left for edge"
    for law in ("uniform", "degree"):
        links = LinkSampler(NeighborSampler(complete(5), [2]), filter_known=True, negatives=law)
        with pytest.raises(ValueError, match=f"{words} 13, from node 3: .*filter_known='mark'"):
            links([13, 0])
    # 0 knows 1, and 2 has no in-edges: one negative by the uniform law, none by degrees
    graph = Graph.from_edges([0, 1], [1, 0], num_nodes=3)
    assert drawn(graph, [0, 0], filter_known=True, num_negatives=3).tolist() == [[2] * 3] * 2
    with pytest.raises(ValueError, match=f"{words} 0, from node 0"):
        drawn(graph, [0], filter_known=True, negatives="degree")
    # nothing is drawn for no negatives, and the node before the one that fails is fine
    assert drawn(complete(5), [3], filter_known=True, num_negatives=0).shape == (1, 0)
    with pytest.raises(ValueError, match=f"{words} 2, from node 1"):
        drawn(Graph.from_edges([0, 1, 1], [2, 0, 2]), [0, 2], filter_known=True)
