"""TypedConv and RGCNConv on graphs of several node types, compared with PyTorch Geometric in
float64.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from _support.typed_nn import RELATIONS, TYPES, by_type, pyg_view, typed_graph
from torch import Tensor

from nodeflow import (
    Flow,
    FullSampler,
    Graph,
    LadiesSampler,
    NeighborSampler,
    RandomWalkSampler,
    create_full_node_flow,
)
from nodeflow.nn import (
    RGCN,
    GATConv,
    GINConv,
    GraphConv,
    HGTConv,
    IgnoredWeightWarning,
    RGCNConv,
    SAGEConv,
    TypedConv,
)
from nodeflow.propagation import Propagation
from nodeflow.testing import check_layer

pyg = pytest.importorskip("torch_geometric.nn")
SEEDS = [12, 3, 0, 8, 9, 14]  # of several types, in no order


def flows(seed: int = 0) -> Iterator[Flow]:
    """The flow of a whole graph, of a sampled batch, of a full one, of seeds without edges, and of
    no seeds.
    """
    graph = typed_graph(seed)
    yield create_full_node_flow(graph, 1).flows[0]
    yield NeighborSampler(graph, [3], seed=seed)(SEEDS).flows[0]
    yield FullSampler(graph, 1)(SEEDS).flows[0]
    yield FullSampler(graph, 1)([8, 7]).flows[0]
    yield FullSampler(graph, 1)([]).flows[0]
    yield NeighborSampler(typed_graph(seed, 0), [3])(SEEDS).flows[0]
    yield Propagation(graph).flow(2, 11)


def rows(flow: Flow, width: int = 8) -> Tensor:
    return torch.randn(flow.num_src, width, dtype=torch.float64, requires_grad=True)


def sage(name: str = "sum", names: Any = RELATIONS, **options: Any) -> TypedConv:
    return TypedConv({each: SAGEConv(8, 6, **options) for each in names}, name).double()


def hetero(conv: TypedConv, names: Any = RELATIONS) -> torch.nn.Module:
    """PyG's layer with the same weights."""
    parts = {}
    for name, own in zip(names, conv.convs.values(), strict=True):
        parts[name] = pyg.SAGEConv((8, 8), 6).double()
        parts[name].lin_l.load_state_dict(own.neigh.state_dict())
        parts[name].lin_r.load_state_dict(own.own.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of types that nothing enters
        return pyg.HeteroConv(parts, conv.reduce)


def expected(module: Any, flow: Flow, h: Tensor) -> dict[str, Tensor]:
    schema = flow.dst_layer.schema
    src = by_type(schema, flow.src_layer.parent_nid, h)
    dst = by_type(schema, flow.dst_layer.parent_nid, flow.take_dst(h))
    out = {}
    for relation, edges in pyg_view(flow, schema).items():
        if relation in module.convs:
            part = module.convs[relation]((src[relation[0]], dst[relation[2]]), edges)
            out.setdefault(relation[2], []).append(part)
    group = pyg.conv.hetero_conv.group
    return {name: group(parts, module.aggr) for name, parts in out.items()}


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("together", [True, False])
def test_sage_is_that_of_pyg(reduce, together):
    # with order="transform" every layer is called on its own
    options = {} if together else {"order": "transform"}
    conv = TypedConv(
        {relation: SAGEConv(8, 6, **options) for relation in RELATIONS}, reduce
    ).double()
    other = hetero(conv)
    for flow in flows():
        h = rows(flow)
        out = conv(flow, h)
        assert out.shape == (flow.num_dst, 6)
        wanted = expected(other, flow, h)
        held = by_type(flow.dst_layer.schema, flow.dst_layer.parent_nid, out)
        assert set(wanted) == {"author", "paper.x"}
        for name in TYPES:
            torch.testing.assert_close(held[name], wanted.get(name, torch.zeros_like(held[name])))
        if flow.num_dst == 0:
            continue
        scale = torch.randn_like(out)
        parts = by_type(flow.dst_layer.schema, flow.dst_layer.parent_nid, scale)
        ours = torch.autograd.grad(
            (out * scale).sum(), [h, *conv.parameters()], materialize_grads=True
        )
        total = sum((wanted[name] * parts[name]).sum() for name in wanted)
        theirs = torch.autograd.grad(total, [h, *other.parameters()], materialize_grads=True)
        torch.testing.assert_close(ours[0], theirs[0])
        for a, b in zip(
            sorted(g.abs().sum() for g in ours), sorted(g.abs().sum() for g in theirs), strict=True
        ):
            torch.testing.assert_close(a, b)


def test_relations_that_are_left_out_pass_nothing():
    conv = TypedConv({"writes": SAGEConv(8, 6), "knows": GATConv(8, 3, heads=2)}).double()
    for flow in flows(1):
        h = rows(flow)
        out = conv(flow, h)
        by_hand = torch.zeros(flow.num_dst, 6, dtype=torch.float64)
        for name, module, end in (("writes", "0", "paper.x"), ("knows", "1", "author")):
            at = flow.dst_layer.of(end).rows
            whole = list(conv.convs.values())[int(module)](flow.of(name), h)
            by_hand = by_hand.index_add(0, at, whole[at])
        torch.testing.assert_close(out, by_hand)
        if flow.num_dst:
            out.square().sum().backward()
            assert h.grad is not None


def test_a_mixture_equals_layers_on_the_flows_of_relations():
    layers = {
        "writes": SAGEConv(8, 6),
        "cites": GATConv(8, 6),
        "of": GraphConv(8, 6, self_loops=False),
    }
    for reduce in ("sum", "mean", "max"):
        conv = TypedConv(layers, reduce).double()
        for flow in flows(2):
            h = rows(flow)
            at = flow.dst_layer.of("paper.x").rows
            parts = torch.stack([layer(flow.of(name), h)[at] for name, layer in layers.items()])
            wanted = {"sum": parts.sum(0), "mean": parts.mean(0), "max": parts.amax(0)}[reduce]
            out = conv(flow, h)
            torch.testing.assert_close(out[at], wanted)
            assert int(out.abs().sum(1).count_nonzero()) <= len(at)


def test_sparse_rows_and_columns_of_relations():
    graph = typed_graph()
    count = len(graph.relations["writes"])
    graph.relations["writes"].data["feat"] = torch.rand(count, 2, dtype=torch.float64)
    conv = TypedConv({"writes": GATConv(8, 6, edge_features=2)}).double()
    batch = create_full_node_flow(graph, 1)
    batch.copy_from_parent(edata=["feat"])
    h = torch.randn(graph.num_nodes, 8, dtype=torch.float64)
    out = conv(batch, 0, h)
    torch.testing.assert_close(conv(Propagation(graph).flow(0, graph.num_nodes), h), out)
    torch.testing.assert_close(conv(Propagation(graph).flow(10, 19), h), out[10:19])
    sparse = sage("sum")
    torch.testing.assert_close(sparse(batch, 0, h.to_sparse_csr()), sparse(batch, 0, h))


def test_one_type_is_the_ordinary_layer():
    graph = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 0])
    flow = create_full_node_flow(graph, 1).flows[0]
    h = torch.randn(3, 8)
    for layer in (SAGEConv(8, 6), GATConv(8, 6), SAGEConv(8, 6, relu=True)):
        for reduce in ("sum", "mean", "max"):
            torch.testing.assert_close(TypedConv({"edge": layer}, reduce)(flow, h), layer(flow, h))
    layer = RGCNConv(8, 6, graph.schema)
    torch.testing.assert_close(layer(flow, h), layer(flow, h, torch.zeros(4, dtype=torch.int64)))


