"""NodeFlowLoader(weights=...): seeds with replacement, in proportion to weights;
balanced_weights.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.loader_tools import epoch, make, random_graph, seeds_of
from hypothesis import given, strategies as st
from scipy.stats import chisquare

from nodeflow import NodeFlowLoader, TemporalNeighborSampler
from nodeflow.loader import balanced_weights
from nodeflow.loader._order import draw, running_sums
from nodeflow.random import Random

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")


def counts(loader: NodeFlowLoader, epochs: int) -> np.ndarray:
    """How often every position of the seeds is drawn in some epochs, from the seeds of the batches
    alone.
    """
    found = np.zeros(60, np.int64)
    for _ in range(epochs):
        for batch in loader:
            np.add.at(found, seeds_of(batch), 1)
    return found


def test_seeds_come_in_proportion_to_their_weights():
    """Chi-square over 12,000 draws; the test fails with probability 1e-4 for a law that is right,
    at a random seed.
    """
    weights = torch.arange(60) % 7 + 0.5
    found = counts(make(weights=weights, batch_size=60), 200)
    expected = weights.double().numpy() / float(weights.sum()) * found.sum()
    assert found.sum() == 12_000
    assert chisquare(found, expected).pvalue > 1e-4


@given(
    st.lists(st.sampled_from([0.0, 1e-300, 0.1, 1.0, 3.0, 1e300]), min_size=1), st.integers(0, 100)
)
def test_a_weight_of_0_is_never_drawn(weights, key):
    if not any(weights):
        weights[0] = 1.0
    drawn = draw(running_sums(weights, len(weights)), Random(key))
    assert len(drawn) == len(weights)
    assert all(weights[i] > 0 for i in drawn.tolist())


def test_the_last_point_stays_before_weights_of_0():
    class Ones:
        def uniform(self, ids):
            return torch.full((len(ids),), 1 - 2.0**-53, dtype=torch.float64)

    assert draw(running_sums([1.0, 0.3, 0.0, 0.0], 4), Ones()).tolist() == [1] * 4


def test_every_epoch_has_an_order_of_its_own_whatever_shuffle():
    weights = np.linspace(0, 1, 60)
    plain = make(weights=weights)
    epochs = [epoch(plain) for _ in range(3)]
    plain.set_epoch(1)
    assert epoch(plain) == epochs[1]
    assert epoch(make(weights=weights, seed=1)) != epochs[0]
    assert epoch(make(weights=weights, shuffle=True)) == epochs[0]


def test_a_state_knows_the_weights():
    state = make(weights=[1.0] * 60).state_dict()
    make(weights=torch.ones(60)).load_state_dict(state)
    with pytest.raises(ValueError, match="weights_hash"):
        make(weights=[2.0] * 60).load_state_dict(state)
    with pytest.raises(ValueError, match="weights_hash"):
        make(weights=[1.0] * 60).load_state_dict(make().state_dict())


def test_like_batches_of_an_epoch_are_different_draws():
    """A single seed has a weight, so all batches have the same seeds."""
    batches = epoch(make(weights=[1.0] + [0.0] * 59, drop_last=True))
    assert len(set(batches)) == 3


def test_rows_of_seeds_and_times_are_drawn_together():
    graph = random_graph()
    graph.edata["time"] = torch.arange(500)
    pairs = torch.arange(60).view(30, 2)
    sampler = TemporalNeighborSampler(graph, [2])
    for batch in NodeFlowLoader(sampler, pairs, 8, times=pairs[:, 0] * 8, weights=[1.0] * 30):
        asked = batch.seeds[batch.seed_index]
        assert asked[:, 1].equal(asked[:, 0] + 1)
        assert batch.ldata[-1]["time"][batch.seed_index].equal((asked[:, :1] * 8).expand(-1, 2))


def test_no_seeds():
    assert list(make([], weights=[])) == []


# ---- balanced_weights


@given(st.lists(st.integers(-2, 5), min_size=1).filter(lambda labels: max(labels) >= 0))
def test_the_weights_of_every_class_are_equal_and_add_up_to_1(labels):
    weights = balanced_weights(labels)
    assert weights.dtype == torch.float64
    for label, weight in zip(labels, weights.tolist(), strict=True):
        assert weight == (label >= 0) / labels.count(label)
