"""HGTConv and RelativeTime: PyTorch Geometric's layer, and the equations of the paper edge by edge,
in float64.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from _support.typed_nn import RELATIONS, TYPES, by_type, pyg_view, typed_graph
from torch import Tensor

from nodeflow import Flow, FullSampler, NeighborSampler, create_full_node_flow
from nodeflow.graph import Schema
from nodeflow.nn import HGTConv, IgnoredWeightWarning, RelativeTime
from nodeflow.propagation import Propagation
from nodeflow.testing import check_layer

pyg = pytest.importorskip("torch_geometric.nn")
SEEDS = [12, 3, 0, 8, 9, 14]


def layer(out: int = 8, heads: int = 2, **options: Any) -> HGTConv:
    conv = HGTConv(8, out, typed_graph().schema, heads=heads, **options).double()
    with torch.no_grad():
        for parameter in (
            conv.prior,
            conv.gate,
            conv.key_bias,
            conv.query_bias,
            conv.value_bias,
            conv.out_bias,
        ):
            parameter.copy_(torch.randn_like(parameter))  # no two relations and types alike
    return conv


# PyG refuses some names of types
SHORT = {name: f"n{i}" for i, name in enumerate(TYPES)}
SHORT_RELATIONS = [(SHORT[a], f"r{i}", SHORT[b]) for i, (a, _, b) in enumerate(RELATIONS)]


def pyg_layer(conv: HGTConv) -> torch.nn.Module:
    """PyG's layer with the same weights."""
    other = pyg.HGTConv(
        8, conv.out_features, (list(SHORT.values()), SHORT_RELATIONS), conv.heads
    ).double()
    with torch.no_grad():
        for i, name in enumerate(SHORT.values()):
            kqv = other.kqv_lin.lins[name]
            out = other.out_lin.lins[name]
            kqv.weight.copy_(torch.cat([conv.key[i], conv.query[i], conv.value[i]]))
            kqv.bias.copy_(torch.cat([conv.key_bias[i], conv.query_bias[i], conv.value_bias[i]]))
            out.weight.copy_(conv.out[i])
            out.bias.copy_(conv.out_bias[i])
            other.skip[name].fill_(conv.gate[i])
        for i, relation in enumerate(SHORT_RELATIONS):
            other.p_rel["__".join(relation)].copy_(conv.prior[i].unsqueeze(0))
        for theirs, ours in ((other.k_rel, conv.attention), (other.v_rel, conv.message)):
            # theirs have the head first
            theirs.weight.copy_(ours.unflatten(0, (-1, conv.heads)).transpose(0, 1).flatten(0, 1))
    return other


def by_equations(conv: HGTConv, flow: Flow, h: Tensor, difference: Tensor | None = None) -> Tensor:
    """Equations 3 to 6 for one node, one edge and one head after another."""
    schema = flow.dst_layer.schema
    size = conv.out_features // conv.heads
    kinds = {name: i for i, name in enumerate(schema.nodes)}

    def kind(layer: Any, node: int) -> int:
        return next(
            i for i, ids in enumerate(schema.nodes.values()) if int(layer.parent_nid[node]) in ids
        )

    relation_of = [
        next(i for i, ids in enumerate(schema.relations.values()) if e in ids)
        for e in flow.parent_eid
    ]
    own = flow.take_dst(h)
    out = []
    for v in range(flow.num_dst):
        t = kind(flow.dst_layer, v)
        query = conv.query[t] @ own[v] + conv.query_bias[t]
        total = []
        for head in range(conv.heads):
            part = slice(head * size, (head + 1) * size)
            scores = []
            messages = []
            for e in range(int(flow.indptr[v]), int(flow.indptr[v + 1])):
                r = relation_of[e]
                s = kinds[list(schema.relations)[r][0]]
                x = h[flow.indices[e]]
                if difference is not None:
                    index = torch.arange(8, dtype=torch.float64)
                    angle = difference[e] / 10000 ** (index / 8)
                    x = x + conv.time.linear(torch.where(index % 2 == 0, angle.sin(), angle.cos()))
                key = (conv.key[s] @ x + conv.key_bias[s])[part]
                value = (conv.value[s] @ x + conv.value_bias[s])[part]
                at = r * conv.heads + head
                scores.append(
                    key @ conv.attention[at] @ query[part] * conv.prior[r, head] / math.sqrt(size)
                )
                messages.append(value @ conv.message[at])
            if scores:
                total.append(
                    (torch.stack(scores).softmax(0).unsqueeze(1) * torch.stack(messages)).sum(0)
                )
            else:
                total.append(h.new_zeros(size))
        row = conv.out[t] @ torch.nn.functional.gelu(torch.cat(total)) + conv.out_bias[t]
        gate = conv.gate[t].sigmoid()
        out.append(
            gate * row + (1 - gate) * own[v] if conv.out_features == conv.in_features else row
        )
    return torch.stack(out)


def flows() -> list[Flow]:
    graph = typed_graph()
    batches = [
        create_full_node_flow(graph, 1),
        NeighborSampler(graph, [3], seed=1)(SEEDS),
        FullSampler(graph, 1)(SEEDS),
    ]
    return [
        *(batch.flows[0] for batch in batches),
        NeighborSampler(typed_graph(0, 0), [3])(SEEDS).flows[0],
    ]


