"""Full neighbourhoods against independent work: sparse products, the full-graph forward pass,
breadth-first search.
"""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from _support.graphs import random_graph

from nodeflow import FullSampler, Graph, NeighborSampler

SAMPLERS = {
    "full": lambda g, flows: FullSampler(g, flows),
    "full reuse": lambda g, flows: FullSampler(g, flows, reuse=True),
    "full neighbours only": lambda g, flows: FullSampler(g, flows, include_dst=False),
    "resample": lambda g, flows: NeighborSampler(g, [-1] * flows),
    "reuse": lambda g, flows: NeighborSampler(g, [10**6] * flows, reuse=True),
}


@pytest.fixture(params=SAMPLERS)
def sampler(request):
    return SAMPLERS[request.param]


def adjacency(graph: Graph) -> scipy.sparse.csr_array:
    """Row v holds the in-edges of v, built from the edge list; repeated edges add up."""
    src, dst = (end.numpy() for end in graph.edges())
    return scipy.sparse.csr_array((np.ones(len(src)), (dst, src)), shape=(graph.num_nodes,) * 2)


@pytest.mark.parametrize("flows", [1, 2, 3, 4])
def test_sum_is_the_sparse_product_layer_by_layer(sampler, flows):
    graph = random_graph(flows, 60, 150)
    a = adjacency(graph)
    h = np.random.default_rng(1).normal(size=(60, 3))
    batch = sampler(graph, flows)([5, 17, 17, 0, 42])
    value = torch.from_numpy(h)[batch.front.parent_nid]
    expected = h
    for flow in batch.flows:
        value = flow.aggregate(value, "sum")
        expected = a @ expected
        np.testing.assert_allclose(value, expected[flow.dst_layer.parent_nid], rtol=0, atol=1e-10)
    assert value[batch.seed_index].equal(value[[0, 1, 1, 2, 3]])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("reuse", [False, True])
def test_layers_are_the_breadth_first_levels(seed, direction, reuse):
    graph = random_graph(seed, nodes=80, edges=130)
    src, dst = (end.tolist() for end in graph.edges())
    digraph = networkx.MultiDiGraph()
    digraph.add_nodes_from(range(80))
    digraph.add_edges_from(
        zip(src, dst, strict=True) if direction == "out" else zip(dst, src, strict=True)
    )
    seeds = [3, 50, 9]
    flows = 4
    batch = FullSampler(graph.view(direction), flows, reuse=reuse)(seeds)
    levels = list(networkx.bfs_layers(digraph, seeds))
    levels += [[]] * (flows + 1)
    for depth in range(flows + 1):
        layer = batch.layers[flows - depth].parent_nid.tolist()
        before = [] if depth == 0 else batch.layers[flows - depth + 1].parent_nid.tolist()
        assert layer[: len(before)] == before
        assert sorted(layer[len(before) :]) == sorted(levels[depth])


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_only_are_what_walks_of_one_length_reach(seed):
    """Without the destinations, layer L - k holds the ends of all walks of exactly k steps."""
    graph = random_graph(seed, nodes=80, edges=130)
    a = adjacency(graph)
    reach = np.zeros(80)
    reach[[3, 50, 9]] = 1
    batch = FullSampler(graph, 4, include_dst=False)([3, 50, 9])
    for layer in reversed(batch.layers[:-1]):
        reach = (a.T @ reach > 0).astype(float)
        assert layer.parent_nid.tolist() == reach.nonzero()[0].tolist()
