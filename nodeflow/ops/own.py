"""Rows that are read twice: by the sums over the edges, and by the nodes themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nodeflow.ops.messages import aggregate
from nodeflow.structure import Structure


def aggregate_with_own(
    structure: Structure, h: Tensor, reduce: str = "sum", weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return ``(h[:num_dst], aggregate(structure, h, reduce, weight))``.

    For destinations that are the first sources. The gradient of the first is added into that of the second, where the
    two operations apart would fill a matrix of the size of ``h`` with zeros, and add up two of these. Arguments and
    errors of ``aggregate``.
    """
    if not (torch.is_grad_enabled() and h.requires_grad) or torch.compiler.is_compiling():
        return h[: structure.num_dst], aggregate(structure, h, reduce, weight)
    own, rows = _Fork.apply(h, structure.num_dst)
    return own, aggregate(structure, rows, reduce, weight)


class _Fork(Function):
    """``(h [n, ...], count)`` to ``(h[:count], h)``; the second must go to one operation that makes its gradient."""

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
