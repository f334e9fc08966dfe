"""Models: directions, modes, methods that are overridden, and ReLU and dropout that convolutions
apply themselves.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.nn_reference import assert_near, values
from torch import Tensor, nn

from nodeflow import Flow, FullSampler, Graph, NeighborSampler, NodeFlow, create_full_node_flow
from nodeflow.nn import GCN, GIN, FlowModel, GraphConv, GraphSAGE, SAGEConv

MODELS = [GraphSAGE, GCN]


def make_model(
    kind: type, widths: tuple[int, int, int], num_layers: int, dropout: float = 0.0
) -> FlowModel:
    torch.manual_seed(0)
    return kind(*widths, num_layers, dropout=dropout).double()


@pytest.mark.parametrize("kind", MODELS)
def test_out_neighbours_are_in_neighbours_of_the_reversed_graph(kind, graph):
    model = make_model(kind, (2, 3, 2), 2)
    src, dst = graph.edges()
    turned = Graph.from_edges(dst, src, num_nodes=graph.num_nodes)
    h = graph.ndata["feat"].double()
    batch = FullSampler(graph.view("out"), 2)(range(6))
    assert_near(model(batch, h[batch.layers[0].parent_nid]).detach(), model.inference(turned, h))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("num_flows", [1, 3])
def test_another_number_of_flows_is_refused(kind, num_flows, graph):
    batch = FullSampler(graph, num_flows)([1])
    with pytest.raises(ValueError, match="has 2 layers and needs batches of 2 flows, got NodeFlow"):
        make_model(kind, (2, 3, 2), 2)(batch, values((batch.layer_sizes[0], 2)))


@pytest.mark.parametrize("training", [True, False])
def test_inference_leaves_every_module_in_its_mode(training, graph):
    model = make_model(GraphSAGE, (2, 3, 2), 2, dropout=0.5).train(training)
    model.convs[0].train(not training)
    before = [module.training for module in model.modules()]
    out = model.inference(graph, values((6, 2)).requires_grad_())
    assert [module.training for module in model.modules()] == before
    assert not out.requires_grad
    assert torch.is_grad_enabled()
    with pytest.raises(ValueError, match="rows"):
        model.inference(graph, values((5, 2)))
    assert [module.training for module in model.modules()] == before


def test_dropout_acts_before_every_layer_but_the_first_and_in_training_only(graph):
    batch = create_full_node_flow(graph, 2)
    h = values((6, 2))
    model = make_model(GraphSAGE, (2, 64, 2), 2, dropout=0.5)
    assert not torch.equal(model(batch, h), model(batch, h))
    model.eval()
    assert torch.equal(model(batch, h), model(batch, h))
    single = make_model(GraphSAGE, (2, 64, 2), 1, dropout=0.9)
    whole = create_full_node_flow(graph, 1)
    assert torch.equal(single(whole, h), single(whole, h))
    entered = model.train().step(1, torch.ones(1000, 4))
    assert set(entered.unique().tolist()) == {0.0, 2.0}
    apart = GraphSAGE(2, 64, 2, activation=torch.nn.ReLU())
    assert not apart.step(1, -torch.ones(3, 2)).any()
    assert torch.equal(model.step(0, -torch.ones(3, 2)), -torch.ones(3, 2))


def test_models_are_stacks_of_the_stated_widths():
    sage = GraphSAGE(5, 4, 3, 3)
    gcn = GCN(5, 4, 3, 1)
    assert [type(conv) for conv in sage.convs] == [SAGEConv] * 3
    assert [tuple(conv.own.weight.shape) for conv in sage.convs] == [(4, 5), (4, 4), (3, 4)]
    assert [type(conv) for conv in gcn.convs] == [GraphConv]
    assert tuple(gcn.convs[0].linear.weight.shape) == (3, 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inference_with_the_weights_of_the_sampler(dtype, graph):
    class Weighted(torch.nn.Module):
        def forward(self, flow: Flow, h: torch.Tensor) -> torch.Tensor:
            return flow.aggregate(h, "sum", weight=flow.weight.double())

    graph.edata["w"] = values((graph.num_edges,)).detach().to(dtype)
    model = FlowModel([Weighted(), Weighted()])
    h = values((graph.num_nodes, 3)).detach()
    batch = FullSampler(graph.view(weight="w"), 2)(range(graph.num_nodes))
    assert_near(model.inference(graph.view(weight="w"), h), model(batch, h[batch.front.parent_nid]))
    assert not torch.allclose(model.inference(graph, h), model.inference(graph.view(weight="w"), h))


@pytest.mark.parametrize("kind", MODELS)
def test_the_relu_is_fused_where_the_model_is_built_without_anything_between(kind, graph):
    fused = kind(4, 3, 2, 3)
    apart = kind(4, 3, 2, 3, activation=torch.nn.ReLU())
    assert [conv.relu for conv in fused.convs] == [True, True, False]
    assert [conv.relu for conv in apart.convs] == [False] * 3
    for option in (
        {"norm": "layer"},
        {"residual": True},
        {"jumping": "cat"},
        {"activation": torch.tanh},
    ):
        assert not any(conv.relu for conv in kind(4, 3, 2, 3, **option).convs)
    assert not any(conv.relu for conv in FlowModel([SAGEConv(4, 3), SAGEConv(3, 2)]).convs)
    apart.load_state_dict(fused.state_dict())
    batch = NeighborSampler(graph, [-1, -1, -1])([0, 1])
    h = values((batch.layer_sizes[0], 4)).float()
    torch.testing.assert_close(fused(batch, h), apart(batch, h))
    seen: list[torch.Tensor] = []
    for model in (fused, apart):
        model.convs[0].register_forward_hook(lambda _, args, out: seen.append(out))
        model(batch, h)
    assert (seen[1] < 0).any()  # a step of its own: hooks see the rows before it
    torch.testing.assert_close(seen[0], seen[1].relu())


def test_an_overridden_activate_gets_the_rows_before_the_relu(graph):
    class Bounded(GraphSAGE):
        def activate(self, i: int, h: torch.Tensor) -> torch.Tensor:
            return h.tanh() if i else h

    batch = NeighborSampler(graph, [-1, -1])([0, 1])
    h = values((batch.layer_sizes[0], 4))
    model = make_model(Bounded, (4, 3, 2), 2)
    first = model.convs[0](batch, 0, h)
    assert (first < 0).any()
    assert_near(model(batch, h), model.convs[1](batch, 1, first.tanh()))


@pytest.mark.parametrize("kind", MODELS)
def test_convolutions_with_a_forward_of_their_own_are_activated(kind, graph):
    class Changed(kind.conv):
        def forward(self, flow: Flow, h: torch.Tensor) -> torch.Tensor:
            return super().forward(flow, h) - 1

    class Model(kind):
        conv = Changed

    batch = NeighborSampler(graph, [-1, -1])([0, 1])
    h = values((batch.layer_sizes[0], 4))
    model = make_model(Model, (4, 3, 2), 2)
    plain = make_model(kind, (4, 3, 2), 2)
    assert not any(conv.relu for conv in model.convs)
    assert_near(model(batch, h), model.convs[1](batch, 1, model.convs[0](batch, 0, h).relu()))
    plain.convs[0] = model.convs[0]  # put in later: activated too
    assert_near(plain(batch, h), plain.convs[1](batch, 1, model.convs[0](batch, 0, h).relu()))


def test_relu_of_convolutions_given_to_a_model(graph):
    batch = NeighborSampler(graph, [-1, -1])([0, 1])
    h = values((batch.layer_sizes[0], 4)).float()
    model = FlowModel([SAGEConv(4, 3, relu=True), SAGEConv(3, 2)])
    expected = model.convs[1](batch, 1, model.convs[0](batch, 0, h))
    torch.testing.assert_close(model(batch, h), expected)
    model.activation = torch.tanh  # another activation comes after the ReLU
    torch.testing.assert_close(
        model(batch, h), model.convs[1](batch, 1, model.convs[0](batch, 0, h).tanh())
    )


@pytest.mark.parametrize("order", ["aggregate", "transform"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_overridden_aggregate_is_used(weighted, order, graph):
    class Sums(SAGEConv):
        def aggregate(self, flow: Flow, h: torch.Tensor) -> torch.Tensor:
            return flow.aggregate(h, "sum")

    batch = NeighborSampler(graph, [-1])([0, 1])
    h = values((batch.layer_sizes[0], 4))
    flow = batch.flows[0]
    conv = Sums(4, 3, weighted=weighted, order=order).double()
    own = flow.take_dst(h) @ conv.own.weight.T
    assert_near(
        conv(flow, h), own + flow.aggregate(h, "sum") @ conv.neigh.weight.T + conv.neigh.bias
    )


# ---- dropout that convolutions apply to their own results: where, and that a model says what it
# said without


@pytest.fixture
def batch() -> NodeFlow:
    ends = torch.randint(0, 60, (2, 500), generator=torch.Generator().manual_seed(0))
    return NeighborSampler(Graph.from_edges(*ends, num_nodes=60), [4, 3])(range(40))


def run(model: nn.Module, batch: NodeFlow) -> Tensor:
    h = torch.linspace(-1, 1, 60 * 8).view(60, 8)[batch.front.parent_nid]
    torch.manual_seed(3)
    with torch.autocast("cpu", torch.bfloat16):
        out: Tensor = model(batch, h)
    return out


def made(kind: type[Any], **options: Any) -> Any:
    torch.manual_seed(0)
    return kind(8, 32, 3, num_layers=2, **options)


def count_calls(module: nn.Module) -> list[int]:
    calls: list[int] = []
    module.register_forward_hook(lambda *_: calls.append(1))
    return calls


@pytest.mark.parametrize("order", ["aggregate", "transform"])
@pytest.mark.parametrize("kind", [GraphSAGE, GCN])
def test_a_model_says_what_it_says_with_dropout_after(kind, order, batch):
    class After(kind):  # type: ignore[misc, valid-type]  # promises nothing
        def step(self, i: int, h: Tensor) -> Tensor:
            return super().step(i, h)

    results = []
    for made_of in (kind, After):
        model = made(made_of, dropout=0.5, order=order)
        calls = count_calls(model.dropout)
        out = run(model, batch)
        gradients = torch.autograd.grad(out.float().square().sum(), list(model.parameters()))
        results.append([out, *gradients])
        assert len(calls) == (made_of is After)
    for found, expected in zip(*results, strict=True):
        assert (found - expected).float().norm() <= 0.03 * expected.float().norm()


def test_what_stands_between_and_convolutions_that_promise_nothing_keep_dropout_after(
    batch,
):
    between = [
        {"norm": "layer"},
        {"residual": True},
        {"jumping": "cat"},
        {"activation": torch.tanh},
    ]
    for kind, options in [(GIN, {}), *((GraphSAGE, one) for one in between)]:
        model = made(kind, dropout=0.5, **options)
        calls = count_calls(model.dropout)
        run(model, batch)
        assert calls, (kind, options)


def test_float32_evaluation_and_another_module_keep_their_meaning(batch):
    model = made(GraphSAGE, dropout=0.5)
    calls = count_calls(model.dropout)
    with torch.autocast("cpu", enabled=False):
        model(batch, torch.ones(batch.layer_sizes[0], 8))
    assert len(calls) == 1
    plain = run(made(GraphSAGE, dropout=0.0), batch)
    assert torch.equal(run(model.eval(), batch), plain)
    model.train().dropout = nn.Identity()
    assert torch.equal(run(model, batch), plain)
    assert not torch.equal(run(made(GraphSAGE, dropout=0.5), batch), plain)


def test_a_layer_drops_what_it_returns():
    batch = NeighborSampler(Graph.from_edges([0, 1], [2, 2]), [2])([2])
    conv = SAGEConv(2, 1000, relu=True)
    h = torch.ones(3, 2)
    torch.manual_seed(0)
    out = conv(batch, 0, h, dropout=0.5)
    whole = conv(batch, 0, h)
    assert torch.equal(out, torch.where(out > 0, 2 * whole, 0))
    # of 500 fair draws, beyond 8 standard deviations
    assert 0.3 < (out > 0).sum() / (whole > 0).sum() < 0.7
