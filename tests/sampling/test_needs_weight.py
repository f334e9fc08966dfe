"""Whether a plain mean over the edges of a flow is biased: what a flow says, against the weights
that were drawn.
"""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.protocol_tools import Bernoulli
from _support.sampler_families import (
    CERTAIN,
    CONSTANT,
    FAMILIES,
    LAYERED,
    NODES,
    graph_of_all,
    sampled,
)

from nodeflow import (
    ClusterSampler,
    Flow,
    FullSampler,
    Graph,
    LayerSampler,
    NeighborSampler,
    Sampler,
    create_full_node_flow,
    flow_from_edges,
)
from nodeflow.propagation import Propagation
from nodeflow.sampling.base import Choice

GRAPH = graph_of_all()


def varies(flow: Flow) -> bool:
    """Whether the weights of some destination differ, one destination at a time."""
    begin = flow.indptr.tolist()
    weight = flow.weight.tolist()
    return any(len(set(weight[a:b])) > 1 for a, b in itertools.pairwise(begin))


def batches(name, sampler):
    return [sampled(name, sampler, epoch=epoch, batch_number=epoch) for epoch in range(8)]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_against_its_weights(name):
    flows = [flow for batch in batches(name, FAMILIES[name](GRAPH)) for flow in batch.flows]
    needed = {flow.needs_weight for flow in flows}
    if name in CONSTANT:
        assert needed == {False}, (
            "its weights differ: take it out of CONSTANT in _support/sampler_families.py"
        )
        assert not any(varies(flow) for flow in flows)
    else:
        assert True in needed, (
            "its weights are all the same: name it in CONSTANT in _support/sampler_families.py"
        )
        assert any(varies(flow) for flow in flows if flow.needs_weight)
        assert not any(varies(flow) for flow in flows if not flow.needs_weight)


@pytest.mark.parametrize("name", LAYERED)
def test_a_weight_column_needs_the_weights(name):
    batch = sampled(name, LAYERED[name](GRAPH, weight="w"))
    assert all(flow.needs_weight for flow in batch.flows)


@pytest.mark.parametrize("name", FAMILIES)
def test_samplers_know_it_without_their_weights(name, monkeypatch):
    def refuse(self):
        raise AssertionError("weights were made")

    batch = sampled(name, FAMILIES[name](GRAPH))
    monkeypatch.setattr(Flow, "weight", property(refuse))
    assert all(isinstance(flow.needs_weight, bool) for flow in batch.flows)


@pytest.mark.parametrize(
    "name", ["neighbor", "neighbor, prob", "neighbor, reuse", "labor, 1", "saint, node"]
)
def test_it_survives(name, tmp_path):
    batch = sampled(name, FAMILIES[name](GRAPH))
    wanted = [flow.needs_weight for flow in batch.flows]
    front = sampled("full", FullSampler(GRAPH, 1)) if name == "saint, node" else None
    for other in (
        pickle.loads(pickle.dumps(batch)),
        copy.copy(batch),
        batch.to("cpu"),
        batch.to(torch.device("meta")),
    ):
        assert [flow.needs_weight for flow in other.flows] == wanted
    assert batch[1:].flows[0].needs_weight == wanted[1]
    if front is None:
        lower = FullSampler(GRAPH, 1)(batch.front.parent_nid.flip(0))
        assert [flow.needs_weight for flow in lower.append(batch).flows] == [False, *wanted]


def test_parts_alone_and_joined():
    sampler = ClusterSampler(GRAPH, 1, np.arange(NODES) % 7)
    assert not sampler([3]).flows[0].needs_weight
    assert sampler([3, 4]).flows[0].needs_weight


def test_layers_without_score():
    kinds = {
        draw: LayerSampler(GRAPH, [4], draw=draw)([1, 2, 3])
        for draw in ("replacement", "poisson", "systematic")
    }
    assert {draw: batch.flows[0].needs_weight for draw, batch in kinds.items()} == {
        "replacement": True, "poisson": False, "systematic": False,
    }  # fmt: skip


def test_one_type_that_draws_is_like_none():
    sampler = NeighborSampler(GRAPH, [{0: 2}, {0: 2, 1: 1}], edge_type="type")
    assert [flow.needs_weight for flow in sampler([1, 2, 3]).flows] == [False, True]


