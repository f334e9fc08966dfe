"""Dropout that convolutions apply to their own results: where, and that a model says what it said without."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nodeflow import Graph, NeighborSampler, NodeFlow
from nodeflow.nn import GCN, GIN, FlowModel, GraphSAGE, SAGEConv


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
def test_a_model_says_what_it_says_with_dropout_after(kind: type[FlowModel], order: str, batch: NodeFlow) -> None:
    class After(kind):  # type: ignore[misc, valid-type]  # promises nothing
        def step(self, i: int, h: Tensor) -> Tensor:
            return super().step(i, h)  # type: ignore[no-any-return]

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


@pytest.mark.parametrize(
    "options",
    [{"norm": "layer"}, {"residual": True}, {"jumping": "cat"}, {"activation": torch.tanh}],
    ids=lambda options: next(iter(options)),
)
def test_what_stands_between_keeps_dropout_after(options: dict[str, Any], batch: NodeFlow) -> None:
    model = made(GraphSAGE, dropout=0.5, **options)
    calls = count_calls(model.dropout)
    run(model, batch)
    assert calls


def test_convolutions_that_promise_nothing_keep_dropout_after(batch: NodeFlow) -> None:
    model = made(GIN, dropout=0.5)
    calls = count_calls(model.dropout)
    run(model, batch)
    assert calls


def test_float32_evaluation_and_another_module_keep_their_meaning(batch: NodeFlow) -> None:
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


def test_a_layer_drops_what_it_returns() -> None:
    batch = NeighborSampler(Graph.from_edges([0, 1], [2, 2]), [2])([2])
    conv, h = SAGEConv(2, 1000, relu=True), torch.ones(3, 2)
    torch.manual_seed(0)
    out = conv(batch, 0, h, dropout=0.5)
    whole = conv(batch, 0, h)
    assert torch.equal(out, torch.where(out > 0, 2 * whole, 0))
    assert 0.3 < (out > 0).sum() / (whole > 0).sum() < 0.7  # of 500 fair draws, beyond 8 standard deviations
