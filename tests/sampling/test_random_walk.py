"""RandomWalkSampler: by enumeration of all walks, draw by draw against a reference, and in
distribution.

The walk is written once in plain Python, and asks for its random choices. Answered from the
generator it must make the package's NodeFlow; answered in every possible way, with exact
probabilities, it gives the law that is tested against.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _support.effort import examples
from _support.sampler_reference import (
    Stream,
    chi_square,
    ends_of,
    fingerprint,
    hash_of,
    key_of,
    layered,
    random_graph,
)
from _support.strategies import calls, edge_ids, masks
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import Graph, NodeFlow
from nodeflow.sampling import RandomWalkSampler
from nodeflow.testing import graphs, seeds

Rows = Sequence[Sequence[int]]

# ---- the reference


def walk(
    rows: Rows,
    start: int,
    walks: int,
    length: int,
    flip: Callable[[], bool],
    below: Callable[[int], int],
):
    """Nodes visited, step by step and within a step walk by walk."""
    if not rows[start]:
        return []
    at = [start] * walks
    visited = []
    for step in range(length):
        if step:
            at = [start if flip() else v for v in at]
        at = [v if rows[v] else start for v in at]
        at = [rows[v][below(len(rows[v]))] for v in at]
        visited += at
    return visited


def neighbors(
    visited: Sequence[int], start: int, most: int | None = None
) -> tuple[tuple[int, int], ...]:
    """(node, visits), most visited first, among equals the one visited first."""
    count = Counter(v for v in visited if v != start)  # keeps the order of first visits
    return tuple(sorted(count.items(), key=lambda pair: -pair[1]))[:most]


def drawn(
    rows: Rows, start: int, key: int, walks: int, length: int, restart: float, most: int | None
):
    rng = Stream(key, start)
    visited = walk(
        rows, start, walks, length, lambda: (rng.word() >> 11) * 2.0**-53 < restart, rng.below
    )
    return neighbors(visited, start, most)


def every(
    program: Callable[[Callable[[Sequence[Fraction]], int]], Any],
) -> Iterator[tuple[Fraction, Any]]:
    """Run a program that asks ``choose(chances)`` for its choices, once for every way to answer."""
    path: list[list[int]] = []
    while True:
        state: list[Any] = [0, Fraction(1)]

        def choose(chances: Sequence[Fraction], state: list[Any] = state) -> int:
            if state[0] == len(path):
                path.append([0, len(chances)])
            taken = path[state[0]][0]
            state[0] += 1
            state[1] *= chances[taken]
            return taken

        result = program(choose)
        yield state[1], result
        while path and path[-1][0] == path[-1][1] - 1:
            path.pop()
        if not path:
            return
        path[-1][0] += 1


def law(
    rows: Rows, start: int, walks: int, length: int, restart: Fraction, most: int | None
) -> dict[Any, Fraction]:
    """The probability of every possible list of neighbours and visits."""
    flips = [1 - restart, restart]

    def program(choose):
        def below(bound):
            return choose([Fraction(1, bound)] * bound)

        return neighbors(
            walk(rows, start, walks, length, lambda: bool(choose(flips)), below), start, most
        )

    found: dict[Any, Fraction] = {}
    for chance, outcome in every(program):
        if chance:
            found[outcome] = found.get(outcome, Fraction(0)) + chance
    assert sum(found.values()) == 1
    return found


def rows_of(
    edges: Sequence[tuple[int, int]], nodes: int, direction: str = "in", gone: Sequence[int] = ()
) -> Rows:
    near, end = (0, 1) if direction == "in" else (1, 0)
    return [
        [e[near] for i, e in enumerate(edges) if e[end] == v and i not in gone]
        for v in range(nodes)
    ]


def found_in(batch: NodeFlow, flow: int = -1) -> list[tuple[tuple[int, int], ...]]:
    """(neighbour, visits) of every destination."""
    one = batch.flows[flow]
    src = one.src_layer.parent_nid[one.indices].tolist()
    pairs = list(zip(src, one.data["visits"].tolist(), strict=True))
    return [tuple(pairs[a:b]) for a, b in itertools.pairwise(one.indptr.tolist())]


# 0 has neighbours 1 (twice) and 2; 3 is a dead end; 2 has a self-loop; 4 leads back to 0
SMALL = [(1, 0), (1, 0), (2, 0), (3, 1), (0, 1), (2, 2), (4, 2), (0, 4)]

# ---- the estimate


@pytest.mark.parametrize(
    ("start", "restart"), [(0, 0.5), (0, 0.0), (0, 1.0), (1, 0.25), (2, 0.5), (3, 0.5), (4, 0.75)]
)
def test_the_mean_of_the_counts_is_the_distribution_of_visits(start, restart):
    """All pairs of walks of three steps against powers of the transition matrix with
    restarts.
    """
    rows = rows_of(SMALL, 5)
    length = 3
    mean = np.zeros(5)
    for outcome, probability in law(rows, start, 2, length, Fraction(restart), None).items():
        for v, visits in outcome:
            mean[v] += float(probability) * visits / (2 * length)
    # at a dead end a walk goes back to its start, and on from there
    step = np.array(
        [np.bincount(row or rows[start] or [start], minlength=5) for row in rows], float
    )
    step /= step.sum(1, keepdims=True)
    at = step[start]
    expected = at / length
    for _ in range(length - 1):
        at = ((1 - restart) * at + restart * np.eye(5)[start]) @ step
        expected = expected + at / length
    expected[start] = 0
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-12)


COPIES = 30_000


def observed(
    walks: int, length: int, restart: float, most: int | None, start: int, **which: Any
) -> Counter[Any]:
    """What ``start`` gets in many copies of the small graph, ids as in the first."""
    shift = 5 * np.arange(COPIES)[:, None]
    src, dst = (np.ravel(np.array(end) + shift) for end in zip(*SMALL, strict=True))
    graph = Graph.from_edges(src, dst, num_nodes=5 * COPIES)
    sampler = RandomWalkSampler(
        graph, 1, most, num_walks=walks, walk_length=length, restart=restart
    )
    batch = sampler(range(start, 5 * COPIES, 5), **which)
    return Counter(tuple((u % 5, n) for u, n in pairs) for pairs in found_in(batch))


@pytest.mark.parametrize(
    ("walks", "length", "restart", "most", "start"),
    [(2, 2, 0.5, None, 0), (3, 2, 0.25, 1, 0), (2, 3, 0.5, 2, 1), (2, 3, 0.0, None, 4), (3, 2, 1.0, 2, 2),
     (1, 4, 0.75, None, 2)],
)  # fmt: skip
def test_every_outcome_comes_as_often_as_it_should(walks, length, restart, most, start):
    """Chi-square over whole lists of neighbours with their visits, against the exact law.

    At most 30 outcomes and 30,000 walks: a relative deviation of 10 % of all outcomes is surely
    found (n r^2 = 300), so is a restart of 0.45 in the place of 0.5. Outcomes expected less than 5
    times count as one.
    """
    exact = law(rows_of(SMALL, 5), start, walks, length, Fraction(restart), most)
    counts = observed(walks, length, restart, most, start)
    assert set(counts) <= set(exact)
    often = [outcome for outcome, chance in exact.items() if chance * COPIES >= 5]
    pairs = [(counts[o], float(exact[o]) * COPIES) for o in often]
    rest = COPIES - sum(n for n, _ in pairs), COPIES - sum(e for _, e in pairs)
    pairs += [rest] if rest[1] > 1e-6 else []
    assert len(pairs) > 2
    assert chi_square(*np.array(pairs).T) < 1


# ---- draw by draw


@st.composite
def cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1))
    num_flows = draw(st.integers(1, 3))
    most = st.none() | st.integers(1, 3)
    include_dst = draw(st.booleans())
    options = {
        "num_neighbors": draw(most | st.lists(most, min_size=num_flows, max_size=num_flows)),
        "num_walks": draw(st.integers(1, 6)),
        "walk_length": draw(st.integers(1, 5)),
        "restart": draw(st.sampled_from([0, 0.1, 0.5, 1])),
        "normalize": draw(st.booleans()),
        "direction": draw(st.sampled_from(["in", "out"])),
        "include_dst": include_dst,
        "reuse": include_dst and draw(st.booleans()),
        "seed": draw(st.integers(-(2**63), 2**63)),
    }
    return (
        graph,
        num_flows,
        options,
        draw(seeds(graph)),
        draw(masks(graph)),
        draw(edge_ids(graph)),
        draw(calls),
    )


@examples(100)
@given(cases())
def test_a_batch_is_what_the_reference_says(case):
    graph, num_flows, options, ids, mask, gone, which = case
    sampler = viewed(RandomWalkSampler, graph.view(where=mask), num_flows, **options)
    batch = sampler.without_edges(gone)(ids, **which)
    batch.validate()
    out = {*np.flatnonzero(~mask), *gone}
    rows = rows_of(ends_of(graph), graph.num_nodes, options["direction"], sorted(out))
    identity = (0, hash_of(ids)) if which["batch_number"] is None else (1, which["batch_number"])
    root = key_of("random walk", options["seed"], which["epoch"], *identity)
    most = options["num_neighbors"]
    most = most if isinstance(most, list) else [most] * num_flows
    args = options["num_walks"], options["walk_length"], options["restart"]
    layers, flows = layered(
        ids,
        num_flows,
        lambda i, dst: [drawn(rows, v, key_of(root, i), *args, most[i]) for v in dst],
        lambda pair, _: pair[0],
        options["include_dst"],
        options["reuse"],
    )
    for flow, pairs in zip(batch.flows, flows, strict=True):
        assert flow.src_layer.parent_nid[flow.indices].tolist() == [
            u for row in pairs for u, _ in row
        ]
        assert flow.in_degrees.tolist() == [len(row) for row in pairs]
        visits = [n for row in pairs for _, n in row]
        assert options["reuse"] or flow.data["visits"].tolist() == visits
        totals = [args[0] * args[1]] * len(visits)
        if options["normalize"]:
            totals = [sum(n for _, n in row) for row in pairs for _ in row]
        weights = [np.float32(n / total) for n, total in zip(visits, totals, strict=True)]
        assert flow.weight.tolist() == weights
        assert flow.parent_eid.eq(-1).all()
    assert [layer.parent_nid.tolist() for layer in batch.layers] == layers
    assert batch.seeds[batch.seed_index].tolist() == ids


# ---- cases one can work out


def test_numbers_of_neighbors_are_in_flow_order():
    chain = Graph.from_edges([1, 2, 3, 4, 0], [0, 1, 2, 3, 4])
    batch = RandomWalkSampler(chain, 2, [1, 3], num_walks=2, walk_length=3, restart=0)([0])
    assert batch.flow_sizes == (4, 3)
    same = [
        RandomWalkSampler(chain, 2, most, num_walks=2)([0])
        for most in (None, -1, [None, -1], (9, 9), 2**40)
    ]
    assert len({fingerprint(batch) for batch in same}) == 1


def test_reuse_has_no_column_of_visits():
    graph = random_graph(1)
    options = {"num_walks": 4, "walk_length": 2, "normalize": False}
    batch = viewed(RandomWalkSampler, graph, 2, reuse=True, **options)([1, 2, 3])
    assert "visits" not in batch.flows[1].data
    fresh = viewed(RandomWalkSampler, graph, 2, **options)([1, 2, 3]).flows[1]
    assert (batch.flows[1].weight * 8).round().long().equal(fresh.data["visits"])
