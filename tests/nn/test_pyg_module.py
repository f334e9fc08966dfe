"""Every convolution against that of PyTorch Geometric with the same parameters."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from _support.edge_reference import EDGE_WIDTH, RELATIONS, hub_flow, make, mlp
from _support.nn_reference import assert_near, gradients, make_conv, values
from torch import Tensor

from nodeflow import Flow, Graph, NeighborSampler, create_full_node_flow, create_node_flow, flow_from_edges
from nodeflow.nn import EdgeConv, FlowModel

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


pyg = pytest.importorskip("torch_geometric.nn")


def symmetric_graph() -> Graph:
    """Without self-loops, which their GCN replaces; symmetric, since it divides by in-degrees on both sides."""
    generator = torch.Generator().manual_seed(0)
    src, dst = torch.randint(30, (2, 120), generator=generator)
    src, dst = src[src != dst], dst[src != dst]
    return Graph.from_edges(torch.cat([src, dst]), torch.cat([dst, src]), num_nodes=31)


def their_linear(theirs: Any, ours: torch.nn.Linear) -> None:
    theirs.weight = torch.nn.Parameter(ours.weight.detach().clone())
    if theirs.bias is not None:
        theirs.bias = torch.nn.Parameter(ours.bias.detach().clone())


def their_gcn(conv: Any, loops: bool, normalize: bool = True) -> Any:
    theirs = pyg.GCNConv(5, 3, add_self_loops=loops, normalize=normalize).double()
    their_linear(theirs.lin, conv.linear)
    theirs.bias = torch.nn.Parameter(conv.linear.bias.detach().clone())
    return theirs


def their_sage(conv: Any, **options: Any) -> Any:
    theirs = pyg.SAGEConv(5, 3, **options).double()
    their_linear(theirs.lin_l, conv.neigh)
    if theirs.root_weight:
        their_linear(theirs.lin_r, conv.own)
    if theirs.project:
        their_linear(theirs.lin, conv.pool)
    return theirs


def their_graph_conv(conv: Any) -> Any:
    theirs = pyg.GraphConv(5, 3).double()
    their_linear(theirs.lin_rel, conv.linear)
    their_linear(theirs.lin_root, conv.own)
    return theirs


def their_gin(conv: Any, aggr: str) -> Any:
    theirs = pyg.GINConv(conv.mlp, aggr=aggr).double()
    theirs.eps = conv.eps.detach()
    return theirs


LAYERS = {
    "gcn both": lambda conv: their_gcn(conv, True),
    "gcn both alone": lambda conv: their_gcn(conv, False),
    "propagation": lambda conv: their_gcn(conv, False, normalize=False),
    "propagation own": their_graph_conv,
    "sage": their_sage,
    "sage pool": lambda conv: their_sage(conv, aggr="max", project=True),
    "gin": lambda conv: their_gin(conv, "add"),
    "gin mean": lambda conv: their_gin(conv, "mean"),
    "gin max": lambda conv: their_gin(conv, "max"),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_on_a_whole_graph(kind: str) -> None:
    graph, conv = symmetric_graph(), make_conv(kind, 5, 3)
    theirs = LAYERS[kind](conv)
    edges, h = torch.stack(graph.edges()), values((31, 5)).requires_grad_()
    found, expected = conv(create_full_node_flow(graph, 1), 0, h), theirs(h, edges)
    assert_near(found, expected)
    for one, other in zip(gradients(found, h), gradients(expected, h), strict=True):
        assert_near(one, other)
    assert_near(FlowModel([conv]).inference(graph, h.detach(), chunk_size=7), expected.detach())


@pytest.mark.parametrize("kind", ["sage", "sage pool", "propagation own", "gin"])
def test_on_a_sampled_flow(kind: str) -> None:
    conv = make_conv(kind, 5, 3)
    theirs = LAYERS[kind](conv)
    flow = NeighborSampler(symmetric_graph(), [2, 3])([3, 1, 4, 15, 9]).flows[0]
    if kind == "propagation own":  # not with estimator weights there
        flow = type(flow)(flow.structure, flow.src_layer, flow.dst_layer, (0, 1))
    h = values((flow.num_src, 5))
    assert_near(conv(flow, h), theirs((h, h[: flow.num_dst]), torch.stack(flow.edges())))
