"""NeighborSampler(disjoint=True): every seed has the neighbourhood that it has alone, and shares no row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.loader_tools import fingerprint
from _support.sampler_reference import chi_square, random_graph
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import FullSampler, Graph, LinkSampler, NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.nn import GraphSAGE
from nodeflow.testing import assert_same_node_flow, graphs

MODES: list[dict[str, Any]] = [{}, {"include_dst": False}, {"reuse": True}, {"direction": "out"}, {"replace": True}]


def of_one_seed(batch: NodeFlow, number: int) -> tuple[Any, ...]:
    """The rows and edges of one context: parent ids by layer, and (edge, source, destination, weight) by flow."""
    layers, flows = [], []
    for layer in batch.layers:
        layers.append(layer.parent_nid[layer.context == number].tolist())
    for flow in batch.flows:
        src, dst = flow.edges()
        assert flow.src_layer.context[src].equal(flow.dst_layer.context[dst])
        held = flow.dst_layer.context[dst] == number
        ends = flow.src_layer.parent_nid[src[held]].tolist(), flow.dst_layer.parent_nid[dst[held]].tolist()
        flows.append(list(zip(flow.parent_eid[held].tolist(), *ends, flow.weight[held].tolist(), strict=True)))
    return layers, flows


@st.composite
def cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1))
    graph.edata["p"] = torch.arange(graph.num_edges) % 3 + 0.5
    graph.edata["type"] = torch.arange(graph.num_edges) % 2
    seeds = draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    options = dict(draw(st.sampled_from([*MODES, {"prob": "p"}, {"edge_type": "type"}])))
    options["weight"] = draw(st.sampled_from([None, "p"]))
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=3))
    which = {"epoch": draw(st.integers(0, 9)), "batch_number": draw(st.none() | st.integers(0, 9))}
    return NeighborSampler(graph, fanouts, disjoint=True, **options), seeds, which


@given(cases())
def test_a_batch_is_the_batches_of_its_seeds(case):
    """Bit for bit, whatever the other seeds are, and their order."""
    sampler, seeds, which = case
    batch = sampler(seeds, **which)
    batch.validate()
    assert batch.seeds.tolist() == list(dict.fromkeys(seeds))
    assert batch.back.context.tolist() == list(range(len(batch.seeds)))
    assert batch.seeds[batch.seed_index].tolist() == seeds
    for number, seed in enumerate(batch.seeds.tolist()):
        assert of_one_seed(batch, number) == of_one_seed(sampler([seed], **which), 0)


@pytest.mark.parametrize("options", MODES[:4], ids=str)
def test_whole_neighbourhoods_are_those_of_other_samplers(options):
    graph, seeds = random_graph(3), [4, 9, 4, 17]
    batch = NeighborSampler(graph, [-1, -1], disjoint=True, **options)(seeds)
    for number, seed in enumerate([4, 9, 17]):
        alone = FullSampler(graph, 2, **options)([seed])
        for layer, own in zip(batch.layers, alone.layers, strict=True):
            assert layer.parent_nid[layer.context == number].tolist() == own.parent_nid.tolist()
        held = of_one_seed(batch, number)[1]
        assert [[edge[0] for edge in flow] for flow in held] == [flow.parent_eid.tolist() for flow in alone.flows]


def test_outputs_are_those_of_joint_neighbourhoods_where_all_is_drawn():
    graph = random_graph(3)
    x, model = torch.randn(graph.num_nodes, 4), GraphSAGE(4, 8, 2)
    model.eval()
    joint, apart = (NeighborSampler(graph, [-1, -1], disjoint=d)([4, 9, 17]) for d in (False, True))
    outputs = [model(batch, x[batch.front.parent_nid]) for batch in (joint, apart)]
    torch.testing.assert_close(*outputs)


def hubs() -> Graph:
    """20,000 seeds with an in-edge from each of the nodes 0 and 1, which have the same 5 sources."""
    src = np.concatenate([np.tile([0, 1], 20_000), np.arange(2, 7), np.arange(2, 7)])
    dst = np.concatenate([np.repeat(np.arange(7, 20_007), 2), np.repeat([0, 1], 5)])
    return Graph.from_edges(src, dst, num_nodes=20_007)


def drawn_by_node_0(**which: int) -> np.ndarray:
    """The edge that node 0 draws in the neighbourhood of each of the seeds."""
    batch = NeighborSampler(hubs(), [1, -1], disjoint=True)(range(7, 20_007), **which)
    rows = (batch.layers[1].parent_nid == 0).nonzero().flatten()
    flow = batch.flows[0]
    return flow.parent_eid[flow.indptr[rows]].numpy() - 40_000


def test_a_node_draws_independently_in_the_neighbourhoods_of_different_seeds():
    """Tables of 5 and 5 x 5 cells, 20,000 draws: if one in 20 copied the other, n r^2 = 50, and it is found."""
    drawn, later = drawn_by_node_0(), drawn_by_node_0(epoch=1)
    assert chi_square(np.bincount(drawn, minlength=5)) < 1
    assert chi_square(np.bincount(5 * drawn[1:] + drawn[:-1], minlength=25)) < 1
    assert chi_square(np.bincount(5 * drawn + later, minlength=25)) < 1
    assert chi_square(np.bincount(5 * drawn + drawn_by_node_0(batch_number=4), minlength=25)) < 1


def test_the_same_seed_draws_the_same_in_two_batches_of_an_epoch_unless_they_are_numbered():
    sampler = NeighborSampler(random_graph(2, 40, 2000), [2, 2], disjoint=True)
    small, large = NodeFlowLoader(sampler, range(40), 8), NodeFlowLoader(sampler, range(40), 20)
    for _ in range(2):
        found = [[of_one_seed(b, k) for b in loader for k in range(len(b.seeds))] for loader in (small, large)]
        assert found[0] == found[1]
    twice = list(NodeFlowLoader(sampler, [3, 3], 1))
    assert of_one_seed(twice[0], 0) != of_one_seed(twice[1], 0)


def test_links_and_edges_left_out():
    graph = random_graph(2)
    sampler = NeighborSampler(graph, [2, 2], disjoint=True)
    batch = LinkSampler(sampler, num_negatives=2, exclude="self")([5, 6])
    batch.validate()
    assert {5, 6}.isdisjoint(batch.flows[0].parent_eid.tolist())
    assert batch.back.context.tolist() == list(range(len(batch.seeds)))
    assert sampler.without_edges([1, 2])([3, 4]).back.context.tolist() == [0, 1]


def test_it_is_a_setting_and_joint_samplers_are_what_they_were():
    graph = random_graph(2)
    joint, apart = NeighborSampler(graph, [2]), NeighborSampler(graph, [2], disjoint=True)
    assert "disjoint" not in repr(joint)
    assert "disjoint=True" in repr(apart)
    assert fingerprint(joint([1, 2])) == fingerprint(NeighborSampler(graph, [2], disjoint=False)([1, 2]))
    assert joint([1, 2]).back.context is None
    assert_same_node_flow(pickle.loads(pickle.dumps(apart))([1, 2]), apart([1, 2]))
    with pytest.raises(ValueError, match="the state is of another sampler: disjoint"):
        NodeFlowLoader(joint, [1]).load_state_dict(NodeFlowLoader(apart, [1]).state_dict())
