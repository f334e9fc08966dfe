"""Sums of absolute values of complex differences between all pairs of two sets of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.types import Array
from nodeflow.ops._autograd import Op
from nodeflow.ops._compiled import even_ranges, in_threads

Plain = Callable[[Tensor, Tensor], Tensor]


def sum_moduli(x: Tensor, y: Tensor, plain: Plain) -> Tensor:
    """Return ``sum_j |x_ij - y_kj|`` ``[n, k]`` for rows ``[n, d]`` and ``[k, d]``, real parts
    before imaginary ones.

    By a compiled loop, without memory for pairs, for float32 and float64 on a CPU. Elsewhere, and
    for gradients of gradients, by ``plain``, the same of torch operations.
    """
    is_plain = x.device.type != "cpu" or x.dtype != y.dtype or torch.compiler.is_compiling()
    if is_plain or x.dtype not in (torch.float32, torch.float64):
        return plain(x, y)
    return _Moduli.apply(x, y, plain)


class _Moduli(Op):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, plain: Plain) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.plain = plain
        a = _columns(x)
        b = _columns(y)
        out = np.zeros((len(x), len(y)), a.dtype)
        half = len(a) // 2
        in_threads(
            lambda first, last: kernels.distance.add_moduli(a, b, half, out, first, last),
            even_ranges(len(x), b.size),
        )
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, y = ctx.saved_tensors
        needed = ctx.needs_input_grad[:2]
        # a gradient of this gradient may be asked for
        if torch.is_grad_enabled():
            with torch.enable_grad():
                wanted = [tensor for tensor, need in zip((x, y), needed, strict=True) if need]
                gradients = iter(
                    torch.autograd.grad(ctx.plain(x, y), wanted, grads[0], create_graph=True)
                )
            return *(next(gradients) if need else None for need in needed), None
        grad_x = grad_y = None
        if needed[0]:
            grad_x = _gradient(x, y, grads[0])
        if needed[1]:
            grad_y = _gradient(y, x, grads[0].T)
        return grad_x, grad_y, None


def _gradient(x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    a = _columns(x)
    b = _columns(y)
    w = _columns(weights)
    out = np.zeros_like(a)
    half = len(a) // 2
    least = a.dtype.type(np.finfo(a.dtype).tiny)
    in_threads(
        lambda first, last: kernels.distance.add_gradients(a, b, half, w, least, out, first, last),
        even_ranges(half, w.size),
    )
    return torch.from_numpy(out).T


def _columns(rows: Tensor) -> Array:
    return rows.detach().T.contiguous().numpy()
