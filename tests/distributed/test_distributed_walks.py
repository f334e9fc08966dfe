"""Random walks in a graph that lies on several ranks: those of the whole graph, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import NODES, fingerprint, graph_of_all
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow import Graph, RandomWalkSampler
from nodeflow.distributed import PeerError
from nodeflow.sampling.base import Choice
from nodeflow.testing import graphs

Make = Callable[[Graph], RandomWalkSampler]


def assert_same_walks(graph: Graph, parts: Parts, make: Make, seeds: list[list[int]], out: list[list[int]]) -> None:
    """Every rank gets the batch of its seeds, without its edges ``out``, that the whole graph gives."""

    def drawn(sampler: RandomWalkSampler, rank: int) -> list[str]:
        left = [sampler, sampler.without_edges(out[rank]).without_edges(out[rank][:1])]
        return [fingerprint(each(seeds[rank], epoch=1)) for each in left]

    whole = make(graph)
    found = run_ranks(parts.num_parts, lambda t: drawn(make(parts.on(t)), t.rank))
    assert found == [drawn(whole, rank) for rank in range(parts.num_parts)]


@settings(max_examples=25)
@given(graphs(max_nodes=10, max_edges=24), st.data())
def test_any_graph_any_cut_any_walk(graph: Graph, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4))
    few = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=7))
    direction = data.draw(st.sampled_from(["in", "out"]))
    parts = Parts(graph, [few[v % len(few)] for v in range(graph.num_nodes)], size, direction)
    options: dict[str, Any] = {
        "num_walks": data.draw(st.integers(1, 6)), "walk_length": data.draw(st.integers(1, 4)),
        "restart": data.draw(st.sampled_from([0, 0.3, 1])), "num_neighbors": data.draw(st.sampled_from([-1, 1, 3])),
        "normalize": data.draw(st.booleans()), "direction": direction,
    }  # fmt: skip
    options |= data.draw(st.sampled_from([{}, {"reuse": True}, {"include_dst": False}]))

    def some(upper: int) -> list[int]:
        return data.draw(st.lists(st.integers(0, max(upper - 1, 0)), max_size=5 if upper else 0))

    seeds, out = ([some(count) for _ in range(size)] for count in (graph.num_nodes, graph.num_edges))
    assert_same_walks(graph, parts, lambda g: RandomWalkSampler(g, 2, **options), seeds, out)


def test_dead_ends_and_isolated_starts() -> None:
    # 0 <- 1 <- 2 ends at 2, 3 has no edges, 4 has a self-loop
    graph = Graph.from_edges([1, 2, 4], [0, 1, 4], num_nodes=5)
    parts = Parts(graph, [0, 1, 2, 0, 1], 3)
    make: Make = lambda g: RandomWalkSampler(g, 1, num_walks=7, walk_length=5, restart=0.2)  # noqa: E731
    assert_same_walks(graph, parts, make, [[0, 3, 2, 1, 4], [], [3, 3]], [[1], [], [0]])


def test_filters_and_both_hubs_of_a_batch() -> None:
    graph = graph_of_all()
    parts = Parts(graph, [(5 * v) % 7 % 3 for v in range(NODES)], 3)
    make: Make = lambda g: RandomWalkSampler(g, 2, 5, walk_length=4, edge_filter="old", seed=7)  # noqa: E731
    assert_same_walks(graph, parts, make, [[1, 2, 40], [], list(range(30))], [[3, 17], list(range(100)), []])


def test_four_exchanges_a_step_and_nodes_asked_about_once() -> None:
    # all 50 walks from node 0 stand at node 1 after their first step: it is asked about once
    graph = Graph.from_edges([1, 0], [0, 1])
    parts = Parts(graph, [0, 1], 2)

    def drawn(transport: ThreadTransport) -> tuple[int, dict[str, int]]:
        held = parts.on(transport)
        sampler, counters = RandomWalkSampler(held, 1, num_walks=50, walk_length=3, restart=0), held.peers.counters
        before = counters.exchanges
        sampler([0] if transport.rank == 0 else [])
        return counters.exchanges - before, counters.by_kind

    (first, sent), (second, answered) = run_ranks(2, drawn)
    assert first == second == 4 * 3
    asked = sent["degrees of nodes where walks are: questions"]
    # the node where all walks stand, in 4 bytes, beside an array without edges left out; not 50 nodes
    assert 0 < asked < 50 * 4
    assert answered["steps of walks: answers"] > 50 * 4


def test_a_failure_on_one_rank_reaches_the_others() -> None:
    parts = Parts(graph_of_all(), [v % 3 for v in range(NODES)], 3)

    def drawn(transport: ThreadTransport) -> None:
        sampler = RandomWalkSampler(parts.on(transport), 1)
        if transport.rank == 1:
            sampler = sampler.with_reader(sampler.reader._replace(left_out=np.array([500])))  # no edge
            with pytest.raises(IndexError):
                sampler([1])
        else:
            with pytest.raises(PeerError, match="rank 1 failed while this one was at degrees of nodes"):
                sampler([2])

    run_ranks(3, drawn)


class Fewer(RandomWalkSampler):
    def choose(self, dst, step):
        choice = super().choose(dst, step)
        return Choice(choice.indptr, src=choice.take_sources(self.reader.edges), weight=torch.ones(choice.indptr[-1]))


def test_a_choose_of_the_users_own_walks_too() -> None:
    parts = Parts(graph_of_all(), [v % 2 for v in range(NODES)], 2)
    expected = fingerprint(Fewer(parts.graph, 1)([1, 2, 3]))
    assert run_ranks(2, lambda t: fingerprint(Fewer(parts.on(t), 1)([1, 2, 3]))) == [expected, expected]
