"""Estimator weights in layers: used without bias, of any type, or ignored with a warning; the model
GIN.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from _support.graphs import random_graph
from _support.nn_reference import as_csr, assert_near, dense, dense_gin, gradients, values
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import (
    BernoulliSampler,
    FastGCNSampler,
    Flow,
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    nn,
    transform,
)
from nodeflow.control_variates import ControlVariateSampler, History
from nodeflow.nn import GIN, FlowModel, GINConv, GraphSAGE, SAGEConv
from nodeflow.sampling.base import SamplerBase


def drawn(weighted: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the expectation over the 3 draws of one neighbour with prob 0.5, 0.3, 0.2, and the
    mean over all.
    """
    graph = Graph.from_edges([1, 2, 3], [0, 0, 0], edata={"p": torch.tensor([0.5, 0.3, 0.2])})
    graph.ndata.update(transform.degrees(graph))
    x = torch.tensor([[0.0], [1.0], [10.0], [100.0]], dtype=torch.float64)
    conv = SAGEConv(1, 1, bias=False, weighted=weighted).double()
    torch.nn.init.ones_(conv.neigh.weight)
    torch.nn.init.zeros_(conv.own.weight)
    sampler = NeighborSampler(graph, [1], prob="p")
    found = {}
    for epoch in range(200):
        batch = sampler([0], epoch=epoch)
        batch.copy_from_parent(["in_degree"], None)
        found[int(batch.flows[0].parent_eid[0])] = conv(batch, 0, x[batch.front.parent_nid])
        if len(found) == 3:
            break
    p = graph.edata["p"].double()
    return sum(p[e] * out for e, out in found.items()), torch.tensor([[37.0]], dtype=torch.float64)


def test_the_weighted_mean_is_unbiased_and_the_plain_one_is_not():
    torch.testing.assert_close(*drawn(True), rtol=1e-5, atol=0)
    with pytest.warns(nn.IgnoredWeightWarning):
        expected, mean = drawn(False)
    assert (expected - mean).abs() > 1


def test_with_all_edges_it_is_the_mean(graph):
    graph.ndata.update(transform.degrees(graph))
    plain = GraphSAGE(2, 4, 3)
    weighted = GraphSAGE(2, 4, 3, weighted=True)
    weighted.load_state_dict(plain.state_dict())
    x = torch.rand(graph.num_nodes, 2)
    torch.testing.assert_close(weighted.inference(graph, x), plain.inference(graph, x))
    batch = FullSampler(graph, 2)([0, 3])
    h = x[batch.front.parent_nid]
    with pytest.raises(ValueError, match="weighted=True needs the column 'in_degree'"):
        weighted(batch, h)
    batch.copy_from_parent(["in_degree"], None)
    torch.testing.assert_close(weighted(batch, h), plain(batch, h))


def outputs_of(model: torch.nn.Module, batch: NodeFlow) -> torch.Tensor:
    batch.copy_from_parent(["in_degree", "out_degree"], ["type"])
    out: torch.Tensor = model(batch, torch.rand(batch.layer_sizes[0], 4))
    return out


def typed_graph() -> Graph:
    """Every node of 0 to 9 has 9 in-edges, of types 0 and 1, with different numbers "p"."""
    src = torch.arange(100) // 10
    dst = torch.arange(100) % 10
    kept = src != dst
    count = int(kept.sum())
    edata = {"p": torch.rand(count) + 0.1, "type": torch.arange(count) % 2}
    graph = Graph.from_edges(src[kept], dst[kept], edata=edata)
    graph.ndata.update(transform.degrees(graph))
    return graph


