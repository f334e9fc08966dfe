"""Heat: counts against batches, probabilities against enumeration, orders."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from _support.graphs import random_graph
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, ShadowSampler, transform
from nodeflow.storage import degree_heat, hottest, presample, reach_heat

edges = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def test_presampling_counts_the_batches_of_a_node() -> None:
    graph = random_graph(0, 50, 300)
    loader = NodeFlowLoader(NeighborSampler(graph, [2, 3]), torch.arange(20), 4, shuffle=True)
    counts = torch.zeros(50, dtype=torch.int64)
    for _ in range(3):
        for batch in loader:
            counts[batch.layers[0].parent_nid] += 1
    fresh = NodeFlowLoader(NeighborSampler(graph, [2, 3]), torch.arange(20), 4, shuffle=True)
    assert presample(fresh, 3).equal(counts)
    assert presample(fresh, [0, 1, 2]).equal(counts)
    assert fresh.epoch == -1
    assert presample(fresh, 2, layer=-1).equal((torch.arange(50) < 20).long() * 2)


@given(edges)
def test_degrees_count_the_edges_by_which_a_node_is_drawn(pairs: list[tuple[int, int]]) -> None:
    src, dst = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(src, dst, num_nodes=7)
    drawn, drawing = np.bincount(src, minlength=7), np.bincount(dst, minlength=7)
    assert degree_heat(graph).tolist() == drawn.tolist()
    assert degree_heat(graph, "out").tolist() == drawing.tolist()
    assert degree_heat(graph, "both").tolist() == (drawn + drawing).tolist()


@given(edges, st.integers(1, 3))
def test_one_hop_of_single_edges_is_exact(pairs: list[tuple[int, int]], fanout: int) -> None:
    """Against all outcomes: every edge of a seed is drawn by itself with probability fanout / degree."""
    src, dst = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(src, dst, num_nodes=7)
    seeds, degree = [0, 3], np.bincount(dst, minlength=7)
    drawable = [(u, min(1.0, fanout / degree[v])) for u, v in pairs if v in seeds]
    expected = np.zeros(7)
    for outcome in product([False, True], repeat=len(drawable)) if len(drawable) < 9 else []:
        odds = np.prod([p if on else 1 - p for on, (_, p) in zip(outcome, drawable, strict=True)])
        reached = {*seeds, *(u for on, (u, _) in zip(outcome, drawable, strict=True) if on)}
        expected[list(reached)] += odds
    if len(drawable) < 9:
        assert reach_heat(graph, seeds, [fanout], 2).tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_two_hops_are_close_to_what_is_drawn() -> None:
    graph = random_graph(1, 300, 2400)
    seeds = np.arange(0, 300, 3)
    loader = NodeFlowLoader(NeighborSampler(graph, [3, 3]), seeds, 5, shuffle=True)
    counted = presample(loader, 20).double() / (20 * len(loader))
    computed = reach_heat(graph, seeds, [3, 3], 5)
    assert np.corrcoef(counted, computed)[0, 1] > 0.95
    assert abs(counted.sum() / computed.sum() - 1) < 0.1


def test_fanouts_are_in_flow_order() -> None:
    """Seed 4 draws 2 and 3 or one of them, and these their only neighbours; in the second hop it draws again."""
    graph = Graph.from_edges([2, 3, 0, 1], [4, 4, 2, 3])
    assert reach_heat(graph, [4], [1, 2], 1).tolist() == [1, 1, 1, 1, 1]
    assert reach_heat(graph, [4], [2, 1], 1).tolist() == [0.5, 0.5, 1, 1, 1]


def test_a_node_that_is_twice_in_a_batch_is_read_once() -> None:
    """Each seed of a ShadowSampler has a subgraph of its own; neighbours that they share are in each of them."""
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3])
    loader = NodeFlowLoader(ShadowSampler(graph, 1, depth=2, fanout=5), [1, 2, 3], 3)
    (batch,) = loader
    assert len(batch.layers[0].parent_nid) > 4
    assert presample(loader).tolist() == [1, 1, 1, 1]


def test_all_neighbours_are_certain() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5)
    for everything in (None, -1):
        assert reach_heat(graph, [3], [everything, everything], 1).tolist() == [0, 1, 1, 1, 0]


def test_the_hottest_come_first_and_reorder_a_graph() -> None:
    heat = torch.tensor([2.0, 9.0, 2.0, -1.0])
    order = hottest(heat)
    assert order.tolist() == [1, 0, 2, 3]
    graph = Graph.from_edges([0, 1], [1, 3], num_nodes=4)
    reordered = transform.reorder(graph, order)
    assert reordered.ndata["parent_nid"].tolist() == [1, 0, 2, 3]


def test_mistakes_are_named() -> None:
    graph = Graph.from_edges([0], [1])
    with pytest.raises(IndexError, match="2"):
        reach_heat(graph, [2], [1], 1)
    with pytest.raises(ValueError, match="fanout"):
        reach_heat(graph, [1], [-3], 1)
    with pytest.raises(ValueError, match="direction"):
        degree_heat(graph, "up")
    with pytest.raises(TypeError, match="NodeFlowLoader"):
        presample(graph)  # type: ignore[arg-type]
    loader = NodeFlowLoader(NeighborSampler(graph, [1]), [1])
    with pytest.raises(IndexError, match="layer 2"):
        presample(loader, layer=2)
