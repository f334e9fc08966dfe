"""Every convolution against that of PyTorch Geometric with the same parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from _support import edge_reference
from _support.edge_reference import EDGE_WIDTH, RELATIONS, hub_flow
from _support.nn_reference import assert_near, gradients, make_conv, values
from torch import Tensor

from nodeflow import (
    Flow,
    Graph,
    NeighborSampler,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.nn import FlowModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the other library and what it imports
    pyg = pytest.importorskip("torch_geometric.nn")


def copied(theirs: Any, **parameters: Tensor | None) -> Any:
    """Their layer in float64 with parameters of ours, by name, where "__" stands for a dot; None:
    there is none.
    """
    theirs = theirs.double()
    ours = {
        name.replace("__", "."): value for name, value in parameters.items() if value is not None
    }
    missing, unexpected = theirs.load_state_dict(
        {name: value.detach() for name, value in ours.items()}, strict=False
    )
    assert not unexpected
    assert set(missing) <= {"lin_l.bias", "lin_r.bias", "lin.bias", "eps"}
    for name, parameter in theirs.named_parameters():
        if name in missing and name != "eps":  # where ours has no bias
            torch.nn.init.zeros_(parameter)
    return theirs


def _weight(linear: Any) -> Tensor | None:
    return None if linear is None else linear.weight


def gcn(conv: Any, **options: Any) -> Any:
    return copied(
        pyg.GCNConv(5, 3, **options), lin__weight=conv.linear.weight, bias=conv.linear.bias
    )


def sage(conv: Any, **options: Any) -> Any:
    pool = {"lin__weight": conv.pool.weight, "lin__bias": conv.pool.bias} if options else {}
    near = {"lin_l__weight": conv.neigh.weight, "lin_l__bias": conv.neigh.bias}
    return copied(pyg.SAGEConv(5, 3, **options), **near, lin_r__weight=conv.own.weight, **pool)


def graph_conv(conv: Any) -> Any:
    near = {"lin_rel__weight": conv.linear.weight, "lin_rel__bias": conv.linear.bias}
    return copied(pyg.GraphConv(5, 3), **near, lin_root__weight=conv.own.weight)


def gin(conv: Any, aggr: str) -> Any:
    theirs = pyg.GINConv(conv.mlp, aggr=aggr).double()
    theirs.eps = conv.eps.detach()
    return theirs


LAYERS: dict[str, Callable[[Any], Any]] = {
    "gcn both": gcn,
    "gcn both alone": lambda conv: gcn(conv, add_self_loops=False),
    "propagation": lambda conv: gcn(conv, add_self_loops=False, normalize=False),
    "propagation own": graph_conv,
    "sage": sage,
    "sage pool": lambda conv: sage(conv, aggr="max", project=True),
    "gin": lambda conv: gin(conv, "add"),
    "gin mean": lambda conv: gin(conv, "mean"),
    "gin max": lambda conv: gin(conv, "max"),
}


def symmetric_graph() -> Graph:
    """Without self-loops, which their GCN replaces; symmetric, since it divides by in-degrees on
    both sides.
    """
    generator = torch.Generator().manual_seed(0)
    src, dst = torch.randint(30, (2, 120), generator=generator)
    src, dst = src[src != dst], dst[src != dst]
    return Graph.from_edges(torch.cat([src, dst]), torch.cat([dst, src]), num_nodes=31)


@pytest.mark.parametrize("kind", LAYERS)
def test_on_a_whole_graph(kind):
    graph = symmetric_graph()
    conv = make_conv(kind, 5, 3)
    theirs = LAYERS[kind](conv)
    edges = torch.stack(graph.edges())
    h = values((31, 5)).requires_grad_()
    found = conv(create_full_node_flow(graph, 1), 0, h)
    expected = theirs(h, edges)
    assert_near(found, expected)
    for one, other in zip(gradients(found, h), gradients(expected, h), strict=True):
        assert_near(one, other)
    assert_near(FlowModel([conv]).inference(graph, h.detach(), chunk_size=7), expected.detach())


@pytest.mark.parametrize("kind", ["sage", "sage pool", "propagation own", "gin"])
def test_on_a_sampled_flow(kind):
    conv = make_conv(kind, 5, 3)
    theirs = LAYERS[kind](conv)
    flow = NeighborSampler(symmetric_graph(), [2, 3])([3, 1, 4, 15, 9]).flows[0]
    if kind == "propagation own":  # not with estimator weights there
        flow = type(flow)(flow.structure, flow.src_layer, flow.dst_layer, (0, 1))
    h = values((flow.num_src, 5))
    assert_near(conv(flow, h), theirs((h, h[: flow.num_dst]), torch.stack(flow.edges())))


# ---- attention, types and messages of edges


def attention(conv: Any, kind: Any, **parameters: Tensor | None) -> Any:
    """Their attention convolution with the options of ours."""
    theirs = kind(
        3, 2, conv.heads, concat=conv.concat, negative_slope=conv.negative_slope, add_self_loops=conv.self_loops,
        residual=conv.own is not None, bias=conv.bias is not None, edge_dim=conv.edge_features, fill_value=0.0,
    )  # fmt: skip
    return copied(theirs, bias=conv.bias, res__weight=_weight(conv.own), **parameters)


def gat(conv: Any) -> Any:
    parameters = {
        "lin__weight": conv.linear.weight,
        "att_src": conv.src[None],
        "att_dst": conv.dst[None],
    }
    if conv.edge is not None:  # theirs is a product: one number per head in front of ours
        parameters["att_edge"] = torch.tensor([1.0, 0.0]).expand(1, conv.heads, 2)
        parameters["lin_edge__weight"] = conv.edge.weight.repeat_interleave(2, 0)
    return attention(conv, pyg.GATConv, **parameters)


def gatv2(conv: Any) -> Any:
    maps = {"lin_l__weight": conv.linear.weight, "lin_r__weight": conv.dst.weight}
    return attention(
        conv, pyg.GATv2Conv, **maps, att=conv.attention[None], lin_edge__weight=_weight(conv.edge)
    )


def rgcn(conv: Any) -> Any:
    bases = None if conv.coefficients is None else len(conv.weight)
    theirs = pyg.RGCNConv(
        3, 2, RELATIONS, bases, root_weight=conv.own is not None, bias=conv.bias is not None
    )
    root = None if conv.own is None else conv.own.weight.T
    return copied(
        theirs,
        weight=conv.weight.transpose(1, 2),
        comp=conv.coefficients,
        root=root,
        bias=conv.bias,
    )


def gine(conv: Any) -> Any:
    theirs = pyg.GINEConv(conv.mlp, train_eps=True, edge_dim=EDGE_WIDTH)
    mlp = {f"nn__{name}": value for name, value in conv.mlp.state_dict().items()}
    return copied(theirs, eps=conv.eps.view(theirs.eps.shape), lin__weight=conv.edge.weight, **mlp)


OTHERS: dict[str, tuple[Callable[[Any], Any], str | None]] = {
    **dict.fromkeys(("gat", "gat mean"), (gat, None)),
    "gat heads": (gat, "feat"),
    **dict.fromkeys(("gat2", "gat2 mean"), (gatv2, None)),
    "gat2 heads": (gatv2, "feat"),
    **dict.fromkeys(("rgcn", "rgcn bases", "rgcn bare"), (rgcn, "type")),
    "edge": (lambda conv: pyg.EdgeConv(conv.mlp), None),
    "gine": (gine, "feat"),
}
"""How their layer is made of ours, and the column of the edges that it reads."""


def flow_without_loops() -> Flow:
    """Self-loops would be replaced over there, so there are none."""
    flow = hub_flow(60)
    src, dst = flow.edges()
    assert (src == dst).any()
    kept = src != dst
    sizes = {"num_src": flow.num_src, "num_dst": flow.num_dst}
    data = {name: column[kept] for name, column in flow.data.items()}
    flows = [flow_from_edges(src[kept], dst[kept], **sizes, data=data)]
    return create_node_flow(flows, [flow.src_layer.parent_nid, flow.dst_layer.parent_nid]).flows[0]


@pytest.mark.parametrize("name", OTHERS)
def test_with_rows_of_edges(name):
    make_theirs, column = OTHERS[name]
    flow = flow_without_loops()
    conv = edge_reference.make(name, 3, 2)
    h = values((flow.num_src, 3))
    more = [] if column is None else [flow.data[column]]
    # over all sources, the first are the destinations
    out = make_theirs(conv)(h, torch.stack(flow.edges()), *more)
    assert_near(conv(flow, h), out[: flow.num_dst])
