"""bfloat16 on a CPU: sums in float32 rounded once, linear maps under autocast, dropout by a key,
alone and within.
"""

import pytest
import torch
from _support.ops_reference import for_threads, multiply_in, same_bits
from torch import nn

from nodeflow.ops import (
    Structure,
    aggregate,
    aggregate_beside_own,
    dropout,
    in_bfloat16,
    linear_sum,
    sparse_linear,
)
from nodeflow.ops._autograd import Spmm

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
ROUNDED = 2.0**-8
"""Largest relative error of a number rounded to bfloat16."""
DEGREES = [0, 1, 31, 32, 33, 64, 65, 0, 300]


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["tiles", "no_tiles"])
def products(request, monkeypatch):
    """Either type of products, on a processor of any kind."""
    multiply_in(monkeypatch, request.param)


def structure(seed=0):
    indptr = torch.tensor([0, *DEGREES]).cumsum(0)
    make = torch.Generator().manual_seed(seed)
    return Structure(indptr, torch.randint(0, 50, (int(indptr[-1]),), generator=make), 50)


def low(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def near(sums, exact, times=1, term=0.0):
    """Whether ``sums``, bfloat16, is ``exact`` up to so many roundings, the first before a term is
    added.
    """
    assert sums.dtype == torch.bfloat16
    return bool(
        (
            (sums.double() - exact).abs() <= 1.01 * ROUNDED * (times * exact.abs() + term) + 1e-6
        ).all()
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("call", [aggregate, aggregate_beside_own])
@pytest.mark.parametrize("width", [3, 16, 47, 100])
def test_sums_and_gradients_against_float64(width, call, reduce, weighted):
    edges = structure()
    h = low(50, width)
    leaves = [h, low(len(structure().indices), seed=2)] if weighted else [h]
    results = []
    for exact in (False, True):
        inputs = [
            leaf.detach().to(torch.float64 if exact else leaf.dtype).requires_grad_()
            for leaf in leaves
        ]
        out = call(edges, inputs[0], reduce, *inputs[1:])
        out.backward(low(*out.shape, seed=3).to(out.dtype))
        results.append([out.detach(), *(leaf.grad for leaf in inputs)])
    (sums, *gradients), (exact_sums, *exact_gradients) = results
    assert near(sums, exact_sums)
    # with own rows, sums are rounded before gradients of own rows are added, which are 5 at most
    limits = () if call is aggregate else (2, 5.0)
    assert all(near(a, b, *limits) for a, b in zip(gradients, exact_gradients, strict=True))


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_sums_are_those_of_float32_rounded_once(reduce):
    edges = structure()
    h = low(50, 21)
    assert torch.equal(aggregate(edges, h, reduce), aggregate(edges, h.float(), reduce).bfloat16())


def test_every_rounding_to_the_nearest_number():
    """Ties, denormal numbers, overflow to infinity and NaN, as torch rounds them."""
    bits = torch.cat([torch.arange(0, 2**32, 65_521), torch.arange(2**16) * 2**16 + 2**15]).to(
        torch.int64
    )
    x = bits.where(bits < 2**31, bits - 2**32).to(torch.int32).view(torch.float32)
    each = Structure(torch.arange(len(x) + 1), torch.arange(len(x)), len(x))
    rounded = Spmm.apply(each, x.view(-1, 1), None, "v", torch.bfloat16)
    expected = (x.view(-1, 1) + 0.0).bfloat16()  # a sum begins at +0
    torch.testing.assert_close(rounded, expected, rtol=0, atol=0, equal_nan=True)
    assert rounded.isnan().any()
    assert rounded.isinf().any()


def test_threads_change_no_bit():
    make = torch.Generator().manual_seed(0)
    edges = Structure(
        torch.arange(0, 60_001, 12), torch.randint(0, 5000, (60_000,), generator=make), 5000
    )

    def run():
        x = low(5000, 64).requires_grad_()
        torch.manual_seed(7)
        out = dropout(aggregate(edges, x, "mean"), 0.3)
        out.backward(low(5000, 64, seed=4))
        return out.detach(), x.grad

    assert same_bits(for_threads((1, 2, 3), run))


@pytest.mark.parametrize("relu", [False, True])
def test_sparse_linear_maps_under_autocast(relu, products):
    make = torch.Generator().manual_seed(5)
    x = torch.randn(2100, 12, generator=make) * (torch.rand(2100, 12, generator=make) < 0.3)
    weight = torch.randn(9, 12, generator=make)
    bias = torch.randn(9, generator=make)
    results = []
    for exact in (False, True):
        dtype = torch.float64 if exact else torch.float32
        leaves = [leaf.detach().to(dtype).requires_grad_() for leaf in (weight, bias)]
        inputs = x.to(dtype).to_sparse_csr()
        with torch.autocast("cpu", torch.bfloat16, enabled=not exact):
            out = linear_sum((inputs, leaves[0]), bias=leaves[1], relu=relu)
            assert exact or out.dtype == torch.bfloat16
        out.backward(torch.ones_like(out) / 2100)
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    assert all(tensor.dtype == torch.float32 for tensor in results[0][1:])
    for low_bits, expected in zip(*results, strict=True):
        # a ReLU may flip near 0
        assert (low_bits.double() - expected).norm() <= 8 * ROUNDED * expected.norm()


def test_transforms_and_other_devices_have_no_maps_in_bfloat16():
    x = torch.ones(2, 3, dtype=torch.bfloat16)
    seen = []
    torch.vmap(lambda row: seen.append(in_bfloat16(row)) or row)(x)
    assert [in_bfloat16(x), *seen, *map(in_bfloat16, (x.to("meta"), x.float()))] == [
        True,
        False,
        False,
        False,
    ]


def test_sparse_gradients_are_summed_in_float32():
    x = torch.ones(1000, 1).to_sparse_csr()
    weight = torch.ones(4, 1, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        out = sparse_linear(x, weight)
    out.backward(torch.ones_like(out))
    assert weight.grad.tolist() == [[1000.0]] * 4  # no bfloat16: 1,001 is none either
    (gradient,) = torch.autograd.grad((sparse_linear(x, weight)).sum(), weight)
    assert torch.equal(gradient, weight.grad)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6])
def test_dropout_keeps_its_share_and_the_mean(rate):
    torch.manual_seed(3)
    n = 200_000
    h = torch.full((n // 100, 100), 3.0, dtype=torch.bfloat16, requires_grad=True)
    out = dropout(h, rate)
    kept = out != 0
    # the share of kept numbers is binomial: 5 standard deviations, beyond which 1 run in 1.7
    # million is
    assert abs(kept.double().mean().item() - (1 - rate)) < 5 * (rate * (1 - rate) / n) ** 0.5
    assert out[kept].unique().tolist() == [torch.tensor(3 / (1 - rate)).bfloat16()]
    (gradient,) = torch.autograd.grad(out, h, torch.ones_like(out), create_graph=True)
    assert torch.equal(gradient != 0, kept)
    for shift in (1, 100, 128, 512):  # places are independent: also those that share a hash
        both = (kept.view(-1)[:-shift] & kept.view(-1)[shift:]).double().mean().item()
        assert abs(both - (1 - rate) ** 2) < 6 * (1 - rate) / n**0.5


def test_dropout_is_decided_by_torchs_random_state():
    h = torch.ones(300, 7, dtype=torch.bfloat16)
    torch.manual_seed(1)
    first = dropout(h, 0.5)
    second = dropout(h, 0.5)
    torch.manual_seed(1)
    assert torch.equal(first, dropout(h, 0.5))
    assert not torch.equal(first, second)
    state = torch.get_rng_state()
    assert torch.equal(dropout(h, 0.0), h)
    assert torch.equal(torch.get_rng_state(), state)
    assert dropout(h[:0], 0.5).shape == (0, 7)
    assert not dropout(h, 1.0).any()


@pytest.mark.parametrize("rows", [0, 1, 9, 2047, 4173])
def test_products_of_any_number_of_rows_against_float64(rows, products):
    x = low(rows, 6)
    w = low(5, 6, seed=2)
    bias = low(5, seed=3)
    g = low(rows, 5, seed=4)
    results = []
    for exact in (False, True):
        leaves = [
            part.detach().to(torch.float64 if exact else part.dtype).requires_grad_()
            for part in (x, w, bias)
        ]
        with torch.autocast("cpu", torch.bfloat16, enabled=not exact):
            out = linear_sum((leaves[0], leaves[1]), bias=leaves[2])
        out.backward(g.to(out.dtype))
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    x, w, bias, g = (part.detach().double().abs() for part in (x, w, bias, g))
    sizes = x @ w.t() + bias, g @ w, g.t() @ x, g.sum(0)  # what is added up, without signs
    for product, expected, size in zip(*results, sizes, strict=True):
        assert product.shape == expected.shape
        assert bool(((product.double() - expected).abs() <= 2 * ROUNDED * size + 1e-6).all())


# ---- bias, ReLU and dropout of linear maps, which are one pass: against the same steps one after
# another


def leaves(rows, width, dtype=torch.float32):
    make = torch.Generator().manual_seed(rows + width)
    shapes = (rows, 12), (width, 12), (width,)
    return [torch.randn(shape, generator=make).to(dtype).requires_grad_() for shape in shapes]


def mapped(x, weight, bias, **options):
    with torch.autocast("cpu", torch.bfloat16):
        return linear_sum((x, weight), bias=bias, **options)


@pytest.mark.parametrize("rows", [1, 50, 3100])
@pytest.mark.parametrize("width", [1, 3, 16, 47, 64])
def test_results_and_gradients_are_those_of_the_steps(width, rows, products):
    results = []
    for together in (True, False):
        torch.manual_seed(7)
        inputs = leaves(rows, width)
        out = (
            mapped(*inputs, relu=True, dropout=0.4)
            if together
            else dropout(mapped(*inputs, relu=True), 0.4)
        )
        out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).bfloat16())
        results.append([out.detach(), *(leaf.grad for leaf in inputs)])
    assert torch.equal(results[0][0] > 0, results[1][0] > 0)
    for fused, expected in zip(*results, strict=True):
        assert fused.dtype == expected.dtype
        assert (fused - expected).abs().max() <= 4 * ROUNDED * expected.abs().max()


def test_a_bias_is_its_gradient_summed_in_float32(products):
    """Of 3,000 ones, of which bfloat16 could not add more than 256."""
    bias = torch.ones(5, requires_grad=True)
    mapped(torch.zeros(3000, 4), torch.zeros(5, 4), bias, relu=True).backward(
        torch.ones(3000, 5).bfloat16()
    )
    assert bias.grad.tolist() == [3000.0] * 5


def test_what_is_no_number_stays_none_in_bfloat16():
    x = torch.tensor([[float("nan")], [1.0]])
    out = mapped(x, torch.ones(17, 1), torch.zeros(17), relu=True)
    assert out.isnan().all(1).tolist() == [True, False]


def test_second_gradients_are_those_of_the_steps(products):
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


def test_threads_change_nothing_of_dropped_maps(products):
    def run():
        torch.manual_seed(2)
        # quarters, whose sums are exact: torch may add those of a product in another order for
        # other threads
        x, weight, bias = (
            (4 * leaf.detach()).round().div(4).requires_grad_() for leaf in leaves(33_000, 40)
        )
        out = mapped(x.detach(), weight, bias, relu=True, dropout=0.3)
        out.backward(torch.ones_like(out))
        return [out.detach(), bias.grad]

    assert same_bits(for_threads((1, 2, 3), run))


def test_float32_is_dropped_by_torch():
    x, weight, bias = leaves(30, 5)
    torch.manual_seed(4)
    dropped = linear_sum((x, weight), bias=bias, relu=True, dropout=0.3)
    torch.manual_seed(4)
    assert torch.equal(
        dropped, nn.functional.dropout(linear_sum((x, weight), bias=bias, relu=True), 0.3)
    )


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_nothing_or_everything_is_dropped(rate):
    x, weight, bias = leaves(600, 20)
    out = mapped(x, weight, bias, relu=True, dropout=rate)
    out.sum().backward()
    kept = mapped(x, weight, bias, relu=True)
    assert torch.equal(out, kept if rate == 0 else torch.zeros_like(kept))
    assert bool(bias.grad.any()) == (rate == 0)