IGNORING: dict[str, tuple[Callable[[], FlowModel], str]] = {
    "sage": (
        lambda: nn.GraphSAGE(4, 4, 4),
        "SAGEConv ignores flow.weight.*GraphSAGE\\(weighted=True\\)",
    ),
    "sage, gcn": (lambda: nn.GraphSAGE(4, 4, 4, aggregator="gcn"), "with aggregator='mean'"),
    "gcn": (lambda: nn.GCN(4, 4, 4), "GraphConv ignores .*GCN\\(degrees='parent'\\)"),
    "gat": (lambda: nn.GAT(4, 4, 4), "GATConv ignores .*a layer that reads flow.weight"),
    "gin": (
        lambda: FlowModel([nn.GINConv(torch.nn.Identity()) for _ in range(2)]),
        "GINConv ignores",
    ),
    "rgcn": (lambda: nn.RGCN(4, 4, 4, num_relations=2), "RGCNConv ignores .* node and type alike"),
}
USING: dict[str, Callable[[], FlowModel]] = {
    "sage": lambda: nn.GraphSAGE(4, 4, 4, weighted=True),
    "gcn": lambda: nn.GCN(4, 4, 4, degrees="parent"),
    "max": lambda: nn.GraphSAGE(4, 4, 4, aggregator="pool"),
    "propagation": lambda: FlowModel([nn.PropagationConv(4, 4) for _ in range(2)]),
}


@pytest.mark.parametrize("name", IGNORING)
def test_ignored_weights_warn_once_per_model(name):
    graph = typed_graph()
    make, text = IGNORING[name]
    model = make()
    sampler = NeighborSampler(graph, [3, 3], prob="p")
    with pytest.warns(nn.IgnoredWeightWarning, match=text) as caught:
        outputs_of(model, sampler([0, 1]))
    assert len(caught) == 1
    outputs_of(model, sampler([2]))  # warnings are errors in tests
    model.inference(graph.view(weight="p"), torch.rand(10, 4))
    for fair in (
        NeighborSampler(graph, [3, 3]),
        FullSampler(graph, 2),
        LaborSampler(graph, [3, 3]),
    ):
        outputs_of(make(), fair([0, 1]))


@pytest.mark.parametrize("name", USING)
def test_layers_that_use_weights_do_not_warn(name):
    outputs_of(USING[name](), NeighborSampler(typed_graph(), [3, 3], prob="p")([0, 1]))


def test_fanouts_per_type_do_not_bias_the_means_of_types():
    sampler = NeighborSampler(typed_graph(), [{0: 2, 1: 3}] * 2, edge_type="type")
    batch = sampler([0, 1])
    assert batch.flows[0].needs_weight
    outputs_of(nn.RGCN(4, 4, 4, num_relations=2), batch)


# ---- weights of a float64 edge column


@pytest.fixture
def weighted() -> Graph:
    graph = random_graph(0, 20, 100)
    graph.edata["exact"] = transform.edge_norm(graph, "right").double()
    graph.ndata.update(transform.degrees(graph))
    graph.edata["single"] = graph.edata["exact"].float()
    return graph


@pytest.mark.parametrize("estimator", ["none", "ns", "cv", "cvd"])
@pytest.mark.parametrize("aggregated", ["on demand", "stored"])
def test_models_of_float32_use_them(estimator, aggregated, weighted):
    torch.manual_seed(0)
    x = torch.randn(20, 4)
    models: list[FlowModel] = [
        nn.GraphSAGE(4, 5, 3, 2, weighted=True),
        nn.GCN(4, 5, 3, 2, degrees="parent"),
    ]
    if estimator != "none":
        models = [
            kind(4, 5, 3, num_layers=2, estimator=estimator).eval()
            for kind in (nn.VRGCN, nn.VRGraphSAGE)
        ]
    for model in models:
        outputs = []
        for column in ("exact", "single"):
            sampler = NeighborSampler(weighted.view(weight=column), [2, 2])
            if isinstance(model, nn.VRModel):
                history = History(weighted.view(weight=column), {0: 4, 1: 5}, aggregated=aggregated)
                sampler = ControlVariateSampler(history, [2, 2])
            batch = sampler(range(20))
            batch.copy_from_parent()
            out = model(batch, x[batch.front.parent_nid])
            assert out.dtype == torch.float32
            out.sum().backward()
            outputs.append((out, model.inference(weighted.view(weight=column), x)))
        torch.testing.assert_close(*outputs)


def test_a_layer_of_ones_own_is_told_what_to_do(weighted):
    class Mean(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, flow: Flow, h: torch.Tensor) -> torch.Tensor:
            return self.linear(flow.aggregate(h, "sum", weight=flow.weight))

    model = FlowModel([Mean()])
    x = torch.ones(weighted.num_nodes, 2)
    batch = NeighborSampler(weighted.view(weight="exact"), [2])([3])
    for call in (
        lambda: model(batch, x[batch.front.parent_nid]),
        lambda: model.inference(weighted.view(weight="exact"), x),
    ):
        with pytest.raises(RuntimeError, match="same dtype") as caught:
            call()
        assert any("flow.weight torch.float64" in note for note in caught.value.__notes__)
    assert model.inference(weighted.view(weight="single"), x).dtype == torch.float32


