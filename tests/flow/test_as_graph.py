"""The graph over all layers of a NodeFlow, and the NodeFlow ids of its nodes and edges."""

from __future__ import annotations

import torch
from _support.old_nodeflow import edge_lists
from hypothesis import given, strategies as st

from nodeflow import Graph, NeighborSampler, create_node_flow, flow_from_edges


@given(
    edges=edge_lists(),
    fanouts=st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=3),
    own=st.booleans(),
)
def test_ids_are_those_of_the_nodeflow(edges, fanouts, own):
    parent = Graph.from_edges(edges.src, edges.dst, num_nodes=edges.num_nodes)
    batch = NeighborSampler(parent, fanouts, include_dst=own)(range(edges.num_nodes))
    graph = batch.as_graph()
    starts = batch.layer_offsets()
    first = batch.flow_offsets()
    assert (graph.num_nodes, graph.num_edges) == (sum(batch.layer_sizes), sum(batch.flow_sizes))
    assert (starts[-1], first[-1]) == (graph.num_nodes, graph.num_edges)
    for i, flow in enumerate(batch.flows):
        src, dst = flow.edges()
        assert batch.layers(i).tolist() == list(range(starts[i], starts[i + 1]))
        assert batch.flows(i).tolist() == list(range(first[i], first[i + 1]))
        found = graph.find_edges(batch.flows(i))
        assert torch.equal(found[0], src + starts[i])
        assert torch.equal(found[1], dst + starts[i + 1])
        assert torch.equal(graph.in_degrees(batch.layers(i + 1)), batch.in_degrees(i + 1))
        assert torch.equal(graph.out_degrees(batch.layers(i)), batch.out_degrees(i))


def test_flows_that_skip_layers_come_last_in_the_graph():
    low, high = (flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=n) for n in (2, 1))
    skip = flow_from_edges([1], [0], num_src=2, num_dst=1)
    batch = create_node_flow({(0, 1): low, (0, 2): skip, (1, 2): high})
    assert (batch.layer_offsets(), batch.flow_offsets()) == ((0, 2, 4, 5), (0, 2, 4, 5))
    ends = [end.tolist() for end in batch.as_graph().edges()]
    assert ends == [[0, 1, 2, 3, 1], [2, 2, 4, 4, 4]]
    assert [end.tolist() for end in batch.as_graph().find_edges(batch.flows(0, 2))] == [[1], [4]]


def test_a_single_layer():
    batch = create_node_flow([], [[4, 2]])
    assert (batch.as_graph().num_nodes, batch.as_graph().num_edges) == (2, 0)
    assert (batch.layer_offsets(), batch.flow_offsets()) == ((0, 2), (0,))
