"""What attention, typed and edge convolutions are compared with: their equations, edge by edge, in
float64.

``EVERY`` has these and the convolutions of ``nn_reference``; ``make`` and ``reference`` take all of
them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from _support import nn_reference
from _support.nn_reference import KINDS, dense, values
from nodeflow import Flow, create_node_flow, flow_from_edges
from nodeflow.nn import EdgeConv, FlowConv, GATConv, GATv2Conv, GINEConv, RGCNConv

RELATIONS = 3
EDGE_WIDTH = 2


def with_columns(flow: Flow, seed: int = 0) -> Flow:
    """The flow with types and features of its edges; type 1 occurs in some flows only."""
    generator = torch.Generator().manual_seed(seed)
    flow.data["type"] = torch.randint(0, 2, (flow.num_edges,), generator=generator) * 2
    flow.data["type"][1::4] = 1
    flow.data["feat"] = values((flow.num_edges, EDGE_WIDTH), seed + 1)
    return flow


def small_flow() -> Flow:
    """The flow of that name of ``nn_reference``, with columns."""
    return with_columns(nn_reference.small_flow())


def hub_flow(edges: int = 400) -> Flow:
    """Destination 0 with nearly all edges, the others with one each or none."""
    src = [i * 7 % 20 for i in range(edges)]
    dst = [0 if i > 8 else i for i in range(edges)]
    flow = flow_from_edges(src, dst, num_src=20, num_dst=12)
    return with_columns(create_node_flow([flow], [list(range(20)), list(range(12))]).flows[0])


def mlp(in_features: int, out_features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(in_features, 4), nn.Tanh(), nn.Linear(4, out_features))


CONVS: dict[str, Callable[[int, int], FlowConv]] = {
    "gat": lambda i, o: GATConv(i, o),
    "gat heads": lambda i, o: GATConv(
        i, o, 3, residual=True, edge_features=EDGE_WIDTH, negative_slope=0.1
    ),
    "gat mean": lambda i, o: GATConv(i, o, 2, concat=False, self_loops=False, bias=False),
    "gat2": lambda i, o: GATv2Conv(i, o, self_loops=False),
    "gat2 heads": lambda i, o: GATv2Conv(i, o, 2, residual=True, edge_features=EDGE_WIDTH),
    "gat2 mean": lambda i, o: GATv2Conv(i, o, 3, concat=False, bias=False),
    "rgcn": lambda i, o: RGCNConv(i, o, RELATIONS),
    "rgcn bases": lambda i, o: RGCNConv(i, o, RELATIONS, num_bases=2),
    "rgcn bare": lambda i, o: RGCNConv(i, o, RELATIONS, own=False, bias=False),
    "rgcn bare bases": lambda i, o: RGCNConv(i, o, RELATIONS, num_bases=4, own=False, bias=False),
    "edge": lambda i, o: EdgeConv(mlp(2 * i, o)),
    "edge features": lambda i, o: EdgeConv(mlp(2 * i + EDGE_WIDTH, o), edge_column="feat"),
    "gine": lambda i, o: GINEConv(mlp(i, o), i, edge_features=EDGE_WIDTH, eps=0.3, train_eps=True),
}
EVERY = [*KINDS, *CONVS]
SPARSE = [name for name in EVERY if not name.startswith(("edge", "gin"))]
"""Those that take sparse rows."""


def make(name: str, in_features: int, out_features: int) -> FlowConv:
    """The convolution in float64, every parameter random (those that start at 0 too)."""
    if name in KINDS:
        return nn_reference.make_conv(name, in_features, out_features)
    conv = CONVS[name](in_features, out_features).double()
    for i, parameter in enumerate(conv.parameters()):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    return conv


def reference(conv: FlowConv, flow: Flow, h: Tensor) -> Tensor:
    """The rows of the destinations, one at a time."""
    own = dense(flow)[1].argmax(1).tolist() if flow.num_dst else []
    src, dst = (end.tolist() for end in flow.edges())
    rows = []
    for v, self_ in enumerate(own):
        edges = [(src[e], e) for e in range(flow.num_edges) if dst[e] == v]
        rows.append(ROWS[type(conv)](conv, flow, h, self_, edges))
    width = conv(flow, h).shape[1]
    return (
        torch.stack(rows)
        if rows
        else h.new_zeros((0, width)) + 0 * sum(p.sum() for p in conv.parameters())
    )


def _attention_row(
    conv: nn.Module, flow: Flow, h: Tensor, v: int, edges: list[tuple[int, int]]
) -> Tensor:
    heads = []
    for k in range(conv.heads):
        part = slice(k * conv.out_features, (k + 1) * conv.out_features)
        w = conv.linear.weight[part]
        scores = []
        found = []
        for u, e in [*edges, (v, None)] if conv.self_loops else edges:
            if isinstance(conv, GATConv):
                score = torch.cat([conv.dst[k], conv.src[k]]) @ torch.cat([w @ h[v], w @ h[u]])
                if conv.edge is not None and e is not None:
                    score = score + conv.edge.weight[k] @ flow.data["feat"][e].to(h)
                score = leaky_relu(score, conv.negative_slope)
            else:
                inside = torch.cat([conv.dst.weight[part], w], 1) @ torch.cat([h[v], h[u]])
                if conv.edge is not None and e is not None:
                    inside = inside + conv.edge.weight[part] @ flow.data["feat"][e].to(h)
                score = conv.attention[k] @ leaky_relu(inside, conv.negative_slope)
            scores.append(score)
            found.append(w @ h[u])
        if scores:
            heads.append(torch.softmax(torch.stack(scores), 0) @ torch.stack(found))
        else:
            heads.append(0 * (w @ h[v]))
    out = torch.cat(heads) if conv.concat else torch.stack(heads).mean(0)
    out = out if conv.own is None else out + conv.own.weight @ h[v]
    return out if conv.bias is None else out + conv.bias


def _rgcn_row(
    conv: nn.Module, flow: Flow, h: Tensor, v: int, edges: list[tuple[int, int]]
) -> Tensor:
    matrices = conv.weight
    if conv.coefficients is not None:
        matrices = torch.einsum("rb,boi->roi", conv.coefficients, conv.weight)
    out = 0 * (matrices[0] @ h[v])
    for r in range(RELATIONS):
        near = [u for u, e in edges if int(flow.data["type"][e]) == r]
        for u in near:
            out = out + matrices[r] @ h[u] / len(near)
    out = out if conv.own is None else out + conv.own.weight @ h[v]
    return out if conv.bias is None else out + conv.bias


def _edge_row(
    conv: nn.Module, flow: Flow, h: Tensor, v: int, edges: list[tuple[int, int]]
) -> Tensor:
    more = [] if conv.edge_column is None else [flow.data["feat"].to(h)]
    found = [
        conv.mlp(torch.cat([h[v], h[u] - h[v], *(column[e] for column in more)])) for u, e in edges
    ]
    if not found:
        return 0 * conv.mlp(torch.cat([h[v], h[v], *(h.new_zeros(EDGE_WIDTH) for _ in more)]))
    return torch.stack(found).amax(0)


def _gine_row(
    conv: nn.Module, flow: Flow, h: Tensor, v: int, edges: list[tuple[int, int]]
) -> Tensor:
    total = (1 + conv.eps) * h[v] + 0 * conv.edge.weight.sum()
    for u, e in edges:
        total = total + (h[u] + conv.edge.weight @ flow.data["feat"][e].to(h)).relu()
    return conv.mlp(total)


ROWS = {
    GATConv: _attention_row,
    GATv2Conv: _attention_row,
    RGCNConv: _rgcn_row,
    EdgeConv: _edge_row,
    GINEConv: _gine_row,
}