# ---- GIN, whose sums over drawn neighbours are unbiased with them


SRC = [1, 2, 3, 4, 5, 2, 3, 5, 0, 3]
DST = [0, 0, 0, 0, 0, 1, 1, 1, 4, 4]
GRAPH = Graph.from_edges(SRC, DST, num_nodes=6)
SAMPLERS: dict[str, SamplerBase] = {
    "neighbor": NeighborSampler(GRAPH, [2]),
    "replace": NeighborSampler(GRAPH, [2], replace=True),
    "labor": LaborSampler(GRAPH, [2]),
    "bernoulli": BernoulliSampler(GRAPH, [2]),
    "ladies": LadiesSampler(GRAPH, [3]),
    "fastgcn": FastGCNSampler(GRAPH, [4]),
}


def make() -> GINConv:
    mlp = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    return GINConv(mlp, eps=0.5, train_eps=True, weighted=True).double()


def weighted_adjacency(flow: Flow) -> Tensor:
    src, dst = flow.edges()
    matrix = torch.zeros(flow.num_dst, flow.num_src, dtype=torch.float64)
    return matrix.index_put((dst, src), flow.weight.double(), accumulate=True)


@pytest.mark.parametrize("name", SAMPLERS)
@given(epoch=st.integers(0, 10**6))
def test_edges_are_multiplied_by_their_weights(name, epoch):
    conv = make()
    flow = SAMPLERS[name]([0, 1, 5], epoch=epoch).flows[0]
    h = values((flow.num_src, 3)).requires_grad_()
    found = conv(flow, h)
    expected = dense_gin(weighted_adjacency(flow), dense(flow)[1], conv, h)
    assert_near(found, expected)
    inputs = (h, *conv.parameters())
    for one, other in zip(gradients(found, *inputs), gradients(expected, *inputs), strict=True):
        assert_near(one, other)


# the model


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_model_is_its_layers(layers):
    model = GIN(3, 8, 2, num_layers=layers).double().eval()
    widths = [3, *[8] * (layers - 1), 2]
    for conv, i, o in zip(model.convs, widths[:-1], widths[1:], strict=True):
        assert (conv.mlp[0].in_features, conv.mlp[-1].out_features, conv.weighted) == (i, o, True)
    x = values((6, 3))
    h = x
    for number, conv in enumerate(model.convs, 1):
        full = create_full_node_flow(GRAPH, 1).flows[0]
        h = dense_gin(weighted_adjacency(full), torch.eye(6, dtype=torch.float64), conv, h)
        h = h if number == layers else h.relu()
    assert_near(model(create_full_node_flow(GRAPH, layers), x), h)
    assert_near(model.inference(GRAPH, x), h)


def test_further_arguments_go_to_the_convolutions():
    model = GIN(3, 8, 2, num_layers=2, eps=0.25, weighted=False, dropout=0.5, norm="layer")
    assert [float(conv.eps) for conv in model.convs] == [0.25, 0.25]
    assert not any(conv.weighted for conv in model.convs)
    with pytest.raises(TypeError, match=r"h is a sparse matrix"):
        model.eval()(create_full_node_flow(GRAPH, 2), as_csr(values((6, 3)).float()))


@pytest.mark.parametrize("norm", [None, "batch"])
def test_a_batch_of_one_node_trains(norm):
    """One row has no variance: it is normalised by the running ones, which stay as they are."""
    torch.manual_seed(0)
    model = GIN(3, 8, 2, num_layers=1 if norm is None else 2, norm=norm)
    batch = create_full_node_flow(Graph.from_edges([0], [0], num_nodes=1), len(model.convs))
    before = {name: value.clone() for name, value in model.named_buffers()}
    out = model.train()(batch, torch.ones(1, 3))
    assert torch.isfinite(out).all()
    assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    assert_near(out, model.eval()(batch, torch.ones(1, 3)))
    out.sum().backward()
