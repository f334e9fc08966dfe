"""Plans of the rows that stay in memory: no more reads than the best of all choices, and what they
forget.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nodeflow.storage._plan import ReadPlan


def served(
    plan: ReadPlan, coming: Iterator[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield what ``plan.advance`` returns until the last of the coming batches."""
    while True:
        while plan.lacks_batches and (ids := next(coming, None)) is not None:
            plan.foresee(ids)
        step = plan.advance()
        if step is None:
            return
        yield step


def in_memory(plan: ReadPlan) -> set[int]:
    return set(np.flatnonzero(plan._place >= 0).tolist())


def fewest_reads(batches: list[np.ndarray], room: int) -> int:
    """Return how many rows must be read at least to serve batches of distinct ids with a cache of
    ``room`` rows.
    """
    if not batches:
        return 0
    num_nodes = 1 + max((int(ids.max(initial=-1)) for ids in batches), default=-1)
    plan = ReadPlan(num_nodes, room, len(batches), None)
    coming = iter(batches)
    return sum(int((hit < 0).sum()) for _, hit, _ in served(plan, coming))


NODES = 6

batches_of_nodes = st.lists(
    st.lists(st.integers(0, NODES - 1), unique=True, max_size=5).map(
        lambda ids: np.array(ids, np.int64)
    ),
    max_size=7,
)


def best_of_all(batches: list[np.ndarray], room: int) -> int:
    """Fewest reads over all ways to choose which rows stay."""
    cost = {frozenset[int](): 0}
    for ids in batches:
        wanted = frozenset(ids.tolist())
        after: dict[frozenset[int], int] = {}
        for held, reads in cost.items():
            at_hand = held | wanted
            reads = reads + len(wanted - held)
            for kept in combinations(sorted(at_hand), min(room, len(at_hand))):
                after[frozenset(kept)] = min(reads, after.get(frozenset(kept), reads))
        cost = after
    return min(cost.values())


@given(batches_of_nodes, st.integers(0, NODES))
def test_a_plan_that_knows_all_batches_reads_as_little_as_any_choice(batches, room):
    assert fewest_reads(batches, room) == best_of_all(batches, room)


@given(
    batches_of_nodes,
    st.integers(0, NODES),
    st.integers(0, 8),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_slots_hold_what_the_plan_says(batches, room, window, hot, random):
    heat = np.array([random.random() for _ in range(NODES)]) if hot else None  # type: ignore[attr-defined]
    plan = ReadPlan(NODES, room, window, heat)
    coming = iter(batches)
    slots = np.full(room, -1)
    asked = []
    for ids, hit, kept in served(plan, coming):
        asked.append(ids.tolist())
        assert (slots[hit[hit >= 0]] == ids[hit >= 0]).all()
        assert not np.isin(ids[hit < 0], slots).any()
        assert (kept[hit >= 0] == -1).all()
        assert len(set(kept[kept >= 0])) == (kept >= 0).sum()
        slots[kept[kept >= 0]] = ids[kept >= 0]
    assert asked == [ids.tolist() for ids in batches]


@given(batches_of_nodes, st.integers(1, NODES))
def test_with_room_for_all_every_row_is_read_once(batches, window):
    plan = ReadPlan(NODES, NODES, window, None)
    coming = iter(batches)
    reads = [node for ids, hit, _ in served(plan, coming) for node in ids[hit < 0].tolist()]
    assert sorted(reads) == sorted({node for ids in batches for node in ids.tolist()})


@pytest.mark.parametrize(("nodes", "hottest"), [(100, 10), (1000, 12)])
def test_without_a_window_the_hottest_rows_stay(nodes, hottest):
    """A plan tells 256 classes of heat apart: 1000 nodes are in classes of 4, and 10 rows are of
    the first three.
    """
    rng = np.random.default_rng(0)
    batches = [rng.permutation(nodes)[: 3 * nodes // 10] for _ in range(30)]
    plan = ReadPlan(nodes, 10, 0, np.arange(float(nodes)))
    coming = iter(batches)
    for ids, _, kept in served(plan, coming):
        last = ids, kept
    held = in_memory(plan)
    assert len(held) == 10
    assert held <= set(range(nodes - hottest, nodes))
    assert len(last[0]) == 3 * nodes // 10


def test_rows_stay_when_the_coming_batches_are_forgotten():
    plan = ReadPlan(4, 2, 1, None)
    batches = [np.array([0, 1]), np.array([0, 1])]
    assert [(hit < 0).sum() for _, hit, _ in served(plan, iter(batches))] == [2, 0]
    plan.forget()
    assert [(hit < 0).sum() for _, hit, _ in served(plan, iter(batches))] == [0, 0]
    plan.empty()
    assert [(hit < 0).sum() for _, hit, _ in served(plan, iter(batches))] == [2, 0]


def drawn(nodes: int, size: int, count: int) -> list[np.ndarray]:
    """Batches of distinct nodes, low ones often."""
    rng = np.random.default_rng(2)
    odds = 1 / np.arange(1, nodes + 1)
    return [
        rng.permutation(rng.choice(nodes, size, replace=False, p=odds / odds.sum()))
        for _ in range(count)
    ]


LONG = {
    "hub": (200, 50, drawn(200, 40, 120)),
    "cycle": (200, 50, [np.arange(t * 7, t * 7 + 40) % 200 for t in range(120)]),
    "few": (12, 4, drawn(12, 3, 1000)),
}
"""Numbers of nodes, of which a plan tells 256 classes of heat apart, and of slots; batches."""


def follow_the_rule(
    plan: ReadPlan, coming: list[np.ndarray], heat: np.ndarray, room: int
) -> Iterator[int]:
    """Serve batches, and compare with the rule written out: rows that a known batch uses stay, the
    nearest first, then the hottest. No two are as hot. Yields how many rows of each batch are
    read.
    """
    held = in_memory(plan)
    for t, (ids, hit, _) in enumerate(served(plan, iter(coming))):
        wanted = set(ids.tolist())
        assert (hit >= 0).sum() == len(held & wanted)
        yield len(wanted - held)
        known = {
            node: s
            for s in range(min(t + plan.window, len(coming) - 1), t, -1)
            for node in coming[s].tolist()
        }
        late = {node: known.get(node, 10**6 - heat[node]) for node in held | wanted}
        held = set(sorted(late, key=lambda node: late[node])[:room])


@pytest.mark.parametrize("window", [0, 1, 4, None])
@pytest.mark.parametrize("kind", LONG)
def test_a_window_follows_the_rule(kind, window):
    nodes, room, batches = LONG[kind]
    window = len(batches) if window is None else window
    heat = np.random.default_rng(3).permutation(nodes).astype(float)
    reads = sum(follow_the_rule(ReadPlan(nodes, room, window, heat), batches, heat, room))
    assert fewest_reads(batches, room) <= reads
    assert window < len(batches) or fewest_reads(batches, room) == reads


@pytest.mark.parametrize("window", [0, 1, 4, 30])
def test_what_was_known_before_a_plan_forgot_does_not_count(window):
    """Nor that of batches which were known, but are not served."""
    nodes, room, batches = LONG["hub"]
    heat = np.random.default_rng(3).permutation(nodes).astype(float)
    plan = ReadPlan(nodes, room, window, heat)
    for part in (batches[:40], batches[40:80], batches[80:]):
        list(islice(follow_the_rule(plan, part, heat, room), 25))
        plan.forget()
