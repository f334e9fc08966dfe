"""A graph that lies on several ranks gives every sampler's NodeFlows of the whole graph, bit for
bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.graphs import html
from _support.ranks import HALOS, Parts, ThreadTransport, run_ranks
from _support.sampler_families import EDGES, FAMILIES, LAYERED, NODES, fingerprint, graph_of_all
from _support.views import viewed
from hypothesis import given, settings, strategies as st

from nodeflow import (
    FastGCNSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    ShadowSampler,
)
from nodeflow.sampling import Sampler, induced
from nodeflow.sampling.base import SamplerBase

WHOLE = graph_of_all()
REFUSED = ["random walk", "saint, edge", "saint, walk"]
DISTRIBUTED = sorted({*FAMILIES} - {*REFUSED})
SEEDS = st.lists(st.integers(0, NODES - 1), max_size=8)


def called(sampler: SamplerBase, seeds: list[int], **which: int) -> str:
    more = {"times": [(7 * seed) % 23 for seed in seeds]} if sampler.takes_times else {}
    return fingerprint(sampler(seeds, **more, **which))


def seeds_of(name: str, nodes: list[int]) -> list[int]:
    """Seeds of the kind that a family takes."""
    if name.startswith("saint"):
        return [sum(nodes)]
    return sorted({node % 7 for node in nodes}) if name == "cluster" else nodes


@st.composite
def cuts(draw: Any, nodes: int = NODES) -> tuple[int, list[int]]:
    """A number of parts, and the part of every node; parts may be empty."""
    size = draw(st.integers(1, 4))
    few = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=12))
    return size, [few[(7 * v) % len(few)] for v in range(nodes)]


@pytest.mark.parametrize("name", DISTRIBUTED)
@settings(max_examples=8)
@given(
    cut=cuts(),
    halo=st.sampled_from(HALOS),
    seeds=st.lists(SEEDS, min_size=4, max_size=4),
    epoch=st.integers(0, 3),
)
def test_every_family_draws_as_in_one_process(name, cut, halo, seeds, epoch):
    size, owner = cut
    parts = Parts(WHOLE, owner, size, halo=halo)
    options = {"weight": "w"} if name in LAYERED and epoch % 2 else {}
    whole = FAMILIES[name](WHOLE, **options)
    seeds = [seeds_of(name, one) for one in seeds]
    expected = [called(whole, seeds[r], epoch=epoch) for r in range(size)]

    def drawn(transport: ThreadTransport) -> str:
        sampler = FAMILIES[name](parts.on(transport), **options)
        return called(sampler, seeds[transport.rank], epoch=epoch)

    assert run_ranks(size, drawn) == expected


class HalfOfAll(Sampler):
    """A user's sampler whose draw depends on all destinations: half of all their edges, in one
    order.
    """

    def choose(self, dst, step):
        edges = self.candidates(dst)
        order = step.random.uniform(edges.eid).argsort()
        return edges.select(order[: len(edges) // 2].sort().values, weight=2.0)


class Half(Sampler):
    """A user's sampler: every edge with probability one half, with a column."""

    by_row = True

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 0.5, prob=0.5)


OWNER = [(3 * v) % 3 if v % 7 else 2 for v in range(NODES)]
THREE = Parts(WHOLE, OWNER, 3)
NEAR = {halo: Parts(WHOLE, OWNER, 3, halo=halo) for halo in HALOS}
BATCHES = [[1, 2, 3, 40], [], [7, 7, 9]]


@pytest.mark.parametrize("kind", [Half, HalfOfAll])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("halo", HALOS)
def test_a_sampler_of_the_users_own(kind, weight, halo):
    expected = [called(kind(WHOLE.view(weight=weight), 2), seeds) for seeds in BATCHES]
    assert (
        NEAR[halo].run(
            lambda graph, rank: called(kind(graph.view(weight=weight), 2), BATCHES[rank])
        )
        == expected
    )


def test_induced_edges_come_from_their_owners():
    def drawn(graph: Graph, rank: int) -> str:
        sampler = NeighborSampler(graph.view(weight="w"), [2, 3]).without_edges([0, 5, 17])
        return fingerprint(induced(sampler(BATCHES[rank]), sampler))

    assert THREE.run(drawn) == [drawn(WHOLE, rank) for rank in range(3)]


