"""Orders of parts: numbers of swaps, every bucket once, and parts that stay where they are."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from _support.partition_tools import comet_slots
from hypothesis import given, strategies as st

from nodeflow.distributed import Order, beta_order, comet_order, dispersed_order, sequential_order


def beta_swaps(p: int, c: int) -> float:
    x = (p - c) // (c - 1)
    return (p - c) + (x + 1) * ((p - c) - x * (c - 1) / 2)


def lower_bound(p: int, c: int) -> int:
    return math.ceil((p * (p - 1) / 2 - c * (c - 1) / 2) / (c - 1))


def check_states(order: Order) -> None:
    """Every state has all slots filled with distinct parts, and a part that stays keeps its
    place.
    """
    for state in order.states:
        assert len(set(state)) == len(state) == order.slots
    for old, new in zip(order.states[:-1], order.states[1:], strict=True):
        for partition in set(old) & set(new):
            assert old.index(partition) == new.index(partition)


def check_buckets(order: Order) -> None:
    """Every bucket has one state, which holds both of its parts."""
    for i in range(order.num_parts):
        for j in range(order.num_parts):
            assert {i, j} <= set(order.states[order.bucket_state[i, j]])
    assert order.complete


def test_beta_has_the_swaps_of_its_formula():
    for p in [*range(2, 21), 32]:
        for c in range(2, p + 1):
            order = beta_order(p, c)
            assert order.swaps == beta_swaps(p, c) >= lower_bound(p, c)
            assert order.most_swapped <= 1
    assert [beta_order(p, c).swaps for p, c in [(8, 4), (16, 4), (32, 8)]] == [9, 42, 78]


@given(
    st.integers(2, 14).flatmap(lambda p: st.tuples(st.just(p), st.integers(2, p))),
    st.integers(0, 99),
)
def test_beta_trains_every_bucket_in_the_first_state_that_holds_it(sizes, epoch):
    order = beta_order(*sizes, epoch=epoch)
    check_states(order)
    check_buckets(order)
    for (i, j), state in np.ndenumerate(order.bucket_state):
        assert state == next(k for k, held in enumerate(order.states) if {i, j} <= set(held))


@pytest.mark.parametrize(("groups", "times"), [(4, 1.75), (8, 3.625), (16, 7.5625)])
@pytest.mark.parametrize("each", [1, 2, 3])
def test_comet_reads_the_table_as_often_as_its_paper_says(groups, times, each):
    order = comet_order(groups * each, 2 * each)
    assert (order.slots + order.swaps) / order.num_parts == times
    assert order.most_swapped == each


@given(
    st.integers(1, 24).flatmap(lambda p: st.tuples(st.just(p), st.sampled_from(comet_slots(p)))),
    st.integers(0, 99),
)
def test_comet_trains_every_bucket_once(sizes, epoch):
    order = comet_order(*sizes, epoch=epoch)
    check_states(order)
    check_buckets(order)
    again = comet_order(*sizes, epoch=epoch)
    assert again.states == order.states
    assert np.array_equal(again.bucket_state, order.bucket_state)


def test_comet_defers_buckets_evenly_and_draws_new_groups():
    """A bucket (i, i) is in l - 1 states; over 400 epochs each takes its share, by a chi-square of
    error rate 1e-6.

    Those of two parts of one group, (i, j) and (j, i), draw apart: all four such pairs agree once
    in 81 epochs.
    """
    counts: Counter[int] = Counter()
    groups = set()
    apart = 0
    for epoch in range(400):
        order = comet_order(8, 4, epoch=epoch)
        groups.add(order.states[0])
        apart += not np.array_equal(order.bucket_state, order.bucket_state.T)
        holding = order.holding(5)
        assert len(holding) == 3  # four groups: its own group meets three others
        counts[holding.index(int(order.bucket_state[5, 5]))] += 1
    expected = 400 / 3
    # 2 degrees of freedom
    assert sum((counts[k] - expected) ** 2 / expected for k in range(3)) < 27.6
    assert len(groups) > 300
    assert apart > 370
    seeds = {comet_order(8, 4, seed=seed).states for seed in range(20)}
    assert len(seeds) > 15


@given(st.integers(1, 20).flatmap(lambda p: st.tuples(st.just(p), st.integers(1, p))))
def test_dispersed_reads_every_partition_once(sizes):
    order = dispersed_order(*sizes)
    check_states(order)
    assert order.swaps == sizes[0] - sizes[1]
    assert sorted(partition for new in order.incoming for partition in new) == list(range(sizes[0]))


def test_sequential_keeps_the_training_partitions():
    seen = set()
    for epoch in range(30):
        order = sequential_order(8, 4, [2, 7], epoch=epoch)
        assert order.swaps == 0
        assert {2, 7} <= set(order.states[0])
        seen |= set(order.states[0])
        check_states(order)
    assert seen == set(range(8))


def test_an_own_sequence_keeps_partitions_in_place():
    order = Order(5, [[0, 1, 2], [2, 0, 4], [3, 4, 2]])
    assert order.states == ((0, 1, 2), (0, 4, 2), (3, 4, 2))
    assert order.incoming == ((0, 1, 2), (4,), (3,))
    assert (order.swaps, order.most_swapped, order.complete) == (2, 1, False)
    assert order.bucket_state[0, 3] == order.bucket_state[1, 4] == -1
    assert "5 parts, 3 slots, 3 states, 2 swaps" in repr(order)
