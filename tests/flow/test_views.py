"""Layers and flows by number, pair, slice and call."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given

from nodeflow import Flow, Layer, NodeFlow, create_node_flow, flow_from_edges
from nodeflow.testing import node_flows


@pytest.fixture
def skipping() -> NodeFlow:
    """Layers of 4, 3, 2 and 1 nodes, the third pooled, with flows 0->2, 0->3 and 1->3 that skip
    layers.
    """
    sizes = [4, 3, 2, 1]
    pairs = [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3)]
    flows = {
        (i, j): flow_from_edges(
            [0] * j, [sizes[j] - 1] * j, num_src=sizes[i], num_dst=sizes[j], parent_eid=range(j)
        )
        for i, j in pairs
    }
    return create_node_flow(flows, [[8, 6, 4, 2], [6, 4, 2], None, [2]])


@given(node_flows())
def test_views_are_sequences(batch):
    layers = batch.layers
    flows = batch.flows
    assert (len(layers), len(flows), len(batch)) == (
        batch.num_layers,
        batch.num_flows,
        batch.num_layers,
    )
    assert batch.num_layers == batch.num_flows + 1
    assert all(isinstance(layer, Layer) for layer in layers)
    assert all(isinstance(flow, Flow) for flow in flows)
    for view in (layers, flows):
        for i in range(len(view)):
            assert view[i] is view[i - len(view)]
        assert view[::-1] == tuple(view)[::-1]
        assert view[-2:-1] == tuple(view)[-2:-1]
        for i in (len(view), -len(view) - 1):
            with pytest.raises(IndexError, match="out of range"):
                view[i]
    for i, flow in enumerate(flows):
        assert flow is flows[i, i + 1]
        assert flow is flows[i - batch.num_layers, i + 1 - batch.num_layers]
        assert flow.layers == (i, i + 1)
        assert (flow.src_layer, flow.dst_layer) == (layers[i], layers[i + 1])
        assert (flow.num_src, flow.num_dst) == batch.layer_sizes[i : i + 2]
    assert (batch.front, batch.back) == (layers[0], layers[-1])
    assert batch.layer_sizes == tuple(map(len, layers))
    assert batch.flow_sizes == tuple(map(len, flows))


@given(node_flows())
def test_frames_are_reached_both_ways(batch):
    assert len(batch.ldata) == batch.num_layers
    assert len(batch.fdata) == batch.num_flows
    for i, (frame, layer) in enumerate(zip(batch.ldata, batch.layers, strict=True)):
        assert frame is layer.data is batch.ldata[i] is batch.ldata[i - batch.num_layers]
    for frame, flow in zip(batch.fdata, batch.flows, strict=True):
        assert frame is flow.data
    for pair in batch.flows.pairs():
        assert batch.fdata[pair] is batch.flows[pair].data
    assert batch.ldata[1:] == tuple(layer.data for layer in batch.layers[1:])


@given(node_flows())
def test_node_flow_ids_are_consecutive(batch):
    nodes = torch.cat([batch.layers(i) for i in range(batch.num_layers)])
    assert nodes.tolist() == list(range(sum(batch.layer_sizes)))
    assert torch.equal(batch.layers(-1), batch.layers(batch.num_layers - 1))
    pairs = batch.flows.pairs()
    edges = [i for pair in pairs for i in batch.flows(*pair).tolist()]
    assert edges == list(range(sum(batch.flows[pair].num_edges for pair in pairs)))
    for i in range(batch.num_flows):
        assert torch.equal(batch.flows(i), batch.flows(i, i + 1))
        assert torch.equal(batch.flows(i), batch.flows(i - batch.num_flows))
    assert nodes.dtype == torch.int64


def test_flows_that_skip_layers_follow_the_others(skipping):
    assert skipping.flows.pairs() == [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3)]
    assert len(skipping.flows) == 3
    assert skipping.flow_sizes == (1, 2, 3)
    assert skipping.flows(0, 2).tolist() == [6, 7]
    assert skipping.flows(-3, -1).tolist() == [11, 12, 13]
    assert skipping.flows[-4, -2] is skipping.flows[0, 2]
    assert repr(skipping.flows[0, 2]) == "Flow(0->2: 4 -> 2 nodes, 2 edges)"


def test_views_can_not_be_assigned_to(skipping):
    for view in (skipping.layers, skipping.flows, skipping.ldata, skipping.fdata):
        with pytest.raises(TypeError, match="item assignment"):
            view[0] = 1
        with pytest.raises(TypeError, match="item deletion"):
            del view[0]
    layers = skipping.layers
    with pytest.raises(AttributeError):
        layers.new = 1


def test_reprs_are_one_line(skipping):
    skipping.ldata[0]["h"] = torch.ones(4)
    views = (skipping.layers, skipping.flows, skipping.ldata, skipping.fdata)
    for thing in (skipping, *views, skipping.flows[0], skipping.back):
        assert "\n" not in repr(thing)
    assert repr(skipping) == (
        "NodeFlow(4 -> 3 -> 2 -> 1 nodes, 1 + 2 + 3 edges, 0->2: 2 edges, 0->3: 3 edges, 1->3: 3 "
        "edges)"
    )
    assert repr(skipping.layers[2]) == "Layer(2 nodes without parent ids)"
    assert repr(skipping[:2].layers) == "(Layer(4 nodes: h), Layer(3 nodes))"
    assert [repr(skipping[:k]) for k in (1, 2)] == [
        "NodeFlow(4 nodes, 0 edges)",
        "NodeFlow(4 -> 3 nodes, 1 edges)",
    ]


@given(node_flows())
def test_degrees_per_layer(batch):
    for i in range(batch.num_layers):
        into = torch.zeros(batch.layer_sizes[i], dtype=torch.int64)
        out = into.clone()
        if i:
            for v in batch.flows[i - 1].edges()[1].tolist():
                into[v] += 1
        if i < batch.num_flows:
            for u in batch.flows[i].edges()[0].tolist():
                out[u] += 1
        assert torch.equal(batch.in_degrees(i), into)
        assert torch.equal(batch.out_degrees(i), out)
        assert torch.equal(batch.in_degrees(i - batch.num_layers), into)
    for pair in batch.flows.pairs():
        flow = batch.flows[pair]
        src, dst = flow.edges()
        assert torch.equal(flow.in_degrees, torch.bincount(dst, minlength=flow.num_dst))
        assert torch.equal(flow.out_degrees, torch.bincount(src, minlength=flow.num_src))
        assert all(a <= b for a, b in pairwise(dst.tolist()))
