"""Contexts: a parent node that is seen in several ways at once is several nodes of a NodeFlow.

Sampling in contexts must be what sampling each context by itself and putting the results side by
side would be.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, graph_of_all, sampled
from _support.sampler_reference import chi_square, fingerprint, picked_positions, random_graph
from _support.unchecked_parts import unchecked
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, LinkSampler, NeighborSampler, NodeFlow, NodeFlowLoader, fn
from nodeflow.flow import Flow, Layer
from nodeflow.nn import GraphSAGE
from nodeflow.testing import assert_same_node_flow, graphs

MODES = [{}, {"include_dst": False}, {"reuse": True}, {"direction": "out"}]


class InContexts(NeighborSampler):
    """Called with a context per seed as its ``inputs``; in each the whole graph is seen."""

    def _sample(self, seeds, keys, contexts=None):
        return super()._sample(seeds, keys, np.asarray(keys.inputs).astype(np.int64))


def full(graph: Graph, num_flows: int = 2, **options: Any) -> InContexts:
    return viewed(InContexts, graph, [-1] * num_flows, **options)


def pairs(layer: Layer) -> list[tuple[int, int]]:
    return list(zip(layer.context.tolist(), layer.parent_nid.tolist(), strict=True))


def edges(flow: Flow) -> list[tuple[Any, ...]]:
    """Every edge as (parent id, source, destination), nodes as pairs."""
    src, dst = flow.edges()
    below = pairs(flow.src_layer)
    above = pairs(flow.dst_layer)
    eid = flow.parent_eid.tolist()
    return [
        (e, below[u], above[v]) for e, u, v in zip(eid, src.tolist(), dst.tolist(), strict=True)
    ]


# ---- what is sampled


@st.composite
def cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1))
    seeds = draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    contexts = draw(st.lists(st.integers(0, 3), min_size=len(seeds), max_size=len(seeds)))
    return graph, draw(st.integers(1, 3)), seeds, contexts, draw(st.sampled_from(MODES))


@given(cases())
def test_contexts_are_side_by_side(case):
    graph, num_flows, seeds, contexts, options = case
    batch = viewed(full, graph, num_flows, **options)(seeds, inputs=contexts)
    batch.validate()
    asked = list(zip(contexts, seeds, strict=True))
    assert [pairs(batch.back)[row] for row in batch.seed_index.tolist()] == asked
    assert pairs(batch.back) == list(dict.fromkeys(asked))
    for c in range(4):
        alone = viewed(FullSampler, graph, num_flows, **options)([v for d, v in asked if d == c])
        for layer, own in zip(batch.layers, alone.layers, strict=True):
            assert layer.parent_nid[layer.context == c].tolist() == own.parent_nid.tolist()
        for flow, own in zip(batch.flows, alone.flows, strict=True):
            held = [edge for edge in edges(flow) if edge[2][0] == c]
            src = own.src_layer.parent_nid[own.indices].tolist()
            dst = own.dst_layer.parent_nid[own.edges()[1]].tolist()
            wanted = zip(own.parent_eid.tolist(), src, dst, strict=True)
            assert held == [(e, (c, u), (c, v)) for e, u, v in wanted]
    if options.get("include_dst") is False:
        assert all(pairs(layer) == sorted(pairs(layer)) for layer in batch.layers[:-1])
    else:
        assert all(
            flow.take_dst(flow.src_layer.context).equal(flow.dst_layer.context)
            for flow in batch.flows
        )


@pytest.mark.parametrize("options", MODES, ids=str)
def test_context_0_draws_as_without_contexts(options):
    graph = random_graph(4)
    ids = [3, 9, 3, 20]
    plain = viewed(NeighborSampler, graph, [2, 3], **options)(ids)
    told = viewed(InContexts, graph, [2, 3], **options)(ids, inputs=[0] * 4)
    assert fingerprint(plain) == fingerprint(told)
    assert plain.front.context is None
    assert told.front.context.eq(0).all()
    # the same node draws on its own in each context
    both = InContexts(random_graph(4, 40, 2000), [2])([*range(40)] * 2, inputs=[0] * 40 + [1] * 40)
    picked = picked_positions(both)
    assert sum(one == other for one, other in zip(picked[:40], picked[40:], strict=True)) < 10


def test_ids_beyond_31_bits():
    """Node times context is the key by which rows are numbered: here it does not fit the packed
    table.
    """
    graph = random_graph(0)
    far = 2**40
    near, wide = (full(graph)([1, 2, 1], inputs=[0, 1, c]) for c in (2, far))
    assert wide.back.context.tolist() == [0, 1, far]
    for layer, other in zip(near.layers, wide.layers, strict=True):
        assert layer.parent_nid.equal(other.parent_nid)
    assert [flow.indices.tolist() for flow in near.flows] == [
        flow.indices.tolist() for flow in wide.flows
    ]


# ---- what a NodeFlow with contexts can do


@pytest.fixture
def batch(graph: Graph) -> NodeFlow:
    """Node 1 in two contexts, and its neighbours."""
    return full(graph)([1, 1, 3], inputs=[0, 1, 1])


def test_validate_knows_contexts(graph):
    def with_context(context: torch.Tensor) -> NodeFlow:
        return unchecked(
            NodeFlow,
            [unchecked(Layer, 3, torch.tensor([4, 4, 1]), context=context)],
            [],
            parent=graph,
        )

    with_context(torch.tensor([0, 1, 0])).validate()
    with pytest.raises(ValueError, match="layer 0 holds parent node 4 twice in one context"):
        with_context(torch.tensor([1, 1, 0])).validate()
    with pytest.raises(ValueError, match="layer 0: 3 nodes but 2 contexts"):
        with_context(torch.tensor([0, 1])).validate()


def test_a_parent_id_does_not_tell_a_row(batch):
    with pytest.raises(
        ValueError,
        match=r"in several contexts .* compare layer.parent_nid and layer.context instead",
    ):
        batch.front.rows_of([1])
    with pytest.raises(ValueError, match="in several contexts"):
        batch.map_from_parent_nid(0, [1])
    assert batch.map_to_parent_nid(batch.layers(-1)).tolist() == [1, 1, 3]


def test_own_rows_are_those_of_the_same_context(graph, batch):
    for flow in batch.flows:
        assert flow.dst_in_src.tolist() == list(range(flow.num_dst))
    # 0 and 2 are sources of 1 in both contexts; a self-loop makes 2 its own source, there is none
    # for 1
    sorted_ = full(graph, 1, include_dst=False)([2, 2, 1], inputs=[1, 0, 0])
    flow = sorted_.flows[0]
    assert pairs(flow.src_layer) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]
    assert flow.dst_in_src.tolist() == [4, 2, 1]
    assert flow.take_dst(torch.arange(5.0)).tolist() == [4, 2, 1]
    missing = full(graph, 1, include_dst=False)([1, 2, 1], inputs=[1, 0, 0]).flows[0]
    assert missing.dst_in_src.tolist() == [-1, 2, 1]  # (0, 1) is a source, (1, 1) is not
    with pytest.raises(ValueError, match=r"destination 0 of flow .* is not in its source layer"):
        missing.take_dst(torch.zeros(missing.num_src))


def test_copies_from_and_to_the_parent(graph, batch):
    batch.copy_from_parent(["feat"], ["w"])
    for layer in batch.layers:
        assert layer.data["feat"].equal(graph.ndata["feat"][layer.parent_nid])
    batch.back.data["h"] = torch.tensor([[1.0], [2.0], [3.0]])
    batch.copy_to_parent({-1: ["h"]}, None)
    assert graph.ndata["h"].flatten().tolist() == [0, 2, 0, 3, 0, 0]  # the last row of node 1 stays
    batch.front.data["h"] = torch.arange(float(batch.front.num_nodes)).unsqueeze(1)
    batch.copy_to_parent({0: ["h"]}, None)
    last = {v: row for row, v in enumerate(batch.front.parent_nid.tolist())}
    assert {v: int(graph.ndata["h"][v]) for v in last} == last


def test_messages_stay_in_their_context(batch):
    batch.front.data["h"] = 10.0 ** batch.front.context.double()
    batch.forward(fn.copy_u("h", "m"), fn.mean("m", "h"))
    assert batch.back.data["h"].tolist() == [1, 10, 10]


@pytest.mark.parametrize("options", MODES, ids=str)
def test_pickles_slices_and_moves_keep_contexts(options):
    graph = random_graph(7)
    batch = viewed(InContexts, graph, [2, 2, 3], **options)([1, 2, 1, 1], inputs=[0, 0, 1, 0])
    for layer in batch.layers:
        layer.data["c"] = layer.context.clone()
    for copied in (
        pickle.loads(pickle.dumps(batch)),
        batch.to("cpu"),
        batch[:],
        batch.with_parent(graph),
    ):
        copied.validate()
        assert_same_node_flow(copied, batch)
    upper = batch[1:]
    upper.validate()
    assert [pairs(layer) for layer in upper.layers] == [pairs(layer) for layer in batch.layers[1:]]
    assert upper.seed_index.tolist() == [0, 1, 2, 0]
    assert [flow.dst_in_src.tolist() for flow in upper.flows] == [
        flow.dst_in_src.tolist() for flow in batch.flows[1:]
    ]
    loaded = pickle.loads(pickle.dumps(batch))
    assert [flow.dst_in_src.tolist() for flow in loaded.flows] == [
        flow.dst_in_src.tolist() for flow in batch.flows
    ]


# ---- append


def test_append_puts_a_cut_batch_together(batch):
    assert_same_node_flow(batch[:2].append(batch[1:]), batch)


def test_append_matches_rows_by_node_and_context(graph, batch):
    """The lower part made afresh, its seeds in another order."""
    upper = batch[1:]
    joint = batch.layers[1]
    order = torch.randperm(joint.num_nodes, generator=torch.Generator().manual_seed(1))
    lower = full(graph, 1)(joint.parent_nid[order], inputs=joint.context[order])
    lower.back.data["own"], upper.front.data["theirs"] = (
        x.context.clone() for x in (lower.back, upper.front)
    )
    grown = lower.append(upper)
    grown.validate()
    assert pairs(grown.layers[1]) == [pairs(joint)[row] for row in order.tolist()]
    for frame in ("own", "theirs"):
        assert grown.layers[1].data[frame].equal(grown.layers[1].context)
    assert [sorted(edges(flow)) for flow in grown.flows] == [
        sorted(edges(flow)) for flow in batch.flows
    ]
    assert grown.flows[1].dst_in_src.tolist() == [order.tolist().index(row) for row in range(3)]


def test_append_refuses_other_contexts(graph, batch):
    joint = batch.layers[1]
    plain = FullSampler(graph, 1)([0, 1, 2, 3])
    with pytest.raises(ValueError, match="append needs the same nodes"):
        plain.append(batch[1:])
    one = full(graph, 1)([1, 3], inputs=[0, 1])
    alike = NodeFlow([Layer(2, torch.tensor([1, 3]))], [], parent=graph)
    for first, second in ((one[1:], alike), (alike, one[1:])):
        with pytest.raises(ValueError, match="only one of them has contexts"):
            first.append(second)
    shifted = full(graph, 1)(joint.parent_nid, inputs=joint.context + 1)
    with pytest.raises(ValueError, match="parent node 1 is only in the first"):
        shifted.append(batch[1:])
    swapped = full(graph, 1)(joint.parent_nid, inputs=1 - joint.context)
    with pytest.raises(ValueError, match="parent node 3 is only in the first"):
        swapped.append(batch[1:])


@pytest.mark.parametrize("name", FAMILIES)
def test_which_samplers_hold_a_node_twice(name):
    """The table in docs/nodeflow.md."""
    batch = sampled(name, FAMILIES[name](graph_of_all()))
    in_contexts = name.startswith(("temporal", "shadow")) or "disjoint" in name
    for layer in batch.layers:
        assert (layer.context is not None) == in_contexts
        keys = (
            layer.parent_nid
            if layer.context is None
            else torch.stack([layer.context, layer.parent_nid], 1)
        )
        assert len(torch.unique(keys, dim=0)) == layer.num_nodes
    twice = [len(torch.unique(layer.parent_nid)) < layer.num_nodes for layer in batch.layers]
    assert any(twice) == in_contexts


def of_one_seed(batch: NodeFlow, number: int) -> tuple[Any, ...]:
    """The rows and edges of one context: parent ids by layer, and (edge, source, destination,
    weight) by flow.
    """
    layers = []
    flows = []
    for layer in batch.layers:
        layers.append(layer.parent_nid[layer.context == number].tolist())
    for flow in batch.flows:
        src, dst = flow.edges()
        assert flow.src_layer.context[src].equal(flow.dst_layer.context[dst])
        held = flow.dst_layer.context[dst] == number
        ends = (
            flow.src_layer.parent_nid[src[held]].tolist(),
            flow.dst_layer.parent_nid[dst[held]].tolist(),
        )
        flows.append(
            list(
                zip(flow.parent_eid[held].tolist(), *ends, flow.weight[held].tolist(), strict=True)
            )
        )
    return layers, flows


@st.composite
def disjoint_cases(draw: st.DrawFn):
    graph = draw(graphs(min_nodes=1))
    graph.edata["p"] = torch.arange(graph.num_edges) % 3 + 0.5
    graph.edata["type"] = torch.arange(graph.num_edges) % 2
    seeds = draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    options = dict(
        draw(st.sampled_from([*MODES, {"replace": True}, {"prob": "p"}, {"edge_type": "type"}]))
    )
    options["weight"] = draw(st.sampled_from([None, "p"]))
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=3))
    which = {"epoch": draw(st.integers(0, 9)), "batch_number": draw(st.none() | st.integers(0, 9))}
    return viewed(NeighborSampler, graph, fanouts, disjoint=True, **options), seeds, which


@given(disjoint_cases())
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


def test_outputs_are_those_of_joint_neighbourhoods_where_all_is_drawn():
    graph = random_graph(3)
    x = torch.randn(graph.num_nodes, 4)
    model = GraphSAGE(4, 8, 2)
    model.eval()
    joint, apart = (NeighborSampler(graph, [-1, -1], disjoint=d)([4, 9, 17]) for d in (False, True))
    outputs = [model(batch, x[batch.front.parent_nid]) for batch in (joint, apart)]
    torch.testing.assert_close(*outputs)


def hubs() -> Graph:
    """20,000 seeds with an in-edge from each of the nodes 0 and 1, which have the same 5
    sources.
    """
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
    """Tables of 5 and 5 x 5 cells, 20,000 draws: if one in 20 copied the other, n r^2 = 50, and it
    is found.
    """
    drawn = drawn_by_node_0()
    later = drawn_by_node_0(epoch=1)
    assert chi_square(np.bincount(drawn, minlength=5)) < 1
    assert chi_square(np.bincount(5 * drawn[1:] + drawn[:-1], minlength=25)) < 1
    assert chi_square(np.bincount(5 * drawn + later, minlength=25)) < 1
    assert chi_square(np.bincount(5 * drawn + drawn_by_node_0(batch_number=4), minlength=25)) < 1


def test_the_same_seed_draws_the_same_in_two_batches_of_an_epoch_unless_they_are_numbered():
    sampler = NeighborSampler(random_graph(2, 40, 2000), [2, 2], disjoint=True)
    small = NodeFlowLoader(sampler, range(40), 8)
    large = NodeFlowLoader(sampler, range(40), 20)
    for _ in range(2):
        found = [
            [of_one_seed(b, k) for b in loader for k in range(len(b.seeds))]
            for loader in (small, large)
        ]
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
