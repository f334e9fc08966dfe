"""The same numbers on a GPU as on the CPU."""

import pytest
import torch
from _support.ops_reference import MESSAGES, REDUCTIONS, SAMPLES, pieces_of, values

from nodeflow import ops

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


def on(device, edges, op, left, right, reduce):
    lhs = values(edges.rows(left), (3,), 1).to(device).requires_grad_()
    rhs = None if right is None else values(edges.rows(right), (3,), 2).to(device).requires_grad_()
    leaves = [leaf for leaf in (lhs, rhs) if leaf is not None]
    out = ops.message_reduce(edges.structure.to(device), op, left, lhs, right, rhs, reduce)
    each = ops.message(edges.structure.to(device), op, left, lhs, right, rhs)
    grads = torch.autograd.grad(out.sum() + each.square().sum(), leaves)
    return [tensor.detach().cpu() for tensor in (out, each, *grads)]


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize(("op", "left", "right"), MESSAGES)
def test_messages(op, left, right, reduce):
    for edges in SAMPLES.values():
        with pieces_of(7):
            results = [on(device, edges, op, left, right, reduce) for device in ("cpu", "cuda")]
        torch.testing.assert_close(*results)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_weighted_sums_softmax_and_dots(dtype):
    edges = SAMPLES["hub"]
    results = []
    for device in ("cpu", "cuda"):
        structure = edges.structure.to(device)
        h, w = (
            values(n, shape, n).to(device, dtype).requires_grad_()
            for n, shape in ((3, (8,)), (23, (1,)))
        )
        weight = ops.segment_softmax(structure, w)
        out = ops.aggregate(structure, h, "mean", weight)
        dots = ops.message(structure, "dot", "v", out, "u", h)
        dots.sum().backward()
        results.append([tensor.detach().cpu() for tensor in (weight, out, dots, h.grad, w.grad)])
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)


def test_dots_as_extremes_and_sums_of_ones():
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(50, (3000,), generator=generator)
    dst = torch.randint(40, (3000,), generator=generator)
    edges = type(SAMPLES["hub"])(50, 40, list(zip(src.tolist(), dst.tolist(), strict=True)))
    u = torch.randn(50, 100, generator=generator)
    v = torch.randn(40, 100, generator=generator)
    results = []
    for device in ("cpu", "cuda"):
        a, b = (x.clone().to(device).requires_grad_() for x in (u, v))
        ops.message_reduce(
            edges.structure.to(device), "dot", "u", a, "v", b, "max"
        ).sum().backward()
        results.append([a.grad.cpu(), b.grad.cpu()])
    torch.testing.assert_close(*results)
    ones = torch.ones(50, 2, dtype=torch.bfloat16, device="cuda")
    whole = type(SAMPLES["hub"])(50, 1, [(k % 50, 0) for k in range(1000)]).structure.to("cuda")
    assert ops.aggregate(whole, ones).tolist() == [[1000, 1000]]