@pytest.mark.parametrize(("out", "heads"), [(8, 2), (8, 1), (6, 3)])
def test_pyg_and_the_equations(out, heads):
    conv = layer(out, heads)
    other = pyg_layer(conv)
    for flow in flows():
        h = torch.randn(flow.num_src, 8, dtype=torch.float64, requires_grad=True)
        rows = conv(flow, h)
        torch.testing.assert_close(rows, by_equations(conv, flow, h))
        if flow.num_edges == 0:
            continue
        # PyG has one row per node of the input layer; those that are no destinations are cut away
        schema = flow.dst_layer.schema
        src = flow.src_layer
        x = {SHORT[name]: part for name, part in by_type(schema, src.parent_nid, h).items()}
        edges = dict(zip(SHORT_RELATIONS, pyg_view(flow, schema).values(), strict=True))
        rows_of_types = other(x, edges)
        wanted = {name: rows_of_types[SHORT[name]] for name in ("author", "paper.x")}
        held = by_type(schema, flow.dst_layer.parent_nid, rows)
        total = h.new_zeros(())
        scale = by_type(schema, flow.dst_layer.parent_nid, torch.randn_like(rows))
        for name in ("author", "paper.x"):
            wanted[name] = wanted[name][: len(held[name])]
            torch.testing.assert_close(held[name], wanted[name])
            total = total + (wanted[name] * scale[name]).sum()
        ours = sum((held[name] * scale[name]).sum() for name in ("author", "paper.x"))
        torch.testing.assert_close(
            torch.autograd.grad(ours, h, retain_graph=True), torch.autograd.grad(total, h)
        )


def test_relative_time():
    conv = layer(edge_time="age")
    graph = typed_graph()
    graph.edata["age"] = torch.randint(-3, 4, (graph.num_edges,))
    for batch in (create_full_node_flow(graph, 1), NeighborSampler(graph, [3], seed=1)(SEEDS)):
        flow = batch.flows[0]
        h = torch.randn(flow.num_src, 8, dtype=torch.float64)
        age = graph.edata["age"][flow.parent_eid]
        wanted = by_equations(conv, flow, h, age)
        torch.testing.assert_close(conv(flow, h, age), wanted)
        batch.copy_from_parent(edata=["age"])
        torch.testing.assert_close(conv(flow, h), wanted)
        torch.testing.assert_close(conv(flow, h, age + 0.5), by_equations(conv, flow, h, age + 0.5))
    x = torch.randn(19, 8, dtype=torch.float64)
    full = create_full_node_flow(graph, 1)
    full.copy_from_parent(edata=["age"])
    torch.testing.assert_close(conv(Propagation(graph).flow(5, 12), x), conv(full, 0, x)[5:12])
    conv(full, 0, x).sum().backward()
    assert conv.time is not None
    assert conv.time.linear.weight.grad is not None
    assert torch.equal(
        RelativeTime(4).double()(torch.tensor([], dtype=torch.float64)), torch.zeros(0, 4).double()
    )


def test_large_differences_in_bfloat16():
    module = RelativeTime(8)
    difference = torch.tensor([20_000, 20_001, 3])
    exact = module.double()(difference)
    low = module.to(torch.bfloat16)(difference)
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.double(), exact, atol=0.02, rtol=0.02)


def test_order_empty_types_and_gradients():
    graph = typed_graph()
    conv = layer()
    x = torch.randn(graph.num_nodes, 8, dtype=torch.float64)
    batch = FullSampler(graph, 1)(SEEDS)
    rows = conv(batch, 0, x[batch.layers[0].parent_nid])
    torch.testing.assert_close(rows, conv(create_full_node_flow(graph, 1), 0, x)[SEEDS])
    none = FullSampler(graph, 1)([])
    assert conv(none, 0, x[:0]).shape == (0, 8)
    rows.sum().backward()
    assert conv.key.grad is not None
    empty = list(TYPES).index("empty")
    assert float(conv.key.grad[empty].abs().sum()) == 0
    assert all(bool(p.grad.isfinite().all()) for p in conv.parameters() if p.grad is not None)


@pytest.mark.parametrize("fast_mode", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_gradcheck(fast_mode):
    flow = NeighborSampler(typed_graph(), [2], seed=2)([8, 1]).flows[0]
    conv = layer(4, 2, edge_time="age")
    h = torch.randn(flow.num_src, 8, dtype=torch.float64, requires_grad=True)
    age = torch.rand(flow.num_edges)
    values = list(conv.parameters())
    torch.autograd.gradcheck(lambda h, *rest: conv(flow, h, age), (h, *values), fast_mode=fast_mode)


def test_check_layer():
    schema = Schema.of_one_type(11, 30)
    report = check_layer(HGTConv(4, 4, schema, heads=2), 4)
    assert not report.failed
    report = check_layer(
        HGTConv(4, 6, schema, edge_time="age"),
        4,
        edge_columns={"age": ()},
        checks=["gradients", "batch"],
    )
    assert not report.failed


def test_weights_warn_within_a_relation_only():
    graph = typed_graph()
    graph.edata["p"] = torch.rand(graph.num_edges) + 0.1
    for options, warns in (({}, False), ({"prob": "p"}, True)):
        batch = NeighborSampler(graph, [2], seed=1, **options)(SEEDS)
        h = torch.randn(batch.layer_sizes[0], 8, dtype=torch.float64)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layer()(batch, 0, h)
        assert [w.category for w in caught] == [IgnoredWeightWarning] * warns