class Weighted(Sampler):
    """All edges, with weights that the caller gives for each, as a tensor or as a function."""

    def choose(self, dst, step):
        edges = self.candidates(dst)
        chosen = edges.select(np.arange(len(edges)))
        return Choice(chosen.indptr, chosen.positions, weight=step.inputs(edges))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("of", "wanted"),
    [
        (lambda edges: edges.eid + 1.0, True),
        (lambda edges: edges.degrees[edges.rows] + 0.5, False),
        (lambda edges: torch.ones(len(edges)), False),
    ],
)
def test_weights_of_a_sampler_of_ones_own_are_compared(of, wanted, late):
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 1, 1, 2, 2], num_nodes=6)
    made = Weighted(graph, 1)(
        [0, 1, 2, 5], inputs=lambda edges: (lambda: of(edges)) if late else of(edges)
    )
    assert made.flows[0].needs_weight is wanted
    assert pickle.loads(pickle.dumps(made)).flows[0].needs_weight is wanted
    assert Weighted(graph, 1)([0, 5], inputs=of).flows[0].needs_weight is False


def test_flows_made_without_a_sampler():
    src = [0, 1, 2]
    dst = [0, 0, 1]
    sizes = {"num_src": 3, "num_dst": 3}
    assert not flow_from_edges(src, dst, **sizes).needs_weight
    assert not flow_from_edges([], [], **sizes).needs_weight
    assert not flow_from_edges(src, dst, **sizes, weight=torch.tensor([2.0, 2.0, 1.0])).needs_weight
    assert flow_from_edges(src, dst, **sizes, weight=torch.tensor([2.0, 3.0, 1.0])).needs_weight
    assert not create_full_node_flow(GRAPH, 1).flows[0].needs_weight
    assert create_full_node_flow(GRAPH, 1, weight="w").flows[0].needs_weight
    assert not Propagation(GRAPH).flow(0, NODES).needs_weight
    assert Propagation(GRAPH.view(weight="w")).flow(0, NODES).needs_weight


def test_the_lists_of_families_name_families():
    assert FAMILIES.keys() > CONSTANT | CERTAIN


def graph_with_columns():
    graph = graph_of_all()
    graph.edata["exact"] = 1 + torch.arange(graph.num_edges, dtype=torch.float64) * 2.0**-40
    graph.edata["rounded"] = graph.edata["exact"].float()
    graph.edata["whole"] = torch.arange(graph.num_edges) + 1
    return graph


COLUMNS = graph_with_columns()


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "random walk"])
def test_weights_have_the_precision_of_their_column(name):
    for column, kind in (
        ("exact", torch.float64),
        ("rounded", torch.float32),
        ("whole", torch.float32),
    ):
        batch = sampled(name, FAMILIES[name](COLUMNS, weight=column))
        assert {flow.weight.dtype for flow in batch.flows} == {kind}
    # weights are A times a factor that has nothing to do with the column's last digits where these
    # decide nothing
    exact = sampled("full", LAYERED["full"](COLUMNS, weight="exact"))
    assert all(
        torch.equal(flow.weight, COLUMNS.edata["exact"][flow.parent_eid]) for flow in exact.flows
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_without_a_column_are_single(name):
    assert {flow.weight.dtype for flow in sampled(name, FAMILIES[name](COLUMNS)).flows} == {
        torch.float32
    }


def test_a_fanout_leaves_all_digits():
    flow = NeighborSampler(COLUMNS.view(weight="exact"), [3])(range(COLUMNS.num_nodes)).flows[0]
    factor = (COLUMNS.in_degrees().double() / COLUMNS.in_degrees().clamp(max=3))[
        flow.dst_layer.parent_nid
    ]
    wanted = COLUMNS.edata["exact"][flow.parent_eid] * factor[flow.edges()[1]]
    torch.testing.assert_close(flow.weight, wanted, rtol=1e-15, atol=0)


def test_a_sampler_of_ones_own_and_the_whole_graph():
    flow = Bernoulli(COLUMNS.view(weight="exact"), 1, 0.5)(range(20)).flows[0]
    assert torch.equal(flow.weight, 2 * COLUMNS.edata["exact"][flow.parent_eid])
    assert (
        Bernoulli(COLUMNS.view(weight="rounded"), 1, 0.5)(range(20)).flows[0].weight.dtype
        == torch.float32
    )
    whole = create_full_node_flow(COLUMNS, 1, weight="exact").flows[0]
    assert torch.equal(whole.weight, COLUMNS.edata["exact"][whole.parent_eid])
