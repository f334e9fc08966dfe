"""Edges left out for a batch, in every family: never drawn, no part of the estimand, and right on threads."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, LAYERED, fingerprint, graph_of_all, sampled
from _support.sampler_reference import star

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlow, TemporalNeighborSampler
from nodeflow.sampling.base import BoundSampler
from nodeflow.testing import assert_unbiased

RARER = [name for name in LAYERED if "," in name and name not in ("neighbor, prob", "labor, 1")]
BOUND = [name for name in FAMILIES if name != "link"]


@pytest.mark.parametrize("name", BOUND)
def test_nothing_is_read_from_the_graph_again(name, monkeypatch):
    """A batch that leaves edges out costs a batch, not another pass over the graph."""
    sampler = FAMILIES[name](graph_of_all())
    monkeypatch.setattr(BoundSampler, "read_graph", lambda self: pytest.fail("bound again"))
    batch = sampled(name, sampler.without_edges(range(0, 500, 3)))
    batch.validate()
    if name != "random walk":  # whose edges are not the graph's
        assert not any(bool((flow.parent_eid % 3 == 0).any()) for flow in batch.flows)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in RARER else name for name in LAYERED]
)
def test_the_estimand_lacks_them(name):
    sampler = LAYERED[name](graph_of_all(), weight="w").without_edges([7, 8, 9])
    assert not sampler.estimand()[[7, 8, 9]].any()
    if not name.startswith("fastgcn"):  # whose probabilities stay those of the whole graph: unbiased too, but rarer
        assert_unbiased(sampler, range(12), draws=200)


@pytest.mark.parametrize("name", BOUND)
def test_settings_tell(name):
    sampler = FAMILIES[name](graph_of_all())
    assert repr(sampler) != repr(sampler.without_edges([1])) != repr(sampler.without_edges([2]))


@pytest.mark.parametrize("replace", [False, True])
def test_many_edges_of_a_hub(replace):
    size = 400_000
    graph = star(size)
    left = np.arange(size)[np.arange(size) % 4 != 0]
    whole = FullSampler(graph, 1).without_edges(np.arange(0, size, 4))([0]).flows[0]
    many = NeighborSampler(graph, [20_000], replace=replace).without_edges(np.arange(0, size, 4))([0]).flows[0]
    assert whole.parent_eid.equal(torch.from_numpy(left))
    assert bool((many.parent_eid % 4 != 0).all())
    assert many.src_layer.parent_nid[many.indices].equal(many.parent_eid + 1)  # neighbours belong to the positions


def test_a_temporal_sampler_on_threads_at_once():
    """Threads that make the excerpt at the same time must not take it for the whole."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(50, size=600), rng.integers(50, size=600), num_nodes=50)
    graph.edata["time"] = torch.from_numpy(rng.integers(100, size=600))
    sampler, seeds, times = TemporalNeighborSampler(graph, [3]), list(range(50)), [60] * 50
    expected = fingerprint(sampler.without_edges(range(0, 600, 2))(seeds, times=times))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            fresh, barrier, found = sampler.without_edges(range(0, 600, 2)), threading.Barrier(4), list[NodeFlow]()

            def work(fresh=fresh, barrier=barrier, found=found) -> None:
                barrier.wait()
                found.append(fresh(seeds, times=times))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [fingerprint(batch) for batch in found] == [expected] * 4
    finally:
        sys.setswitchinterval(interval)


def test_columns_are_read_once():
    graph = Graph.from_edges([1, 2, 3, 4], [0] * 4, edata={"time": torch.tensor([10, 20, 30, 40])})
    sampler = TemporalNeighborSampler(graph, [-1])
    graph.edata["time"] = torch.tensor([100, 100, 100, 5])
    for one in (sampler, sampler.without_edges([2])):
        assert one([0], times=[20]).flows[0].parent_eid.tolist() == [0, 1]
