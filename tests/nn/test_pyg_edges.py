"""The same layers in another library give the same rows with the same weights."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from _support.edge_reference import EDGE_WIDTH, RELATIONS, hub_flow, make, mlp
from _support.nn_reference import assert_near, values
from torch import Tensor

from nodeflow import Flow, create_node_flow, flow_from_edges
from nodeflow.nn import EdgeConv

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the other library and what it imports
    other = pytest.importorskip("torch_geometric.nn")


@pytest.fixture
def flow() -> Flow:
    """Self-loops would be replaced over there, so there are none."""
    flow = hub_flow(60)
    src, dst = flow.edges()
    assert (src == dst).any()
    keep = (src != dst).nonzero().squeeze(1)
    return _kept(flow, keep)


def _kept(flow: Flow, edges: Tensor) -> Flow:
    src, dst = (end[edges] for end in flow.edges())
    data = {name: column[edges] for name, column in flow.data.items()}
    kept = flow_from_edges(src, dst, num_src=flow.num_src, num_dst=flow.num_dst, data=data)
    return create_node_flow([kept], [flow.src_layer.parent_nid, flow.dst_layer.parent_nid]).flows[0]


def run(layer: Any, flow: Flow, h: Tensor, *more: Tensor) -> Tensor:
    """Over all sources, of which the destinations are the first."""
    out: Tensor = layer(h, torch.stack(flow.edges()), *more)
    return out[: flow.num_dst]


def _like(conv: Any, kind: Any) -> Any:
    """Their attention convolution with the options of ours."""
    return kind(
        3, 2, conv.heads, concat=conv.concat, negative_slope=conv.negative_slope, add_self_loops=conv.self_loops,
        residual=conv.own is not None, bias=conv.bias is not None, edge_dim=conv.edge_features, fill_value=0.0,
    ).double()  # fmt: skip


@pytest.mark.parametrize("name", ["gat", "gat heads", "gat mean"])
def test_gat(name: str, flow: Flow) -> None:
    conv, h = make(name, 3, 2), values((flow.num_src, 3))
    theirs = _like(conv, other.GATConv)
    with torch.no_grad():
        theirs.lin.weight.copy_(conv.linear.weight)
        theirs.att_src.copy_(conv.src[None])
        theirs.att_dst.copy_(conv.dst[None])
        _copy_rest(conv, theirs)
        if conv.edge is not None:  # theirs is a product: one number per head in front of ours
            theirs.att_edge.fill_(0)
            theirs.att_edge[0, :, 0] = 1
            theirs.lin_edge.weight.copy_(conv.edge.weight.repeat_interleave(2, 0))
    more = [] if conv.edge is None else [flow.data["feat"]]
    assert_near(conv(flow, h), run(theirs, flow, h, *more))


@pytest.mark.parametrize("name", ["gat2", "gat2 heads", "gat2 mean"])
def test_gatv2(name: str, flow: Flow) -> None:
    conv, h = make(name, 3, 2), values((flow.num_src, 3))
    theirs = _like(conv, other.GATv2Conv)
    with torch.no_grad():
        theirs.lin_l.weight.copy_(conv.linear.weight)
        theirs.lin_r.weight.copy_(conv.dst.weight)
        theirs.att.copy_(conv.attention[None])
        _copy_rest(conv, theirs)
        if conv.edge is not None:
            theirs.lin_edge.weight.copy_(conv.edge.weight)
        for linear in (theirs.lin_l, theirs.lin_r):
            if linear.bias is not None:
                linear.bias.zero_()
    more = [] if conv.edge is None else [flow.data["feat"]]
    assert_near(conv(flow, h), run(theirs, flow, h, *more))


def _copy_rest(conv: Any, theirs: Any) -> None:
    if conv.bias is not None:
        theirs.bias.copy_(conv.bias)
    if conv.own is not None:
        theirs.res.weight.copy_(conv.own.weight)


@pytest.mark.parametrize("name", ["rgcn", "rgcn bases", "rgcn bare"])
def test_rgcn(name: str, flow: Flow) -> None:
    conv, h = make(name, 3, 2), values((flow.num_src, 3))
    bases = None if conv.coefficients is None else len(conv.weight)
    theirs = other.RGCNConv(3, 2, RELATIONS, bases, root_weight=conv.own is not None, bias=conv.bias is not None)
    theirs = theirs.double()
    with torch.no_grad():
        theirs.weight.copy_(conv.weight.transpose(1, 2))
        if bases is not None:
            theirs.comp.copy_(conv.coefficients)
        if conv.own is not None:
            theirs.root.copy_(conv.own.weight.T)
            theirs.bias.copy_(conv.bias)
    assert_near(conv(flow, h), run(theirs, flow, h, flow.data["type"]))


def test_edge_conv(flow: Flow) -> None:
    theirs, h = other.EdgeConv(mlp(6, 2).double()), values((flow.num_src, 3))
    assert_near(EdgeConv(theirs.nn)(flow, h), run(theirs, flow, h))


def test_gine(flow: Flow) -> None:
    conv, h = make("gine", 3, 2), values((flow.num_src, 3))
    theirs = other.GINEConv(conv.mlp, train_eps=True, edge_dim=EDGE_WIDTH).double()
    with torch.no_grad():
        theirs.eps.copy_(conv.eps)
        theirs.lin.weight.copy_(conv.edge.weight)
        theirs.lin.bias.zero_()
    assert_near(conv(flow, h), run(theirs, flow, h, flow.data["feat"]))
