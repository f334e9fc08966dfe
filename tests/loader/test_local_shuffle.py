"""Random orders of seeds in which those of a group stay together."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow.loader import LocalShuffle

ERROR_RATE = 1e-6


def loader_of(groups: list[int], mix: int, batch_size: int = 3, **options) -> NodeFlowLoader:  # type: ignore[no-untyped-def]
    count = len(groups)
    ring = Graph.from_edges(range(count), np.roll(np.arange(count), 1))
    sampler = NeighborSampler(ring, [1])
    options = {"seeds": range(count)} | options
    return NodeFlowLoader(
        sampler, batch_size=batch_size, shuffle=LocalShuffle(groups, mix), **options
    )


def orders(loader: NodeFlowLoader, epochs: int) -> list[tuple[int, ...]]:
    return [tuple(loader._order.positions(loader.seed, epoch).tolist()) for epoch in range(epochs)]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 8), st.integers(0, 3))
def test_groups_that_are_mixed_lie_together(groups, mix, epoch):
    order = orders(loader_of(groups, mix), epoch + 1)[-1]
    assert sorted(order) == list(range(len(groups)))
    of = [groups[seed] for seed in order]
    # from one of the places where an epoch may begin, groups come at most `mix` at a time
    assert any(max(sizes_of_pieces(of[begin:] + of[:begin])) <= mix for begin in range(len(of)))


def sizes_of_pieces(of: list[int]) -> list[int]:
    """Cut a row of groups into the shortest pieces that share no group; the number of groups in
    each.
    """
    last = {group: place for place, group in enumerate(of)}
    sizes = []
    piece = set[int]()
    end = 0
    for place, group in enumerate(of):
        piece.add(group)
        end = max(end, last[group])
        if place == end:
            sizes.append(len(piece))
            piece = set()
    return sizes


def test_a_group_alone_is_one_piece_of_the_circle():
    groups = [0] * 4 + [1] * 3 + [2] * 6 + [7] * 2
    for order in orders(loader_of(groups, 1), 50):
        of = [groups[seed] for seed in order]
        assert sum(a != b for a, b in zip(of, of[1:] + of[:1], strict=True)) == 4


@pytest.mark.parametrize("mix", [1, 2])
def test_every_seed_is_equally_likely_in_every_place(mix):
    groups = [0, 1, 1, 2, 2, 2, 2, 2]
    epochs = 8000
    counts = np.zeros((8, 8))
    for order in orders(loader_of(groups, mix), epochs):
        counts[np.arange(8), order] += 1
    # a place has one seed per epoch, so counts of a place are multinomial; eight places are tested
    smallest = min(stats.chisquare(row).pvalue for row in counts)
    assert smallest > ERROR_RATE / 8


def test_all_groups_mixed_are_a_random_order():
    seen = Counter(orders(loader_of([0, 0, 1, 2], 3), 12_000))
    counts = [seen[order] for order in itertools.permutations(range(4))]
    assert sum(counts) == 12_000
    assert stats.chisquare(counts).pvalue > ERROR_RATE


def test_epochs_differ_and_seeds_repeat_them():
    groups = [i // 5 for i in range(40)]
    first, second = orders(loader_of(groups, 2), 2)
    assert first != second
    assert orders(loader_of(groups, 2), 2) == [first, second]
    assert orders(loader_of(groups, 2, seed=1), 1) != [first]
    assert orders(loader_of(groups, 2, num_workers=2), 1) == [first]


def test_rows_of_nodes_have_the_group_of_the_first():
    pairs = torch.tensor([[0, 3], [3, 0], [1, 2], [2, 1]])
    loader = loader_of([0, 0, 1, 1], 1, seeds=pairs, batch_size=4)
    for order in orders(loader, 20):
        firsts = [[0, 1, 0, 1][position] for position in order]  # groups of 0, 3, 1, 2
        assert sum(a != b for a, b in zip(firsts, firsts[1:] + firsts[:1], strict=True)) == 2


def test_a_state_goes_on_with_the_same_groups_only():
    groups = [i // 5 for i in range(40)]
    loader = loader_of(groups, 2)
    batches = [batch.seeds for batch in loader]
    state = loader.state_dict() | {"batch_number": 5}
    again = loader_of(groups, 2)
    again.load_state_dict(state)
    assert all(torch.equal(a.seeds, b) for a, b in zip(again, batches[5:], strict=True))
    plain = NodeFlowLoader(loader.sampler, range(40), 3, shuffle=True)
    for other, kept in (
        (loader_of(groups, 3), state),
        (loader_of(groups[::-1], 2), state),
        (plain, state),
        (loader, plain.state_dict()),
    ):
        with pytest.raises(ValueError, match=r"mix=|groups_hash="):
            other.load_state_dict(kept)


def test_weights_draw_in_their_own_order():
    weighted = loader_of([0, 0, 1], 1, weights=[1.0, 0.0, 0.0])
    assert [seed for batch in weighted for seed in batch.seeds[batch.seed_index].tolist()] == [
        0,
        0,
        0,
    ]


def test_no_seeds():
    assert [len(batch.seeds) for batch in loader_of([0, 1], 1, seeds=[])] == []


def test_repr_and_copies():
    order = LocalShuffle([4, 4, 9], mix=2)
    assert repr(order) == "LocalShuffle(2 groups, mix=2)"
    with pytest.raises(AttributeError, match="immutable"):
        order.mix = 3  # type: ignore[misc]