@pytest.mark.parametrize("layer", [SAGEConv(4, 3), GATConv(4, 3)])
def test_check_layer(layer):
    report = check_layer(TypedConv({"edge": layer}), 4)
    assert not report.failed


def test_weights_of_relations():
    graph = typed_graph()
    h = torch.randn(graph.num_nodes, 8, dtype=torch.float64)
    plain = NeighborSampler(graph, [2], seed=1)(SEEDS)
    assert plain.flows[0].needs_weight  # of several relations, which are drawn at different rates
    sage()(plain, 0, h[plain.layers[0].parent_nid])


def test_edges_against_the_relations_are_refused():
    graph = typed_graph()
    batch = NeighborSampler(graph.view("out"), [3])(SEEDS)
    h = torch.randn(batch.layer_sizes[0], 8, dtype=torch.float64)
    for conv in (sage(), TypedConv({"writes": GATConv(8, 6)}).double()):
        with pytest.raises(ValueError, match="as with direction='out'"):
            conv(batch, 0, h)


@pytest.mark.parametrize(
    ("options", "other"),
    [
        ({}, {}),
        ({"num_bases": 2}, {"num_bases": 2}),
        ({"num_blocks": 2}, {"num_blocks": 2}),
        ({"own": False}, {}),
    ],
)
def test_rgcn_is_that_of_pyg(options, other):
    schema = typed_graph().schema
    conv = RGCNConv(8, 6, schema, **options).double()
    theirs = pyg.RGCNConv(8, 6, len(RELATIONS), root_weight="own" not in options, **other).double()
    with torch.no_grad():
        weight = conv.weight.transpose(1, 2)
        theirs.weight.copy_(weight if "num_blocks" not in options else weight.unflatten(0, (-1, 2)))
        if conv.own is not None:
            theirs.root.copy_(conv.own.weight.T)
        if conv.coefficients is not None:
            theirs.comp.copy_(conv.coefficients)
    for flow in flows():
        h = rows(flow)
        src, dst = flow.edges()
        types = torch.tensor(
            [[e in ids for ids in schema.relations.values()].index(True) for e in flow.parent_eid]
        )
        wanted = theirs((h, flow.take_dst(h)), torch.stack([src, dst]), types.to(torch.int64))
        torch.testing.assert_close(conv(flow, h), wanted)
        torch.testing.assert_close(conv(flow, h, types.to(torch.int64)), wanted)
        torch.testing.assert_close(conv(flow, h.detach().to_sparse_csr()), wanted)