@pytest.mark.parametrize("halo", HALOS)
def test_edges_left_out_and_filters(halo):
    left = [[0, 5, 17, 400], [], list(range(0, EDGES, 2))]
    mask = np.arange(EDGES) % 3 > 0

    def kinds(graph: Graph) -> list[Any]:
        return [
            NeighborSampler(graph.view(where=mask), [3, 3]),
            NeighborSampler(graph.view(where=lambda edata: edata["type"] > 0), [3, 3], prob="p"),
            LaborSampler(graph.view(where="old"), [3, 3]),
            LaborSampler(graph.view(where="old"), [3, 3], iterations=1),
            LadiesSampler(graph.view(weight="w"), [5, 5], normalize=True),
            FastGCNSampler(graph.view(weight="w"), [15, 15], draw="poisson"),
            ShadowSampler(graph.view(weight="w"), 2, depth=2, fanout=3),
            # where seeds draw on their own, a row's random numbers depend on the number of all rows
            viewed(NeighborSampler, graph, [{0: 1, 2: 1}, 2], edge_type="type", disjoint=True),
        ]

    def drawn(graph: Graph, rank: int) -> list[str]:
        return [
            called(sampler.without_edges(left[rank]), BATCHES[rank]) for sampler in kinds(graph)
        ]

    assert NEAR[halo].run(drawn) == [drawn(WHOLE, rank) for rank in range(3)]


def test_batches_of_different_numbers_meet_in_one_exchange():
    whole = NeighborSampler(WHOLE, [2, 3], replace=True, seed=4)
    expected = [called(whole, BATCHES[0], epoch=r, batch_number=10 * r) for r in range(3)]

    def drawn(transport: ThreadTransport) -> str:
        sampler = NeighborSampler(THREE.on(transport), [2, 3], replace=True, seed=4)
        return called(sampler, BATCHES[0], epoch=transport.rank, batch_number=10 * transport.rank)

    assert run_ranks(3, drawn) == expected


@THREE.on_every_rank
def test_columns_come_from_their_owners(graph, rank):
    ids = torch.tensor([5, 1, 5, 59, 5]) if rank == 0 else torch.tensor([], dtype=torch.int64)
    rows = graph.ndata["x"].fetch(ids)
    assert torch.equal(rows, WHOLE.ndata["x"][ids])
    out = torch.empty_like(rows)
    assert graph.ndata["x"].fetch(ids, out) is out
    assert torch.equal(out, rows)
    batch = NeighborSampler(graph, [3, 3])(BATCHES[rank])
    batch.copy_from_parent({0: ["x"]}, {0: ["w"], 1: ["time"]})
    layer = batch.layers[0]
    flow = batch.flows[0]
    assert torch.equal(layer.data["x"], WHOLE.ndata["x"][layer.parent_nid])
    assert torch.equal(flow.data["w"], WHOLE.edata["w"][flow.parent_eid])
    with pytest.raises(IndexError, match="ids"):
        graph.ndata["x"].fetch(torch.tensor([NODES]))


def test_questions_about_the_whole_graph():
    by_source = Parts(WHOLE, OWNER, 3, "out")

    def asked(transport: ThreadTransport) -> None:
        graph = THREE.on(transport)
        ids = [5, 5, 59][: transport.rank + 1]
        assert (graph.num_nodes, graph.num_edges) == (NODES, EDGES)
        assert torch.equal(graph.in_degrees(ids), WHOLE.in_degrees(ids))
        assert torch.equal(graph.in_degrees(), WHOLE.in_degrees())
        for cut in (graph, by_source.on(transport)):
            assert torch.equal(cut.out_degrees(ids), WHOLE.out_degrees(ids))
            assert torch.equal(cut.out_degrees(), WHOLE.out_degrees())
            assert torch.equal(cut.in_degrees(ids), WHOLE.in_degrees(ids))
        edges = [499, 0, 7][: transport.rank]
        torch.testing.assert_close(graph.find_edges(edges), WHOLE.find_edges(edges), rtol=0, atol=0)
        assert f"rank {transport.rank} of 3" in repr(graph)

    run_ranks(3, asked)


@pytest.mark.parametrize("name", REFUSED)
@THREE.on_every_rank
def test_others_say_why_they_cannot(graph, rank, name):
    with pytest.raises(
        TypeError, match=r"does not go with a graph that lies on several processes: .{20}"
    ):
        FAMILIES[name](graph)


RING = Graph.from_edges(
    [0, 1, 2], [1, 2, 0], ndata={"x": torch.rand(3, 4)}, edata={"w": torch.rand(3)}
)
TWO = Parts(RING, [0, 0, 1], 2)


@TWO.on_every_rank
def test_tables_make_no_collective_call(graph, rank):
    sampler = NeighborSampler(graph, [2])
    before = graph.peers.counters.exchanges
    text = html(graph)
    assert "DistributedGraph" in text
    assert "3 × 4" in text
    assert "fetched by DistributedRows" in text
    html(sampler)
    assert graph.peers.counters.exchanges == before


@TWO.on_every_rank
def test_pictures_say_why_not(graph, rank):
    with pytest.raises(TypeError, match="a graph that lies on several processes is not plotted"):
        graph.plot()
