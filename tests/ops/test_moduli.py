"""Sums of the moduli of differences of complex rows: values and gradients of any order against
torch's own.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nodeflow.ops import sum_moduli


def plain(x: Tensor, y: Tensor) -> Tensor:
    a, b = x.unsqueeze(1).chunk(2, 2)
    c, d = y.chunk(2, 1)
    return ((a - c).square() + (b - d).square()).sqrt().sum(2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("sizes", [(3, 5), (0, 4), (70, 1)])
def test_values_and_gradients_of_any_order(sizes, needs, dtype):
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randn(size, 6, generator=generator).to(dtype) for size in sizes]
    results = []
    for call in (lambda x, y: sum_moduli(x, y, plain), plain):
        inputs = [row.clone().requires_grad_(need) for row, need in zip(rows, needs, strict=True)]
        wanted = [row for row in inputs if row.requires_grad]
        out = call(*inputs)
        results.append([out.detach()])
        if wanted:
            first = torch.autograd.grad(out.square().sum(), wanted, retain_graph=True)
            again = torch.autograd.grad(out.square().sum(), wanted, create_graph=True)
            second = torch.autograd.grad(sum(g.square().sum() for g in again), wanted)
            results[-1] += [*first, *(g.detach() for g in again), *second]
    for own, expected in zip(*results, strict=True):
        torch.testing.assert_close(own, expected)