def test_rgcn_of_a_model_has_the_relations_of_the_schema():
    graph = typed_graph()
    model = RGCN(8, 6, 3, num_relations=graph.schema, num_bases=2).double()
    x = torch.randn(graph.num_nodes, 8, dtype=torch.float64)
    full = model(create_full_node_flow(graph, 2), x)
    torch.testing.assert_close(model.inference(graph, x, chunk_size=4), full)
    torch.testing.assert_close(model.inference(graph, x, nodes=SEEDS), full[SEEDS])


@pytest.mark.parametrize("options", [{"include_dst": False}, {"disjoint": True}, {"reuse": True}])
def test_other_kinds_of_batches(options):
    first = GATConv(8, 6) if "include_dst" not in options else GraphConv(8, 6, self_loops=False)
    layers = {"writes": first, "rev_writes": GraphConv(8, 6, self_loops=False)}
    conv = TypedConv(layers).double()
    batch = NeighborSampler(typed_graph(), [2, 2], **options)(SEEDS)
    for flow in (batch.flows[0], pickle.loads(pickle.dumps(batch)).flows[1]):
        h = rows(flow)
        wanted = torch.zeros(flow.num_dst, 6, dtype=torch.float64)
        for name, end in (("writes", "paper.x"), ("rev_writes", "author")):
            at = flow.dst_layer.of(end).rows
            wanted = wanted.index_copy(0, at, layers[name](flow.of(name), h)[at])
        torch.testing.assert_close(conv(flow, h), wanted)


def test_flows_are_kept_for_training():
    flow = next(flows())
    conv = TypedConv({"writes": GATConv(8, 6)}).double()
    h = rows(flow)
    with torch.inference_mode():
        conv(flow, h)
    conv(flow, h).sum().backward()
    assert h.grad is not None


def test_convolutions_see_the_rows_that_edges_read_and_no_others():
    seen: list[tuple[int, int]] = []

    class Watched(GATConv):
        def forward(self, flow: Flow, h: Tensor, edge_features: Tensor | None = None) -> Tensor:
            seen.append((len(h), flow.num_dst))
            return super().forward(flow, h, edge_features)

    flow = NeighborSampler(typed_graph(), [3], seed=1)(SEEDS).flows[0]
    TypedConv({"writes": Watched(8, 6), "rev_writes": Watched(8, 6)}).double()(flow, rows(flow))
    for (sources, size), name, end in zip(
        seen, ("writes", "rev_writes"), ("paper.x", "author"), strict=True
    ):
        own = flow.dst_layer.of(end).rows  # which are the first of the sources
        assert (sources, size) == (len({*flow.of(name).indices.tolist(), *own.tolist()}), len(own))


def test_any_module_of_a_flow_and_rows():
    class Plain(torch.nn.Module):
        def forward(self, flow: Flow, h: Tensor) -> Tensor:
            return flow.aggregate(h, "max")

    flow = next(flows())
    h = rows(flow)
    at = flow.dst_layer.of("paper.x").rows
    wanted = flow.of("writes").aggregate(h, "max")[at]
    torch.testing.assert_close(TypedConv({"writes": Plain()})(flow, h)[at], wanted)


