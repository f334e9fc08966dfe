"""Sums of absolute values of complex differences between all pairs of two sets of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from nodeflow import _kernels as kernels
from nodeflow._base.types import Array
from nodeflow._runtime.threads import run_all

Plain = Callable[[Tensor, Tensor], Tensor]


def sum_moduli(x: Tensor, y: Tensor, plain: Plain) -> Tensor:
    """Return ``sum_j |x_ij - y_kj|`` ``[n, k]`` for rows ``[n, d]`` and ``[k, d]``, real parts before imaginary ones.

    By a compiled loop, without memory for pairs, for float32 and float64 on a CPU. Elsewhere, and for gradients of
    gradients, by ``plain``, the same of torch operations.
    """
    native = x.device.type == "cpu" and x.dtype == y.dtype and x.dtype in (torch.float32, torch.float64)
    if not native or torch.compiler.is_compiling():
        return plain(x, y)
    moduli: Tensor = _Moduli.apply(x, y, plain)
    return moduli


class _Moduli(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, plain: Plain) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.plain = plain
        out = np.zeros((len(x), len(y)), x.detach().numpy().dtype)
        a, b = _turned(x), _turned(y)
        cuts = _cuts(len(x))

        def run(piece: int) -> None:
            kernels.distance.add_moduli(a, b, len(a) // 2, out, cuts[piece], cuts[piece + 1])

        run_all(run, len(cuts) - 1)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, y = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of this gradient may be asked for
            with torch.enable_grad():
                out = ctx.plain(x, y)
                wanted = [t for t, needed in zip((x, y), ctx.needs_input_grad, strict=False) if needed]
                gradients = iter(torch.autograd.grad(out, wanted, grads[0], create_graph=True))
            return *(next(gradients) if needed else None for needed in ctx.needs_input_grad[:2]), None
        first = _gradient(x, y, grads[0]) if ctx.needs_input_grad[0] else None
        second = _gradient(y, x, grads[0].T) if ctx.needs_input_grad[1] else None
        return first, second, None


def _gradient(x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    a, b, w = _turned(x), _turned(y), _turned(weights)
    out, least = np.zeros_like(a), a.dtype.type(np.finfo(a.dtype).tiny)
    half = len(a) // 2
    cuts = _cuts(half)

    def run(piece: int) -> None:
        kernels.distance.add_gradients(a, b, half, w, least, out, cuts[piece], cuts[piece + 1])

    run_all(run, len(cuts) - 1)
    return torch.from_numpy(out).T


def _turned(rows: Tensor) -> Array:
    turned: Array = rows.detach().T.contiguous().numpy()
    return turned


def _cuts(size: int) -> list[int]:
    """Bounds of pieces of work: a few for every thread."""
    pieces = max(1, min(size, 4 * torch.get_num_threads()))
    return [size * i // pieces for i in range(pieces + 1)]
