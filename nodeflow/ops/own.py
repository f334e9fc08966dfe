"""Rows that are read twice: by the sums over the edges, and by the nodes themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def own_and_all(h: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return ``(h[:count], h)``, for destinations that are the first sources.

    The gradient of the first is added into that of the second, where the two apart would fill a matrix of the size of
    ``h`` with zeros, and add up two of these. So the second must go to one operation only, and that must make its
    gradient anew, as sums over edges and linear maps do.
    """
    if not (torch.is_grad_enabled() and h.requires_grad) or torch.compiler.is_compiling():
        return h[:count], h
    own, rows = _Fork.apply(h, count)
    return own, rows


class _Fork(Function):
    """``(h [n, ...], count)`` to ``(h[:count], h)``."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, count: int) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.shape = h.shape
        return h[:count], h.view_as(h)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        own, rows = grads
        if own is None:
            return rows, None
        if rows is None:
            return torch.cat([own, own.new_zeros((ctx.shape[0] - len(own), *ctx.shape[1:]))]), None
        if torch.is_grad_enabled():  # a gradient of this gradient may be asked for
            return torch.cat([rows[: len(own)] + own, rows[len(own) :]]), None
        rows[: len(own)] += own  # nobody else has seen it
        return rows, None
