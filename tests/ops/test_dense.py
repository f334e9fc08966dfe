"""Sums of linear maps, and rows read twice, against the plain operations."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import Flow, create_node_flow, flow_from_edges
from nodeflow.ops import _linear as dense, linear_sum


def values(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def between(src: list[int], dst: list[int], low: list[int], high: list[int]) -> Flow:
    """The one flow of a NodeFlow with these parent nodes."""
    flow = flow_from_edges(src, dst, num_src=len(low), num_dst=len(high))
    return create_node_flow([flow], [low, high]).flows[0]


def plain(flat: list[Tensor], bias: Tensor | None, relu: bool) -> Tensor:
    out = sum(x @ w.t() for x, w in zip(flat[::2], flat[1::2], strict=True))
    out = out if bias is None else out + bias
    return out.clamp(min=0) if relu else out


def paired(flat: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


@given(
    rows=st.integers(0, 9), widths=st.lists(st.integers(0, 5), min_size=1, max_size=3), out=st.integers(1, 5),
    bias=st.booleans(), relu=st.booleans(), block=st.integers(1, 6),
)  # fmt: skip
@examples(60)
def test_values_and_gradients_are_those_of_the_plain_operations(
    rows, widths, out, bias, relu, block
):
    flat: list[Tensor] = []
    for i, width in enumerate(widths):
        flat += [values(rows, width, seed=i), values(out, width, seed=20 + i)]
    add = values(out, seed=50) if bias else None
    inputs = [tensor.requires_grad_() for tensor in [*flat, *([add] if add is not None else [])]]
    expected = plain(flat, add, relu)
    g = values(rows, out, seed=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "pieces", partial(dense.pieces, block=block))
        found = linear_sum(*paired(flat), bias=add, relu=relu)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs, g), torch.autograd.grad(expected, inputs, g)
    )


@pytest.mark.parametrize("relu", [False, True])
def test_gradients_of_any_order(relu):
    flat = [values(3, 2), values(4, 2, seed=1), values(3, 3, seed=2), values(4, 3, seed=3)]
    inputs = [tensor.requires_grad_() for tensor in [values(4, seed=4), *flat]]

    def call(bias: Tensor, *flat: Tensor) -> Tensor:
        return linear_sum(*paired(list(flat)), bias=bias, relu=relu)

    assert torch.autograd.gradcheck(call, inputs)
    assert torch.autograd.gradgradcheck(call, inputs)


def test_only_what_is_asked_for_gets_a_gradient():
    x = values(3, 2)
    w = values(4, 2).requires_grad_()
    y = values(3, 3).requires_grad_()
    v = values(4, 3)
    out = linear_sum((x, w), (y, v), bias=values(4), relu=True)
    for tensor, found in zip((w, y), torch.autograd.grad(out.sum(), (w, y)), strict=True):
        assert found.shape == tensor.shape
    with torch.no_grad():
        torch.testing.assert_close(
            linear_sum((x, w), (y, v), bias=values(4), relu=True), out.detach()
        )
    assert not linear_sum((x, w.detach())).requires_grad


def test_sparse_rows_and_other_types_take_the_way_of_sparse_linear():
    x = values(3, 2)
    w = values(4, 2, seed=1)
    v = values(4, 2, seed=2)
    csr = x.to_sparse_csr()
    expected = x @ w.t() + x @ v.t() + 1
    torch.testing.assert_close(
        linear_sum((csr, w), (x, v), bias=torch.ones(4, dtype=torch.float64)), expected
    )
    torch.testing.assert_close(linear_sum((csr, w), (csr, v), relu=True), (expected - 1).relu())
    with torch.autocast("cpu", torch.bfloat16):
        low = linear_sum((x.float(), w.float()), (x.float(), v.float()))
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.double(), expected - 1, rtol=0.05, atol=0.05)
    jacobian = torch.func.jacrev(lambda w: linear_sum((x, w), (x, v), relu=True))(w)
    torch.testing.assert_close(
        jacobian, torch.func.jacrev(lambda w: (x @ w.t() + x @ v.t()).relu())(w)
    )


@pytest.mark.parametrize("autocast", [False, True])
def test_one_function_takes_matrices_of_one_type_and_those_that_autocast_takes(
    autocast,
):
    types = (torch.float32, torch.bfloat16, torch.float64)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for dtype in types:
            x = torch.randn(5, 3, dtype=dtype)
            w = torch.randn(4, 3, dtype=dtype, requires_grad=True)
            out = linear_sum((x, w))
            takes = not autocast or dtype != torch.float64
            assert (type(out.grad_fn).__name__ == "_LinearSumBackward") == takes
            assert out.dtype == (torch.bfloat16 if autocast and takes else dtype)
        if autocast:
            mixed = linear_sum((torch.ones(5, 3), torch.ones(4, 3).bfloat16().requires_grad_()))
            assert type(mixed.grad_fn).__name__ == "_LinearSumBackward"
            assert (
                torch.func.vmap(lambda row: linear_sum((row, torch.ones(4, 3))))(
                    torch.ones(2, 5, 3)
                )
                .eq(3)
                .all()
            )


@pytest.mark.parametrize("rows", [1000, 1024, 1031])
def test_gradients_of_many_rows(rows):
    x = values(rows, 3)
    w = values(4, 3).requires_grad_()
    g = values(rows, 4)
    (found,) = torch.autograd.grad(linear_sum((x, w)), w, g)
    torch.testing.assert_close(found, g.t() @ x)
    assert found.is_contiguous()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, on its first dual number
def test_derivatives_forwards():
    x = values(3, 2)
    w = values(4, 2)
    t = values(3, 2, seed=5)
    with torch.autograd.forward_ad.dual_level():
        out = linear_sum((torch.autograd.forward_ad.make_dual(x, t), w), (x, w), relu=True)
        tangent = torch.autograd.forward_ad.unpack_dual(out).tangent
    torch.testing.assert_close(tangent, (t @ w.t()) * (2 * x @ w.t() > 0))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("order", [[7, 8], [8, 7]])
def test_own_rows_beside_sums(reduce, order):
    """[7, 8] are the first sources, [8, 7] are not: both ways give what the two operations give."""
    flow = between([1, 2, 3, 0, 2], [0, 0, 0, 1, 1], [7, 8, 9, 10], order)
    weight = values(5, seed=3)
    h = values(4, 3).requires_grad_()

    def together(h: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        own, rows = flow.share_dst(h)
        return own, flow.aggregate(rows, reduce, weight=weight)

    own, total = together(h, weight)
    assert torch.equal(own, flow.take_dst(h))
    assert torch.equal(total, flow.aggregate(h, reduce, weight=weight))
    assert torch.autograd.gradcheck(together, (h, weight.requires_grad_()))
    assert torch.autograd.gradgradcheck(together, (h, weight))
    for outputs in ([own], [total], [own, total]):
        ones = [torch.ones_like(out) for out in outputs]
        plain = [flow.take_dst(h), flow.aggregate(h, reduce, weight=weight)]
        picked = [plain[0] if out is own else plain[1] for out in outputs]
        (found,) = torch.autograd.grad(outputs, h, ones, retain_graph=True)
        (again,) = torch.autograd.grad(outputs, h, ones, create_graph=True)  # made in another way
        (expected,) = torch.autograd.grad(picked, h, ones)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(again, expected)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("order", [[7, 8, 9], [8, 7, 9]])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 5, 16, 41])
def test_own_rows_and_sums_in_one_matrix(reduce, order, weighted, width):
    flow = between([1, 2, 3, 0, 2], [0, 0, 0, 1, 1], [7, 8, 9, 10], order)  # the last has no edges
    weight = values(5, seed=3).requires_grad_() if weighted else None
    h = values(4, width).requires_grad_()
    g = values(3, 2 * width, seed=4)
    inputs = [h] if weight is None else [h, weight]
    expected = torch.cat([flow.take_dst(h), flow.aggregate(h, reduce, weight=weight)], 1)
    found = flow.aggregate_beside_own(h, reduce, weight=weight)
    assert torch.equal(found, expected)
    assert found.is_contiguous()
    for options in ({"retain_graph": True}, {"create_graph": True}):
        torch.testing.assert_close(
            *(torch.autograd.grad(out, inputs, g, **options) for out in (found, expected))
        )
    if width == 1:
        call = (
            lambda h, *w: flow.aggregate_beside_own(h, reduce, weight=w[0] if w else None),
            inputs,
        )
        assert torch.autograd.gradcheck(*call)
        assert torch.autograd.gradgradcheck(*call)


@pytest.mark.parametrize("beside", [False, True])
def test_gradients_that_others_hold_stay_as_they_are(beside):
    flow = between([0, 1, 2], [0, 0, 1], [7, 8, 9], [7, 8])
    h, skip, factors = (values(3, 2, seed=seed).requires_grad_() for seed in range(3))
    outs = (flow.aggregate_beside_own(h),) if beside else flow.share_dst(h)
    grads = [values(*out.shape) for out in outs]
    before = [grad.clone() for grad in grads]
    torch.autograd.grad(outs, h, grads, retain_graph=True)
    assert all(map(torch.equal, grads, before))
    if not beside:
        own, rows = outs
        # one gradient for rows and skip
        total = (3 * own).sum() + ((rows + skip) * factors.detach()).sum()
        found = torch.autograd.grad(total, (h, skip), retain_graph=True)
        assert found[1].equal(factors.detach())
        torch.testing.assert_close(found[0], factors.detach() + torch.tensor([[3.0], [3.0], [0.0]]))
        assert torch.autograd.grad(own.sum() + rows.sum(), h)[0].tolist() == [
            [2, 2],
            [2, 2],
            [1, 1],
        ]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_own_rows_beside_no_sums_and_in_other_types():
    flow = between([], [], [7, 8], [7])
    assert flow.aggregate_beside_own(torch.tensor([[1.0], [2.0]])).tolist() == [[1.0, 0.0]]
    assert flow.aggregate_beside_own(torch.ones(2, 0)).shape == (1, 0)
    assert flow.aggregate_beside_own(torch.ones(2, 3, 2, dtype=torch.bfloat16)).shape == (1, 6, 2)
    for call in (flow.aggregate_beside_own, flow.share_dst):
        with pytest.raises(ValueError, match="2 rows"):
            call(torch.ones(3, 1))
    with pytest.raises(TypeError, match="sparse"):
        flow.aggregate_beside_own(torch.eye(2).to_sparse_csr())


def test_biases_of_any_layout():
    x = torch.eye(3)
    w = torch.zeros(3, 3)
    for bias in (torch.arange(6.0)[::2], torch.ones(1).expand(3)):
        assert linear_sum((x, w), bias=bias).tolist() == [bias.tolist()] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_no_number_stays_none(dtype):
    x = torch.tensor([[1.0, float("nan")], [1.0, 2.0], [float("inf"), 1.0]], dtype=dtype)
    found = linear_sum((x, torch.ones(20, 2, dtype=dtype)), relu=True)
    assert found.isnan().all(1).tolist() == [True, False, False]
    assert found.isinf().all(1).tolist() == [False, False, True]


def test_a_second_backward_pass_finds_the_gradient_unharmed():
    flow = between([1, 2], [0, 0], [7, 8, 9], [7])
    h = values(3, 2).requires_grad_()
    own, rows = flow.share_dst(h)
    out = (own + flow.aggregate(rows)).sum()
    out.backward(retain_graph=True)
    first = h.grad.clone()
    h.grad = None
    out.backward()
    assert torch.equal(h.grad, first)
    assert first.tolist() == [[1.0, 1.0]] * 3
