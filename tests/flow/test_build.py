"""NodeFlows made by hand and of whole graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from nodeflow import (
    FullSampler,
    Graph,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_csr,
    flow_from_edges,
    fn,
)
from nodeflow.testing import assert_same_node_flow, assert_valid, graphs, node_flows


def storage_bytes(batch: NodeFlow) -> int:
    """Bytes of all distinct memory that the structure and the ids of ``batch`` use."""
    tensors = [batch.seed_index, *(layer.parent_nid for layer in batch.layers if layer.has_parent)]
    for pair in batch.flows.pairs():
        flow = batch.flows[pair]
        tensors += [flow.indptr, flow.indices, *([flow.parent_eid] if flow.has_parent else [])]
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors
    }
    return sum(storages.values())


# ---- flows


@st.composite
def edges(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int]]]:
    num_src = draw(st.integers(1, 5))
    num_dst = draw(st.integers(1, 5))
    pair = st.tuples(st.integers(0, num_src - 1), st.integers(0, num_dst - 1))
    return num_src, num_dst, draw(st.lists(pair, max_size=12))


@given(edges())
def test_a_flow_holds_the_edges_given_grouped_by_destination(
    drawn,
):
    num_src, num_dst, pairs = drawn
    size = len(pairs)
    src = [u for u, _ in pairs]
    dst = [v for _, v in pairs]
    options: dict[str, Any] = {"parent_eid": range(size), "weight": torch.arange(size) + 0.5}
    data = {"at": torch.arange(size)}
    flow = flow_from_edges(src, dst, num_src=num_src, num_dst=num_dst, data=data, **options)
    # stable: the order given inside a destination
    order = sorted(range(size), key=lambda e: dst[e])
    assert [end.tolist() for end in flow.edges()] == [
        [src[e] for e in order],
        [dst[e] for e in order],
    ]
    assert flow.parent_eid.tolist() == flow.data["at"].tolist() == order
    assert flow.weight.tolist() == [e + 0.5 for e in order]
    assert (flow.num_src, flow.num_dst, len(flow)) == (num_src, num_dst, size)
    parts = {"parent_eid": flow.parent_eid, "weight": flow.weight, "data": flow.data}
    same = flow_from_csr(flow.indptr, flow.indices, num_src=num_src, **parts)
    assert_same_node_flow(create_node_flow([flow]), create_node_flow([same]))


@given(edges())
def test_matrices_of_a_flow(drawn):
    num_src, num_dst, pairs = drawn
    flow = flow_from_edges(
        [u for u, _ in pairs], [v for _, v in pairs], num_src=num_src, num_dst=num_dst
    )
    weight = torch.arange(len(pairs)) + 1.0
    dense = np.zeros((num_dst, num_src))
    weighted = np.zeros((num_dst, num_src))
    into = np.zeros((num_dst, len(pairs)))
    out = np.zeros((num_src, len(pairs)))
    for e, (u, v) in enumerate(zip(*(end.tolist() for end in flow.edges()), strict=True)):
        dense[v, u] += 1
        weighted[v, u] += e + 1
        into[v, e] = out[u, e] = 1
    assert np.array_equal(flow.to_scipy().toarray(), dense)
    assert np.array_equal(flow.to_scipy(weight).toarray(), weighted)
    x = torch.randint(-3, 4, (num_src, 2), generator=torch.Generator().manual_seed(0)).float()
    assert torch.equal(flow.to_torch_sparse() @ x, torch.from_numpy(dense).float() @ x)
    assert torch.equal(flow.to_torch_sparse(weight) @ x, torch.from_numpy(weighted).float() @ x)
    assert np.array_equal(flow.incidence("in").to_dense().numpy(), into)
    assert np.array_equal(flow.incidence("out").to_dense().numpy(), out)
    assert np.array_equal(into @ out.T, dense)


def test_matrices_are_checked_and_share_nothing():
    flow = flow_from_csr([0, 3], [2, 0, 1], num_src=3)
    matrix = flow.to_scipy()
    matrix.sort_indices()
    matrix.indptr[:] = 0
    assert flow.indices.tolist() == [2, 0, 1]
    assert flow.indptr.tolist() == [0, 3]
    weight = torch.ones(3, requires_grad=True)  # a learned one is taken as it is now
    flow.to_scipy(weight).data[:] = 5
    assert weight.tolist() == [1, 1, 1]
    for bad in (torch.ones(2), torch.ones(4), torch.ones(3, 1)):
        for make in (flow.to_scipy, flow.to_torch_sparse):
            with pytest.raises(
                ValueError, match=r"weight must have shape \(3,\), one per edge, got"
            ):
                make(bad)
    with pytest.raises(ValueError, match="end must be 'in' or 'out', got 'both'"):
        flow.incidence("both")


def test_a_flow_owns_its_structure():
    indptr = torch.tensor([0, 2])
    indices = torch.tensor([1, 0])
    weight = torch.ones(2)
    eid = torch.tensor([4, 5])
    flow = flow_from_csr(indptr, indices, num_src=2, weight=weight, parent_eid=eid)
    ids = [torch.tensor([3, 4]), torch.tensor([3])]
    batch = create_node_flow([flow], ids)
    for tensor in (indptr, indices, weight, eid, *ids):
        tensor.fill_(0)
    batch.validate()
    assert (flow.indptr.tolist(), flow.indices.tolist(), flow.parent_eid.tolist()) == (
        [0, 2],
        [1, 0],
        [4, 5],
    )
    assert flow.weight.tolist() == [1, 1]
    assert batch.front.parent_nid.tolist() == [3, 4]


# ---- NodeFlows by hand


def test_from_a_list_with_and_without_a_parent(graph):
    low = flow_from_edges([0, 2], [1, 0], num_src=3, num_dst=2)
    high = flow_from_edges([1], [0], num_src=2, num_dst=1)
    bare = create_node_flow([low, high])
    assert bare.parent is None
    assert [layer.has_parent for layer in bare.layers] == [False] * 3
    named = create_node_flow([low, high], [[4, 0, 1], [1, 0], [5]], parent=graph)
    assert named.parent is graph
    assert [layer.parent_nid.tolist() for layer in named.layers] == [[4, 0, 1], [1, 0], [5]]
    assert (named.seeds.tolist(), named.seed_index.tolist()) == ([5], [0])
    named.copy_from_parent(["feat"], None)
    assert torch.equal(named.ldata[0]["feat"], graph.ndata["feat"][[4, 0, 1]])
    for part in (lambda: bare.seeds, lambda: bare.layers[0].parent_nid):
        with pytest.raises(ValueError, match="this layer has no parent nodes"):
            part()
    with pytest.raises(ValueError, match="this flow has no parent edges"):
        bare.flows[0].parent_eid  # noqa: B018


def test_one_layer_is_a_node_flow(graph):
    for batch in (
        create_node_flow([], [[2, 0]], parent=graph),
        create_node_flow({}, [[2, 0]], parent=graph),
    ):
        assert (batch.num_layers, batch.num_flows, batch.layer_sizes, batch.flow_sizes) == (
            1,
            0,
            (2,),
            (),
        )
        assert repr(batch) == "NodeFlow(2 nodes, 0 edges)"
        assert batch.front is batch.back


def test_pooled_nodes_and_flows_that_skip_layers_compute(graph):
    pool = flow_from_edges([0, 1, 2, 3], [0, 0, 1, 1], num_src=4, num_dst=2)
    read = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    skip = flow_from_edges([3, 3], [0, 0], num_src=4, num_dst=1, weight=torch.tensor([2.0, 3.0]))
    batch = create_node_flow(
        {(0, 1): pool, (1, 2): read, (0, 2): skip}, [[0, 1, 2, 3], None, [3]], parent=graph
    )
    assert_valid(batch)
    batch.ldata[0]["h"] = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    batch.flow_compute(0, fn.copy_u("h", "m"), fn.sum("m", "h"))
    assert batch.ldata[1]["h"].tolist() == [[3], [7]]
    batch.flow_compute((1, -1), fn.copy_u("h", "m"), fn.mean("m", "h"))
    assert batch.ldata[2]["h"].tolist() == [[5]]
    assert batch.flows[0, 2].aggregate(
        batch.ldata[0]["h"], weight=batch.flows[0, 2].weight
    ).tolist() == [[20]]
    assert batch.flows[0, 2].take_dst(batch.ldata[0]["h"]).tolist() == [[4]]


def test_flows_bring_their_columns_and_keep_their_own_frames():
    flow = flow_from_edges(
        [0, 1], [0, 1], num_src=2, num_dst=2, data={"w": torch.tensor([3.0, 4.0])}
    )
    batch = create_node_flow([flow, flow])
    assert batch.fdata[0]["w"] is batch.fdata[1]["w"]
    batch.fdata[0]["w"] = torch.zeros(2)
    batch.fdata[0]["x"] = torch.zeros(2)
    assert batch.fdata[1]["w"].tolist() == flow.data["w"].tolist() == [3, 4]
    assert batch.flows[1].layers == (1, 2)


@given(node_flows())
def test_parts_of_a_node_flow_make_it_again(batch):
    flows = {pair: batch.flows[pair] for pair in batch.flows.pairs()}
    layers = [layer.parent_nid if layer.has_parent else None for layer in batch.layers]
    if batch.num_layers == 1 and layers[0] is None:
        return  # nothing would tell its size
    again = create_node_flow(flows, layers, parent=batch.parent)
    for i, layer in enumerate(batch.layers):
        again.ldata[i].update(layer.data)
    whole = list(range(batch.back.num_nodes))
    if batch.seed_index.tolist() == whole:
        assert_same_node_flow(batch, again)


SMALL = flow_from_edges([0], [0], num_src=2, num_dst=1)


def test_the_parent_is_a_graph_that_has_the_edges(graph):
    flow = flow_from_edges([0], [0], num_src=1, num_dst=1, parent_eid=[3])
    assert create_node_flow([flow], [[0], [1]], parent=graph).flows[0].parent_eid.tolist() == [3]


# ---- whole graphs


@given(graphs(), st.integers(0, 4), st.booleans())
def test_the_whole_graph(graph, num_layers, add_self_loop):
    batch = create_full_node_flow(graph, num_layers, add_self_loop=add_self_loop)
    assert_valid(batch)
    assert (batch.num_flows, batch.num_layers) == (num_layers, num_layers + 1)
    for layer in batch.layers:
        assert layer.parent_nid.tolist() == list(range(graph.num_nodes))
    expected = []
    for v in range(graph.num_nodes):
        src, _, eid = graph.in_edges([v])
        expected += [(u, v, e) for u, e in zip(src.tolist(), eid.tolist(), strict=True)]
        expected += [(v, v, -1)] if add_self_loop else []
    for flow in batch.flows:
        src, dst = flow.edges()
        assert (
            list(zip(src.tolist(), dst.tolist(), flow.parent_eid.tolist(), strict=True)) == expected
        )
        assert flow.weight.tolist() == [1] * len(expected)
        h = torch.arange(graph.num_nodes)
        assert torch.equal(flow.take_dst(h), h)


def test_the_structure_of_the_whole_graph_is_stored_once_whatever_the_number_of_layers():
    generator = torch.Generator().manual_seed(1)
    src, dst = torch.randint(0, 500, (2, 4_000), generator=generator)
    graph = Graph.from_edges(src, dst, num_nodes=500)
    # node ids, indptr, indices and edge ids, the seed index
    ints = 500 + (500 + 1) + 2 * 4_000 + 500
    batches = {n: create_full_node_flow(graph, n) for n in (1, 2, 8)}
    for batch in batches.values():
        # asking for lookups and transposes makes no more of it either
        for i in range(batch.num_layers):
            batch.map_from_parent_nid(i, [3])
            batch.front._lookup.get()
        assert len({id(layer._lookup) for layer in batch.layers}) == 1
        assert len({id(flow.structure) for flow in batch.flows}) == 1
    assert {n: storage_bytes(batch) for n, batch in batches.items()} == dict.fromkeys(
        batches, 8 * ints
    )


def test_frames_of_a_whole_graph_are_separate(graph):
    batch = create_full_node_flow(graph, 2)
    batch.ldata[0]["h"] = torch.ones(6)
    batch.fdata[0]["w"] = torch.ones(7)
    assert "h" not in batch.ldata[1]
    assert "w" not in batch.fdata[1]


@given(graphs(min_nodes=1), st.data())
def test_weights_of_the_whole_graph_are_those_of_full_sampling(graph, data):
    size = graph.num_edges
    graph.edata["w"] = torch.tensor(
        data.draw(st.lists(st.floats(-9, 9, width=16), min_size=size, max_size=size))
    )
    batch = create_full_node_flow(graph, 2, weight="w")
    assert_same_node_flow(batch, FullSampler(graph.view(weight="w"), 2)(range(graph.num_nodes)))
    for flow in batch.flows:
        assert torch.equal(flow.weight, graph.edata["w"][flow.parent_eid])


def test_flows_of_the_whole_graph_need_weights_as_those_of_a_sampler_do():
    """Also where the numbers of a column happen to be equal, which is not looked up."""
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2], edata={"w": torch.full((3,), 2.0)})
    for weight in ("w", None):
        whole = create_full_node_flow(graph, 2, weight=weight)
        drawn = FullSampler(graph.view(weight=weight), 2)(range(3))
        assert [flow.needs_weight for flow in whole.flows] == [
            flow.needs_weight for flow in drawn.flows
        ]
        assert whole.flows[0].needs_weight == (weight == "w")


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1.0, 2.0])), max_size=6))
def test_a_flow_by_hand_needs_its_weights_where_those_of_a_destination_differ(
    edges,
):
    ends = [v for v, _ in edges]
    weight = torch.tensor([w for _, w in edges])
    flow = flow_from_edges([0] * len(ends), ends, num_src=1, num_dst=3, weight=weight)
    assert flow.needs_weight == any(len({w for u, w in edges if u == v}) > 1 for v in range(3))
