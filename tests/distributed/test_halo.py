"""A halo has the edges that it should have, and draws from it make no needless exchange."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from _support.ranks import HALOS, Parts
from _support.sampler_families import NODES, fingerprint, graph_of_all
from hypothesis import given, settings, strategies as st

from nodeflow import Graph, NeighborSampler
from nodeflow.distributed import _halo
from nodeflow.testing import graphs

WHOLE = graph_of_all()
OWNER = np.arange(NODES) // (NODES // 2)
OWN = [[v for v in range(NODES) if OWNER[v] == rank] for rank in range(2)]


@pytest.fixture(scope="module", autouse=True)
def _in_small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_halo, "_PIECE", 7)
        yield


def edges_near(graph: Graph) -> dict[int, list[tuple[int, int]]]:
    """The edges that draws find here: neighbour and id, by node."""
    held, direction = graph.for_sampling.held_part, graph.parts.edges  # type: ignore[attr-defined]
    indptr, ends, ids = held.csc() if direction == "in" else held.csr()
    ids = np.arange(len(ends)) if ids is None else ids
    pairs = list(
        zip(ends.tolist(), held.whole.edge_ids_of(ids.astype(np.int64)).tolist(), strict=True)
    )
    return {int(v): pairs[indptr[i] : indptr[i + 1]] for i, v in enumerate(held.masters)}


@settings(max_examples=40)
@given(graphs(max_nodes=12, max_edges=40), st.data())
def test_a_halo_has_the_nodes_that_own_edges_lead_to_most_often_for_their_size(graph, data):
    size = data.draw(st.integers(2, 3))
    direction = data.draw(st.sampled_from(["in", "out"]))
    owner = np.array(
        [data.draw(st.integers(0, size - 1)) for _ in range(graph.num_nodes)], np.int64
    )
    halo = data.draw(st.sampled_from(HALOS))
    src, dst = (ends.tolist() for ends in graph.edges())
    near_end, far_end = (dst, src) if direction == "in" else (src, dst)
    every = {v: sorted((far_end[e], e) for e in range(graph.num_edges) if near_end[e] == v)
             for v in range(graph.num_nodes)}  # fmt: skip

    def work(one: Graph, rank: int) -> None:
        own = [v for v in range(graph.num_nodes) if owner[v] == rank]
        uses = {
            v: sum(u == v for w in own for u, _ in every[w])
            for v in range(graph.num_nodes)
            if owner[v] != rank
        }
        room = int(halo * sum(len(every[v]) for v in own))
        expected = set(own)
        for v in sorted(
            (v for v in uses if uses[v] and halo),
            key=lambda v: (-uses[v] / max(len(every[v]), 1), v),
        ):
            room -= len(every[v])
            if room < 0:
                break
            expected.add(v)
        found = edges_near(one)
        assert {v: sorted(pairs) for v, pairs in found.items()} == {
            v: every[v] for v in sorted(expected)
        }
        assert list(found) == sorted(expected)
        # and left-out edges are found among them
        near = one.for_sampling.held_part
        wanted = np.array([e for e in range(graph.num_edges) if e % 2], np.int64)
        here = {e for pairs in found.values() for _, e in pairs}
        assert set(near.whole.edge_ids_of(near.edges_here(wanted)).tolist()) == here & set(
            wanted.tolist()
        )

    Parts(graph, owner, size, direction, halo).run(work)


@pytest.mark.parametrize(("halo", "seeds", "exchanges"), [
    (9, OWN, 1),  # all that two flows from own seeds need: nobody asks
    (0, OWN, 2),  # the second flow asks and is answered
    (0, OWN[::-1], 4),  # both flows ask
    (9, [[], []], 1),
])  # fmt: skip
def test_exchanges_of_two_flows(halo, seeds, exchanges):
    def work(graph: Graph, rank: int) -> int:
        sampler = NeighborSampler(graph, [3, 3])
        counters = graph.peers.counters
        before = counters.exchanges
        sent = counters.bytes_sent
        batch = sampler(seeds[rank])
        assert fingerprint(batch) == fingerprint(NeighborSampler(WHOLE, [3, 3])(seeds[rank]))
        assert (counters.bytes_sent == sent) == (exchanges == 1)
        return counters.exchanges - before

    assert Parts(WHOLE, OWNER, 2, halo=halo).run(work) == [exchanges] * 2


def test_columns_that_are_set_later_are_those_that_are_drawn_with():
    column = torch.rand(WHOLE.num_edges)
    other = torch.rand(WHOLE.num_edges)

    def fingerprints(graph: Graph, rank: int) -> list[str]:
        found = []
        parts = graph.edata["p"], graph.edata["w"], graph.edata["p"]
        for weight in (column, other, other.clone().mul_(2), *parts):
            graph.edata["new"] = weight
            found.append(
                fingerprint(
                    NeighborSampler(graph.view(weight="new"), [2, 2], prob="new")(OWN[rank])
                )
            )
        return found

    expected = [fingerprints(graph_of_all(), rank) for rank in range(2)]
    assert Parts(WHOLE, OWNER, 2, halo=1).run(fingerprints) == expected


def test_what_is_near_is_a_graph_for_questions_and_not_for_sums():
    def work(graph: Graph, rank: int) -> None:
        near = graph.for_sampling
        assert repr(near) == repr(graph)
        assert torch.equal(near.in_degrees(), WHOLE.in_degrees())
        assert torch.equal(near.out_degrees([3]), WHOLE.out_degrees([3]))
        assert torch.equal(near.find_edges([7])[0], WHOLE.find_edges([7])[0])
        assert near.has_edges(*(ends[:3] for ends in WHOLE.edges())).all()
        with pytest.raises(TypeError, match="must not count twice"):
            near.held_part.edges_among("in")

    Parts(WHOLE, OWNER, 2, halo=1).run(work)


def test_without_a_halo_a_graph_is_near_itself():
    parts = Parts(WHOLE, OWNER, 2, halo=0)
    assert parts.run(lambda graph, rank: graph.for_sampling is graph) == [True, True]


def test_a_node_that_is_used_often_for_its_size_comes_before_one_that_is_used_more():
    # own node 0 has an edge from 1 and two from 2, which has ten edges of its own, and 1 has one
    graph = Graph.from_edges([1, 2, 2, 0, *[0] * 10], [0, 0, 0, 1, *[2] * 10])
    parts = Parts(graph, [0, 1, 1], 2, halo=1)
    assert list(parts.run(lambda one, rank: edges_near(one))[0]) == [0, 1]
