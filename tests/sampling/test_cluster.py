"""Cluster-GCN: unions of parts, their weights, and the partition."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from _support.sampler_reference import ends_of, random_graph
from _support.strategies import masks
from _support.subgraph_reference import assert_is_induced, rows_of
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.random import derive_key
from nodeflow.sampling import ClusterSampler, partition
from nodeflow.testing import assert_same_node_flow, graphs


@given(graphs(), st.data())
def test_the_union_of_parts(graph, data):
    """Nodes part by part, all edges among them; parts may be empty, or named twice."""
    parts = data.draw(
        st.lists(st.integers(0, 4), min_size=graph.num_nodes, max_size=graph.num_nodes)
    )
    count = max(parts, default=-1) + 1
    mask = data.draw(masks(graph))
    direction = data.draw(st.sampled_from(["in", "out"]))
    sampler = ClusterSampler(graph.view(direction, where=mask), 2, parts)
    assert sampler.num_seeds == count
    seeds = data.draw(st.lists(st.integers(0, count - 1), max_size=6)) if count else []
    nodes = [v for part in dict.fromkeys(seeds) for v in range(graph.num_nodes) if parts[v] == part]
    assert_is_induced(sampler(seeds), rows_of(graph, direction, lambda e: mask[e]), nodes)


@pytest.mark.parametrize("joined", [2, 3, 4, 5])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_weights_are_unbiased(joined, direction):
    """Over all sets of parts that hold v's own, equally likely: in fractions, with the weights of
    these very sets.

    Part 3 has no nodes, and counts all the same.
    """
    src = [0, 1, 2, 3, 4, 5, 0, 2, 1, 1]
    dst = [1, 2, 3, 4, 5, 0, 3, 1, 1, 2]
    amount = [1, 2, -3, 4, 5, 6, 7, 8, 9, 10]
    graph = Graph.from_edges(src, dst, edata={"w": torch.tensor(amount)})
    parts = [0, 0, 1, 1, 2, 4]
    sampler = ClusterSampler(graph.view(direction, weight="w"), 1, parts)
    pairs = ends_of(graph) if direction == "in" else [(v, u) for u, v in ends_of(graph)]
    value = [3, -7, 1, 100, 11, 5]
    for v in range(6):
        sets = [s for s in itertools.combinations(range(5), joined) if parts[v] in s]
        total = Fraction(0)
        for chosen in sets:
            batch = sampler(chosen)
            flow = batch.flows[0]
            row = batch.front.rows_of([v]).item()
            for e, weight, u in zip(
                flow.parent_eid.tolist(), flow.weight.tolist(), flow.indices.tolist(), strict=True
            ):
                if pairs[e][1] == v:
                    # float32 holds these weights to seven digits: the fraction that is meant
                    exact = Fraction(weight).limit_denominator(100)
                    assert float(exact) == pytest.approx(weight, rel=1e-7)
                    assert batch.seeds[u].item() == pairs[e][0]
                    total += exact * value[pairs[e][0]] / len(sets)
            assert row >= 0
        assert total == sum(a * value[u] for (u, w), a in zip(pairs, amount, strict=True) if w == v)


def test_the_same_part_twice_is_one_part():
    """No other probability, no other weights; and of a part alone all weights are 1."""
    sampler = ClusterSampler(random_graph(0), 2, np.arange(40) % 4)
    assert sampler([1]).flows[0].weight.unique().tolist() == [1]
    for once, again in (([1], [1, 1]), ([1, 3], [1, 3, 1, 3, 3])):
        one = sampler(once)
        two = sampler(again)
        assert two.seed_ids.tolist() == again
        assert torch.equal(one.seeds, two.seeds)
        assert torch.equal(one.flows[0].parent_eid, two.flows[0].parent_eid)
        assert torch.equal(one.flows[0].weight, two.flows[0].weight)


def test_the_parts_given_are_copied():
    graph = random_graph(4)
    parts = np.arange(40) % 2
    sampler = ClusterSampler(graph, 1, parts)
    before = sampler([1]), repr(sampler)
    parts[:] = 0
    assert_same_node_flow(sampler([1]), before[0])
    assert repr(sampler) == before[1]


def test_partition_of_a_graph_with_two_halves():
    """Two cliques joined by one edge; self-loops, repeats and directions change nothing."""
    pytest.importorskip("pymetis")
    clique = [(u, v) for u in range(6) for v in range(6) if u < v]
    pairs = [*clique, *((u + 6, v + 6) for u, v in clique), (0, 6)]
    graph = Graph.from_edges(*zip(*pairs, strict=True))
    parts = partition(graph, 2, seed=3)
    assert parts.dtype == torch.int64
    assert parts[:6].unique().numel() == parts[6:].unique().numel() == 1
    assert parts[0] != parts[6]
    # 256 repeats would be none in a count of 8 bits
    rng = np.random.default_rng(0)
    again = (
        [pair[::-1] if rng.random() < 0.5 else pair for pair in pairs]
        + [(3, 3)] * 5
        + [(0, 6)] * 255
    )
    assert torch.equal(partition(Graph.from_edges(*zip(*again, strict=True)), 2, seed=3), parts)


@given(graphs(min_nodes=2))
def test_what_metis_is_given(graph):
    """Every pair of joined nodes once in each direction, no self-loops: METIS asks for that, and
    does not check it.
    """
    pymetis = pytest.importorskip("pymetis")
    seen = []

    def part_graph(count, adjacency, options):
        seen.append((count, adjacency, options.seed))
        return pymetis.GraphPartition(0, [0] * graph.num_nodes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pymetis, "part_graph", part_graph)
        assert partition(graph, 2, seed=2**70).tolist() == [0] * graph.num_nodes
    ((count, adjacency, seed),) = seen
    assert count == 2
    assert seed == derive_key(2**70) >> 33  # below 2**31, and the same in every version
    near = [set() for _ in range(graph.num_nodes)]
    for u, v in ends_of(graph):
        if u != v:
            near[u].add(v)
            near[v].add(u)
    ends = adjacency.adj_starts.tolist()
    assert [sorted(adjacency.adjacent[a:b].tolist()) for a, b in itertools.pairwise(ends)] == [
        sorted(n) for n in near
    ]


def test_partition_is_fixed_by_its_seed():
    pytest.importorskip("pymetis")
    # METIS asks for random numbers where a graph is not small
    graph = random_graph(6, nodes=2000, edges=8000)
    first = partition(graph, 12, seed=-5)
    assert torch.equal(first, partition(graph, 12, seed=-5))
    assert any(not torch.equal(first, partition(graph, 12, seed=seed)) for seed in range(3))
    assert first.bincount(minlength=12).max() <= 1.1 * 2000 / 12
    sampler = ClusterSampler(graph, 1, 12, seed=-5)
    assert torch.equal(torch.from_numpy(sampler.parts.numbers), first)
    # a good cut leaves fewer edges between parts than one by chance, which leaves 11 of 12
    src, dst = graph.edges()
    assert (first[src] != first[dst]).float().mean() < 0.8


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_partitions_of_graphs_with_almost_nothing(nodes):
    pytest.importorskip("pymetis")
    graph = Graph.from_edges([], [], num_nodes=nodes)
    for count in range(1, nodes + 1):
        parts = partition(graph, count)
        assert parts.shape == (nodes,)
        assert int(parts.min()) >= 0
        assert int(parts.max()) < count
        sampler = ClusterSampler(graph, 1, count)
        assert sampler.num_seeds == count
        assert sum(sampler([k]).layer_sizes[0] for k in range(count)) == nodes
    assert partition(Graph([0], []), 1).tolist() == []


def test_without_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match="install it with: pip install pymetis"):
        ClusterSampler(random_graph(0), 2, 3)
    assert ClusterSampler(random_graph(0), 2, [0] * 40)([0]).layer_sizes == (40, 40, 40)
