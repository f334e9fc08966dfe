"""The type of products of bfloat16: from facts about the processor, the same in every run."""

from __future__ import annotations

import pytest
import torch
from _support.ops_reference import multiply_in, set_instructions
from torch.nn.functional import linear

from nodeflow.ops import linear_sum, product_type, sparse_linear


@pytest.mark.parametrize(
    ("instructions", "variables", "expected"),
    [
        ("tiles", {}, torch.bfloat16),
        ("pairs", {}, torch.bfloat16),
        ("neither", {}, torch.float32),
        ("tiles", {"ONEDNN_MAX_CPU_ISA": "AVX2"}, torch.float32),
        ("pairs", {"DNNL_MAX_CPU_ISA": "AVX512_CORE_VNNI"}, torch.float32),
    ],
)
def test_instructions_that_multiply_bfloat16_fast(
    instructions,
    variables,
    expected,
    monkeypatch,
):
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    set_instructions(monkeypatch, instructions)
    assert product_type() == expected


def test_products_in_float32_round_the_result_alone(monkeypatch):
    """Rows and weights of float32 are not rounded; the plain product is the reference."""
    multiply_in(monkeypatch, torch.float32)
    make = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, generator=make) for shape in ((3000, 40), (24, 40), (24,))
    )
    with torch.autocast("cpu", torch.bfloat16):
        product = linear_sum((x, weight))
        dense = sparse_linear(x, weight, bias)
    assert torch.equal(product, linear(x, weight).bfloat16())
    exact = linear(x, weight, bias)
    assert (dense.float() - exact).abs().max() <= 2.0**-7 * exact.abs().max()


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_dense_maps_and_sums_of_one_map_are_the_same(kind, monkeypatch):
    multiply_in(monkeypatch, kind)
    x = torch.randn(70, 5).bfloat16()
    weight = torch.randn(3, 5).bfloat16()
    assert torch.equal(sparse_linear(x, weight), linear_sum((x, weight)))
    assert sparse_linear(x.view(7, 10, 5), weight).shape == (7, 10, 3)  # by torch
