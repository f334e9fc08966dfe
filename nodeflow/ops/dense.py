"""Sums of linear maps: what a convolution ends with."""

from __future__ import annotations

from torch import Tensor

from nodeflow.ops.linear import sparse_linear


def linear_sum(*pairs: tuple[Tensor, Tensor], bias: Tensor | None = None) -> Tensor:
    """Return ``x1 @ w1.T + x2 @ w2.T + ... + bias``, dense ``[n, out]``.

    Args:
        pairs: one or more ``(x, w)``: rows ``[n, k]``, dense or sparse CSR, and a weight ``[out, k]``.
        bias: ``[out]`` or None.

    Raises what ``sparse_linear`` raises.
    """
    (x, w), *others = pairs
    out = sparse_linear(x, w, bias)
    for x, w in others:
        out = out + sparse_linear(x, w)
    return out
