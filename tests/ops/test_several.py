"""Several reductions at once, and variances, against dense float64 references."""

import numpy as np
import pytest
import torch
from _support.ops_reference import Edges, reduced, sum_with_torch, values
from torch.autograd import gradcheck, gradgradcheck

from nodeflow import flow_from_edges

NAMES = ["sum", "mean", "max", "min", "var", "std", "prod"]
# 2 has no edges, 1 has one
EDGES = Edges(5, 4, [(0, 0), (1, 0), (1, 0), (2, 0), (3, 1), (4, 3), (4, 3), (0, 3)])


@pytest.fixture
def flow():
    src, dst = zip(*EDGES.edges, strict=True)
    return flow_from_edges(src, dst, num_src=5, num_dst=4)


def dense(h, name):
    return reduced(EDGES, h[[src for src, _ in EDGES.edges]], name)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("shape", [(), (3,), (17,), (2, 20)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_against_numpy(flow, monkeypatch, compiled, shape, dtype):
    if not compiled:
        sum_with_torch(monkeypatch)
    h = values(5, shape).to(dtype)
    results = flow.aggregate(h, NAMES)
    assert isinstance(results, tuple)
    close = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 1e-2}[dtype]
    for name, out in zip(NAMES, results, strict=True):
        assert out.dtype == dtype
        np.testing.assert_allclose(
            out.double(), dense(h.double().numpy(), name), rtol=close, atol=close
        )
        torch.testing.assert_close(out, flow.aggregate(h, name))
        assert not torch.signbit(out[2]).any()


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "names", [["mean", "max", "std"], ["var", "min"], ["sum", "std", "max", "min"], ["std"]]
)
def test_gradients_once_and_twice(flow, names):
    h = values(5, (2,)).requires_grad_()

    def call(h):  # a destination with one edge, or with none, has no second derivative of std
        return tuple(out[[0, 3]] for out in flow.aggregate(h, names))

    assert gradcheck(call, (h,))
    assert gradgradcheck(call, (h,))


def test_gradients_are_those_of_separate_calls(flow):
    h = values(5, (19,)).round().requires_grad_()  # extremes tie
    together = sum(((k + 1) * out).sum() for k, out in enumerate(flow.aggregate(h, NAMES)))
    apart = sum(((k + 1) * flow.aggregate(h, [name])[0]).sum() for k, name in enumerate(NAMES))
    torch.testing.assert_close(*(torch.autograd.grad(out, h)[0] for out in (together, apart)))


@pytest.mark.parametrize("name", ["std", "var"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
def test_equal_rows_have_finite_gradients(flow, name, value):
    """0.1 + 0.1 + 0.1 is not 3 times 0.1: the variance is not exactly 0 there, and its root's
    gradient is bounded.
    """
    h = torch.full((5, 3), value).requires_grad_()
    out = flow.aggregate(h, name)
    assert out.abs().max() < 1e-2
    (grad,) = torch.autograd.grad(out.sum(), h)
    assert grad.isfinite().all()
    assert grad.abs().max() <= 4
    if value == 0:
        assert not grad.any()


def test_no_cancellation_far_from_zero(flow):
    h = values(5, (3,)) + 1e3
    np.testing.assert_allclose(
        flow.aggregate(h.float(), "var"), dense(h.float().double().numpy(), "var"), rtol=1e-3
    )


def test_narrow_numbers_are_added_in_float32():
    flow = flow_from_edges(range(1000), [0] * 1000, num_src=1000, num_dst=1)
    h = torch.ones(1000, 1, dtype=torch.bfloat16)
    h[::2] = 3
    assert [out.item() for out in flow.aggregate(h, ["mean", "var", "std"])] == [2, 1, 1]


def test_nan_stays_nan(flow):
    h = torch.ones(5, 1)
    h[1] = float("nan")
    assert all(
        out[0].isnan().all() for out in flow.aggregate(h, ["mean", "max", "min", "var", "std"])
    )


def test_several_with_a_weight(flow):
    h = values(5, (2,))
    weight = values(8, ())
    for name, out in zip(
        ["sum", "max"], flow.aggregate(h, ["sum", "max"], weight=weight), strict=True
    ):
        assert torch.equal(out, flow.aggregate(h, name, weight=weight))
