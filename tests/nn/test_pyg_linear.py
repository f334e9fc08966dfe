"""The same convolutions of PyTorch Geometric, with the same weights, where it is installed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.nn_reference import assert_near, gradients, make_conv, values

from nodeflow import Graph, NeighborSampler, create_full_node_flow
from nodeflow.nn import FlowModel

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
