"""Half precision and autocast: results near those of float32, long sums right."""

from __future__ import annotations

import copy

import pytest
import torch
from _support import edge_reference
from _support.edge_reference import EVERY
from _support.nn_reference import KINDS, LINEAR, make_conv, small_flow, values
from torch import nn

from nodeflow import create_node_flow, flow_from_edges
from nodeflow.nn import GINConv, GraphConv, PropagationConv, SAGEConv

HALF = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", [(3, 8), (8, 3)])
def test_half_precision_is_near_single(kind: str, dtype: torch.dtype, widths: tuple[int, int]) -> None:
    narrow = make_conv(kind, *widths).to(dtype)
    h = values((4, widths[0])).to(dtype)
    results = []
    for conv, rows in ((narrow, h.clone()), (copy.deepcopy(narrow).float(), h.float())):
        out = conv(small_flow(), rows.requires_grad_())
        out.float().square().sum().backward()
        results.append([out, rows.grad, *(parameter.grad for parameter in conv.parameters())])
    for a, b in zip(*results, strict=True):
        if a.ndim == 0:  # the gradient of eps: a sum over everything, in which much cancels
            continue
        assert (a.dtype, b.dtype) == (dtype, torch.float32)
        assert (a.float() - b).abs().max() <= 8 * torch.finfo(dtype).eps * b.abs().max()


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("order", ["aggregate", "transform"])
def test_a_thousand_ones_add_up(dtype: torch.dtype, order: str) -> None:
    flow = flow_from_edges(range(1000), [0] * 1000, num_src=1000, num_dst=1)
    batch = create_node_flow([flow], [range(1000), [999]])
    h = torch.ones(1000, 1, dtype=dtype)
    layers = [
        (1000, GraphConv(1, 1, norm="none", self_loops=False, order=order)),
        (1000, PropagationConv(1, 1, order=order)),
        (1, GraphConv(1, 1, order=order)),
        (1, SAGEConv(1, 1, aggregator="gcn", order=order)),
        (2, SAGEConv(1, 1, order=order)),
    ]
    for expected, conv in layers:
        for parameter in conv.to(dtype).parameters():
            nn.init.constant_(parameter, float(parameter.ndim == 2))
        assert conv(batch, 0, h).item() == expected
    assert GINConv(nn.Identity())(batch, 0, h).item() == torch.tensor(1001.0).to(dtype)


@pytest.mark.parametrize(
    ("kind", "order"), [(kind, "aggregate") for kind in EVERY] + [(kind, "transform") for kind in LINEAR]
)
def test_autocast(kind: str, order: str) -> None:
    conv, flow = edge_reference.make(kind, 5, 3).float(), edge_reference.small_flow()
    flow.data["feat"] = flow.data["feat"].float()
    if kind in LINEAR:
        conv.order = order
    h = values((4, 5)).float().requires_grad_()
    expected = conv(flow, h)
    wanted = torch.autograd.grad(expected.sum(), [h, *conv.parameters()])
    with torch.autocast("cpu", torch.bfloat16):
        found = conv(flow, h)
        loss = found.float().sum()
    got = torch.autograd.grad(loss, [h, *conv.parameters()])
    assert not torch.equal(found.float(), expected)  # products in bfloat16
    for a, b in zip([found, *got], [expected, *wanted], strict=True):
        assert torch.isfinite(a).all()
        if a.ndim and (a is found or kind in KINDS):  # much cancels in gradients of attention and of numbers
            assert (a.float() - b).abs().max() <= 0.1 * b.abs().max()
    assert [a.dtype for a in got] == [torch.float32] * len(got)
