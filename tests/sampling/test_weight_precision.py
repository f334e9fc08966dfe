"""Estimator weights keep the precision of a float64 column, and are float32 otherwise."""

from __future__ import annotations

import pytest
import torch
from _support.sampler_families import FAMILIES, LAYERED, graph_of_all, sampled

from nodeflow import ClusterSampler, NeighborSampler, SaintSampler, ShadowSampler, create_full_node_flow
from nodeflow.sampling import Sampler

MORE = {
    "saint": lambda g, **o: SaintSampler(g, 1, kind="edge", budget=12, **o),
    "cluster": lambda g, **o: ClusterSampler(g, 1, list(range(g.num_nodes)), **o),
    "shadow": lambda g, **o: ShadowSampler(g, 2, depth=1, fanout=2, **o),
}


def graph_with_columns():
    graph = graph_of_all()
    graph.edata["exact"] = 1 + torch.arange(graph.num_edges, dtype=torch.float64) * 2.0**-40
    graph.edata["rounded"] = graph.edata["exact"].float()
    graph.edata["whole"] = torch.arange(graph.num_edges) + 1
    return graph


GRAPH = graph_with_columns()


@pytest.mark.parametrize("name", [*LAYERED, *MORE])
def test_weights_have_the_precision_of_their_column(name):
    make = {**LAYERED, **MORE}[name]
    for column, kind in (("exact", torch.float64), ("rounded", torch.float32), ("whole", torch.float32)):
        batch = sampled(name, make(GRAPH, weight=column))
        assert {flow.weight.dtype for flow in batch.flows} == {kind}
    # weights are A times a factor that has nothing to do with the column's last digits where these decide nothing
    exact = sampled("full", LAYERED["full"](GRAPH, weight="exact"))
    assert all(torch.equal(flow.weight, GRAPH.edata["exact"][flow.parent_eid]) for flow in exact.flows)


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_without_a_column_are_single(name):
    assert {flow.weight.dtype for flow in sampled(name, FAMILIES[name](GRAPH)).flows} == {torch.float32}


def test_a_fanout_leaves_all_digits():
    flow = NeighborSampler(GRAPH, [3], weight="exact")(range(GRAPH.num_nodes)).flows[0]
    factor = (GRAPH.in_degrees().double() / GRAPH.in_degrees().clamp(max=3))[flow.dst_layer.parent_nid]
    wanted = GRAPH.edata["exact"][flow.parent_eid] * factor[flow.edges()[1]]
    torch.testing.assert_close(flow.weight, wanted, rtol=1e-15, atol=0)


class Half(Sampler):
    """A sampler of a user's own."""

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 0.5, prob=0.5)


def test_a_sampler_of_ones_own_and_the_whole_graph():
    flow = Half(GRAPH, 1, weight="exact")(range(20)).flows[0]
    assert torch.equal(flow.weight, 2 * GRAPH.edata["exact"][flow.parent_eid])
    assert Half(GRAPH, 1, weight="rounded")(range(20)).flows[0].weight.dtype == torch.float32
    whole = create_full_node_flow(GRAPH, 1, weight="exact").flows[0]
    assert torch.equal(whole.weight, GRAPH.edata["exact"][whole.parent_eid])
