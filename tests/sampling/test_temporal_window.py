"""TemporalNeighborSampler with a window of time: ``since``."""

from __future__ import annotations

import itertools
import pickle
from functools import partial

import torch
from _support.events import VALUES, events
from _support.sampler_reference import picked_positions

from nodeflow import Graph
from nodeflow.sampling import TemporalNeighborSampler
from nodeflow.testing import assert_same_node_flow


def test_a_window_by_hand():
    """Times of the edges: 5, 1, 9, 3, 3, 8, 2."""
    window = partial(TemporalNeighborSampler, events(), [-1])
    assert picked_positions(window(since=2)([0, 0, 0], times=[5, 9, 0])) == [[3, 4, 0], [5, 2], []]
    assert picked_positions(window(since=2, strict=True)([0, 0], times=[5, 9])) == [[3, 4], [5]]
    assert picked_positions(window(since=0)([0, 0], times=[3, 4])) == [[3, 4], []]
    assert picked_positions(window(since=100)([0], times=[5])) == picked_positions(window()([0], times=[5]))
    recent = TemporalNeighborSampler(events(), [2], strategy="recent", since=3)
    assert picked_positions(recent([0, 0], times=[5, 8])) == [[4, 0], [0, 5]]


def test_the_window_holds_on_every_hop():
    """A path 3 -> 2 -> 1 -> 0 at times 1, 2, 3: what is older than the window of the seed is behind a wall."""
    graph = Graph.from_edges([1, 2, 3], [0, 1, 2], edata={"time": torch.tensor([3, 2, 1])})
    sampler = TemporalNeighborSampler(graph, [-1] * 3, since=1)
    assert [flow.parent_eid.tolist() for flow in sampler([0], times=[3]).flows] == [[0, 1], [0, 1], [0]]


def test_sums_are_unbiased_for_the_window():
    """Over every pair of the four edges from time 2 to 5."""
    sampler = TemporalNeighborSampler(events(), [2], since=3)
    seen = [6, 3, 4, 0]
    assert sampler.estimand(time=5).nonzero().flatten().tolist() == sorted(seen)
    estimates = {}
    for epoch in range(200):
        flow = sampler([0], times=[5], epoch=epoch).flows[0]
        sums = flow.aggregate(VALUES[flow.src_layer.parent_nid], "sum", weight=flow.weight.double()).item()
        estimates[frozenset(flow.parent_eid.tolist())] = sums
    assert set(estimates) == set(map(frozenset, itertools.combinations(seen, 2)))
    assert sum(estimates.values()) / 6 == float((sampler.estimand(time=5) * VALUES[1:]).sum())


def test_the_smallest_times():
    low = -(2**63)
    graph = Graph.from_edges([1, 2], [0, 0], edata={"time": torch.tensor([low, low + 5])})
    sampler = TemporalNeighborSampler(graph, [-1], since=2**63 - 1)
    assert picked_positions(sampler([0, 0, 0], times=[low, low + 5, 4])) == [[0], [0, 1], [1]]


def test_a_window_is_a_setting():
    sampler = TemporalNeighborSampler(events(), [2], since=3)
    assert sampler.settings["since"] == 3
    assert "since" not in TemporalNeighborSampler(events(), [2]).settings
    copied = pickle.loads(pickle.dumps(sampler.without_edges([3])))
    assert_same_node_flow(copied([0], times=[5]), sampler.without_edges([3])([0], times=[5]))
