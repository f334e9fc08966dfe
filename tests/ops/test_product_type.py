"""The type of products of bfloat16: from facts about the processor, the same in every run."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear

from nodeflow.ops import _products, linear_sum, sparse_linear
from nodeflow.ops._products import product_type


@pytest.mark.parametrize(
    ("tiles", "variables", "expected"),
    [
        (True, {}, torch.bfloat16),
        (False, {}, torch.float32),
        (True, {"ONEDNN_MAX_CPU_ISA": "AVX2"}, torch.float32),
        (True, {"ONEDNN_MAX_CPU_ISA": "avx512_core_bf16"}, torch.float32),
        (True, {"DNNL_MAX_CPU_ISA": "AVX512_CORE"}, torch.float32),
        (True, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_AMX"}, torch.bfloat16),
        (True, {"ONEDNN_MAX_CPU_ISA": "default"}, torch.bfloat16),
        (True, {"ONEDNN_MAX_CPU_ISA": "AVX10_1_512_AMX", "DNNL_MAX_CPU_ISA": "AVX2"}, torch.bfloat16),
        (False, {"ONEDNN_MAX_CPU_ISA": "ALL"}, torch.float32),
    ],
)
def test_only_tiles_multiply_bfloat16(
    tiles: bool, variables: dict[str, str], expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_products, "has_tiles", lambda: tiles)
    _products._multiplies.cache_clear()
    try:
        assert product_type() == expected
    finally:
        _products._multiplies.cache_clear()


def test_products_in_float32_round_the_result_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and weights of float32 are not rounded; the plain product is the reference."""
    monkeypatch.setattr(_products, "product_type", lambda *_: torch.float32)
    make = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(shape, generator=make) for shape in ((3000, 40), (24, 40), (24,)))
    with torch.autocast("cpu", torch.bfloat16):
        product, dense = linear_sum((x, weight)), sparse_linear(x, weight, bias)
    assert torch.equal(product, linear(x, weight).bfloat16())
    exact = linear(x, weight, bias)
    assert (dense.float() - exact).abs().max() <= 2.0**-7 * exact.abs().max()


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_dense_maps_and_sums_of_one_map_are_the_same(kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_products, "product_type", lambda *_: kind)
    x, weight = torch.randn(70, 5).bfloat16(), torch.randn(3, 5).bfloat16()
    assert torch.equal(sparse_linear(x, weight), linear_sum((x, weight)))
    assert sparse_linear(x.view(7, 10, 5), weight).shape == (7, 10, 3)  # by torch