def test_names_never_collide():
    relations = [("a b", "c", "d"), ("a", "b c", "d"), ("a%20b", "c", "d"), ("a.b", "c", "d")]
    nodes = dict.fromkeys(("a b", "a", "a%20b", "a.b", "d"), 1)
    graph = Graph.typed(nodes, {relation: ([0], [0]) for relation in relations})
    conv = TypedConv({relation: SAGEConv(2, 2) for relation in relations})
    assert len(conv.convs) == 4
    assert conv(create_full_node_flow(graph, 1), 0, torch.ones(5, 2)).shape == (5, 2)


@pytest.mark.parametrize("kind", [SAGEConv, GATConv, RGCNConv, HGTConv])
def test_bfloat16_and_autocast(kind):
    flow = next(flows())
    schema = flow.dst_layer.schema
    layer = (
        kind(8, 8, schema)
        if kind in (RGCNConv, HGTConv)
        else TypedConv({r: kind(8, 8) for r in RELATIONS})
    )
    h = torch.randn(flow.num_src, 8, requires_grad=True)
    exact = layer(flow, h)
    with torch.autocast("cpu", torch.bfloat16):
        low = layer(flow, h)
    low.float().sum().backward()
    torch.testing.assert_close(low.float(), exact, atol=0.2, rtol=0.1)
    narrow = layer.to(torch.bfloat16)(flow, h.bfloat16())
    assert narrow.dtype == torch.bfloat16
    torch.testing.assert_close(narrow.float(), exact, atol=0.2, rtol=0.1)


def test_edges_without_a_relation_are_refused():
    graph = Graph.typed({"a": 4, "b": 3}, {("a", "r", "b"): ([0, 1, 2], [0, 1, 1])}, reverse=True)
    batch = RandomWalkSampler(graph, 1, metapath=["rev_r", "r"], seed=1)([1, 2])
    conv = TypedConv({relation: SAGEConv(4, 2) for relation in graph.schema.relations})
    with pytest.raises(ValueError, match="every edge must have a relation: edges of random walks"):
        conv(batch, 0, torch.ones(batch.layer_sizes[0], 4))


def test_files_name_a_relation_in_one_way():
    """However relations are spelled."""
    relations = [("a", "x.y", "b"), ("b", "z", "a"), ("a", "z", "b")]
    spelled = [dict.fromkeys(relations), dict.fromkeys(["x.y", *relations[1:]])]
    one, other = (TypedConv({name: SAGEConv(2, 2) for name in names}) for names in spelled)
    assert list(one.state_dict()) == list(other.state_dict())
    assert list(one.convs) == ["<x%2Ey>", "<b z a>", "<a z b>"]
    other.load_state_dict(one.state_dict())
    assert all(
        torch.equal(value, other.state_dict()[key]) for key, value in one.state_dict().items()
    )


@pytest.mark.parametrize("kind", ["gin", "graph"])
def test_sums_of_relations_read_the_weights_of_draws_by_layer(kind):
    graph = typed_graph(0)
    convs: dict[Any, torch.nn.Module] = {}
    for name in RELATIONS:
        sums_of = GraphConv(8, 8, norm="none", degrees="parent", bias=False)
        torch.nn.init.eye_(sums_of.linear.weight)
        convs[name] = sums_of if kind == "graph" else GINConv(torch.nn.Identity(), weighted=True)
    batch = LadiesSampler(graph, [6], seed=1)(SEEDS)
    flow = batch.flows[0]
    layer = batch.layers[1]
    h = torch.rand(flow.num_src, 8, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = TypedConv(convs).double()(flow, h)
    assert flow.weight.unique().numel() > 1
    src, dst = flow.edges()
    own = torch.zeros(flow.num_dst, 1, dtype=torch.float64)
    for name in layer.schema.nodes:
        own[layer.of(name).rows] = float(len([r for r in RELATIONS if r[2] == name]))
    sums = own * flow.take_dst(h) + torch.zeros_like(out).index_add(
        0, dst, h[src] * flow.weight.double()[:, None]
    )
    torch.testing.assert_close(out, sums)


def test_the_advice_on_weights_can_be_followed():
    batch = LadiesSampler(typed_graph(0), [4], seed=1)(SEEDS)
    with pytest.warns(
        IgnoredWeightWarning, match=r"use sums in every relation, GINConv\(weighted=True\)"
    ):
        sage()(batch.flows[0], rows(batch.flows[0]))
    with pytest.raises(
        ValueError, match=r"of all relations; for estimator weights use sums in every"
    ):
        TypedConv({"of": GraphConv(2, 2, degrees="parent")})
