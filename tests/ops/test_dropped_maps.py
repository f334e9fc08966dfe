"""Bias, ReLU and dropout of linear maps in bfloat16, which are one pass: against the same steps one after another."""

import pytest
import torch
import torch.nn.functional as F
from _support.ops_reference import for_threads, same_bits

from nodeflow.ops import dropout, linear_sum

ROUNDED = 2.0**-8
"""Largest relative error of a number rounded to bfloat16."""


def leaves(rows, width, dtype=torch.float32):
    make = torch.Generator().manual_seed(rows + width)
    shapes = (rows, 12), (width, 12), (width,)
    return [torch.randn(shape, generator=make).to(dtype).requires_grad_() for shape in shapes]


def mapped(x, weight, bias, **options):
    with torch.autocast("cpu", torch.bfloat16):
        return linear_sum((x, weight), bias=bias, **options)


@pytest.mark.parametrize("rows", [1, 50, 3100])
@pytest.mark.parametrize("width", [1, 3, 16, 47, 64])
def test_results_and_gradients_are_those_of_the_steps(width, rows):
    results = []
    for together in (True, False):
        torch.manual_seed(7)
        inputs = leaves(rows, width)
        out = mapped(*inputs, relu=True, dropout=0.4) if together else dropout(mapped(*inputs, relu=True), 0.4)
        out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).bfloat16())
        results.append([out.detach(), *(leaf.grad for leaf in inputs)])
    assert torch.equal(results[0][0] > 0, results[1][0] > 0)
    for fused, expected in zip(*results, strict=True):
        assert fused.dtype == expected.dtype
        assert (fused - expected).abs().max() <= 4 * ROUNDED * expected.abs().max()


def test_a_bias_is_its_gradient_summed_in_float32():
    """Of 3,000 ones, of which bfloat16 could not add more than 256."""
    bias = torch.ones(5, requires_grad=True)
    mapped(torch.zeros(3000, 4), torch.zeros(5, 4), bias, relu=True).backward(torch.ones(3000, 5).bfloat16())
    assert bias.grad.tolist() == [3000.0] * 5


def test_not_a_number_stays():
    x = torch.tensor([[float("nan")], [1.0]])
    out = mapped(x, torch.ones(17, 1), torch.zeros(17), relu=True)
    assert out.isnan().all(1).tolist() == [True, False]


def test_second_gradients_are_those_of_the_steps():
    results = []
    for together in (True, False):
        torch.manual_seed(1)
        x, weight, bias = leaves(40, 6, torch.bfloat16)
        options = {"dropout": 0.5} if together else {}
        out = linear_sum((x, weight), bias=bias, relu=True, **options)
        out = out if together else dropout(out, 0.5)
        (first,) = torch.autograd.grad(out.float().square().sum(), x, create_graph=True)
        results.append(torch.autograd.grad(first.float().square().sum(), weight)[0].float())
    assert results[0].abs().sum() > 0
    assert (results[0] - results[1]).abs().max() <= 8 * ROUNDED * results[1].abs().max()


def test_threads_change_nothing():
    def run():
        torch.manual_seed(2)
        x, weight, bias = leaves(33_000, 40)
        out = mapped(x.detach(), weight, bias, relu=True, dropout=0.3)
        out.backward(torch.ones_like(out))
        return [out.detach(), bias.grad]

    assert same_bits(for_threads((1, 2, 3), run))


def test_float32_is_dropped_by_torch():
    x, weight, bias = leaves(30, 5)
    torch.manual_seed(4)
    dropped = linear_sum((x, weight), bias=bias, relu=True, dropout=0.3)
    torch.manual_seed(4)
    assert torch.equal(dropped, F.dropout(linear_sum((x, weight), bias=bias, relu=True), 0.3))


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_nothing_or_everything_is_dropped(rate):
    x, weight, bias = leaves(600, 20)
    out = mapped(x, weight, bias, relu=True, dropout=rate)
    out.sum().backward()
    kept = mapped(x, weight, bias, relu=True)
    assert torch.equal(out, kept if rate == 0 else torch.zeros_like(kept))
    assert bool(bias.grad.any()) == (rate == 0)
