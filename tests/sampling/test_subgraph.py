"""Induced subgraphs, and the base of the samplers that make them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from _support.sampler_reference import random_graph
from _support.strategies import edge_ids, masks
from _support.subgraph_reference import assert_is_induced, induced, rows_of
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.random import Random
from nodeflow.sampling.base import SubgraphSampler, edges_along, induced_subgraph
from nodeflow.testing import assert_reproducible, assert_same_node_flow, graphs


class Given(SubgraphSampler):
    """The subgraph of the seeds themselves."""

    def choose_nodes(self, seeds, random):
        return seeds


class Half(SubgraphSampler):
    """Every node with probability one half, whatever the seeds."""

    def choose_nodes(self, seeds, random: Random):
        return torch.arange(self.graph.num_nodes)[random.uniform(range(self.graph.num_nodes)) < 0.5]


@given(graphs(max_nodes=7), st.data())
def test_edges_are_those_among_the_nodes(graph, data):
    nodes = data.draw(st.permutations(range(graph.num_nodes)))[: data.draw(st.integers(0, 7))]
    direction = data.draw(st.sampled_from(["in", "out"]))
    mask = data.draw(masks(graph))
    sampler = Given(graph.view(direction, where=mask), 2)
    rows = rows_of(graph, direction, lambda e: mask[e])
    batch = sampler(nodes)
    assert_is_induced(batch, rows, nodes)
    assert batch.flows[0].weight.tolist() == [1.0] * batch.flow_sizes[0]
    assert batch.flows[0].structure is batch.flows[1].structure
    out = data.draw(edge_ids(graph, 3))
    left = rows_of(graph, direction, lambda e: mask[e] and e not in out)
    assert_is_induced(sampler.without_edges(out[:1]).without_edges(out[1:])(nodes), left, nodes)


@given(graphs(min_nodes=1, max_nodes=5), st.data())
def test_contexts_are_subgraphs_side_by_side(graph, data):
    """Keys of several contexts: only nodes of one context are joined, in whatever order the keys
    come.
    """
    number = st.integers(0, 5 * graph.num_nodes - 1)
    keys = data.draw(st.lists(number, unique=True, max_size=12))
    far = data.draw(st.sampled_from([0, 2**40])) * graph.num_nodes  # contexts beyond 32 bits
    part = induced_subgraph(
        edges_along(graph, "in"), np.array(keys, np.int64) + far, graph.num_nodes
    )
    rows = rows_of(graph)
    everywhere = [
        [(u + k * graph.num_nodes, e) for u, e in rows[v]]
        for k in range(5)
        for v in range(graph.num_nodes)
    ]
    ids = edges_along(graph, "in").ids(part.positions)
    found = [list(zip(part.indices[a:b].tolist(), ids[a:b].tolist(), strict=True))
             for a, b in zip(part.indptr[:-1], part.indptr[1:], strict=True)]  # fmt: skip
    assert found == induced(everywhere, keys)


def test_a_large_subgraph_and_a_hub():
    """Arrays grow: a hub of 50,000 in-edges, half of whose sources are there, in a table of 35,001
    nodes.
    """
    degree = 50_000
    order = np.random.default_rng(0).permutation(degree) + 1
    graph = Graph.from_edges(
        np.concatenate([order, [0, 0]]), np.concatenate([np.zeros(degree), [0, 7]]).astype(int)
    )
    nodes = np.concatenate([np.arange(1, degree, 2), [0], np.arange(2, 20_002, 2)])
    batch = Given(graph, 1)(nodes)
    sources = batch.front.parent_nid[batch.flows[0].indices]
    expected = [u for u in order.tolist() if u % 2 or u <= 20_000]
    hub = degree // 2
    first, end = batch.flows[0].indptr[hub : hub + 2].tolist()
    assert sources[first:end].tolist() == [*expected, 0]
    assert batch.flow_sizes == (len(expected) + 2,)  # the self-loop, and 0 -> 7


def test_a_dense_subgraph():
    """10,000 edges among 100 nodes: the arrays grow several times."""
    nodes = np.arange(100)
    graph = Graph.from_edges(np.repeat(nodes, 100), np.tile(nodes, 100))
    chosen = np.random.default_rng(0).permutation(100)
    assert_is_induced(Given(graph, 1)(chosen), rows_of(graph), chosen.tolist())


def test_weights_are_those_of_the_edges():
    graph = random_graph(2)
    graph.edata["w"] = torch.linspace(-1, 2, 200)
    batch = Given(graph.view(weight="w"), 2)(range(5, 30))
    assert torch.equal(batch.flows[1].weight, graph.edata["w"][batch.flows[1].parent_eid])
    assert batch.flows[0].weight is batch.flows[1].weight


def test_frames_are_their_own():
    batch = Given(random_graph(3), 2)(range(10))
    batch.layers[0].data["x"] = torch.ones(10)
    batch.flows[0].data["y"] = torch.ones(batch.flow_sizes[0])
    assert [list(layer.data) for layer in batch.layers] == [["x"], [], []]
    assert [list(flow.data) for flow in batch.flows] == [["y"], []]


def test_what_a_sampler_of_users_chooses_is_checked():
    graph = random_graph(4)
    with pytest.raises(
        ValueError, match="nodes of a subgraph must be distinct, but node 7 comes twice"
    ):
        Given(graph, 1)([3, 7, 8, 7])

    class Wrong(Given):
        def choose_nodes(self, seeds, random):
            return [0, 40]

    with pytest.raises(
        IndexError, match=r"nodes of a subgraph\[1\] is 40, but node ids go from 0 to 39"
    ):
        Wrong(graph, 1)([0])


def test_the_nodes_belong_to_the_batch():
    graph = random_graph(4)
    nodes = np.arange(4)

    class Stored(Given):
        def choose_nodes(self, seeds, random):
            return nodes

    batch = Stored(graph, 1)([0])
    nodes[0] = 9
    assert batch.seeds.tolist() == [0, 1, 2, 3]


def test_a_random_sampler_of_users():
    graph = random_graph(5)
    sampler = Half(graph, 2, seed=3)
    assert_reproducible(sampler, [1])
    assert sampler([1]).seeds.tolist() != sampler([1], epoch=1).seeds.tolist()
    copy = pickle.loads(pickle.dumps(sampler))
    assert_same_node_flow(copy([1]), sampler([1]))
    assert repr(copy) == repr(sampler) == f"Half({graph}, num_flows=2, seed=3)"
