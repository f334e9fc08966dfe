"""Rows that are read twice: by the sums over the edges, and by the nodes themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

import nodeflow.ops._compiled as native
from nodeflow.ops._autograd import EdgeDot, Spmm
from nodeflow.ops._structure import Structure


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
        return _added(rows, own), None


def own_beside_sum(structure: Structure, h: Tensor, weight: Tensor | None, reduce: str) -> Tensor | None:
    """Return ``[num_dst, 2 * width]``: the first rows of ``h``, and beside each what is summed up for it.

    For destinations that are the first sources. None for what the compiled loops do not take in this form: ``h`` that
    is no matrix, weights that are no vector, another ``reduce`` than "sum" and "mean".
    """
    simple = h.layout == torch.strided and h.ndim == 2 and len(h) == structure.num_src and reduce in ("sum", "mean")
    weighted = weight is None or (
        weight.layout == torch.strided and weight.shape == (structure.num_edges,) and weight.dtype == h.dtype
    )
    if not (simple and weighted and native.is_native(h, weight)) or torch.compiler.is_compiling():
        return None
    out: Tensor = _OwnBesideSum.apply(structure, h, weight, reduce == "mean")
    return out


class _OwnBesideSum(Function):
    """``(structure, h [num_src, width], w [E] or None, mean)`` to ``[num_dst, 2 * width]``."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, h: Tensor, w: Tensor | None, mean: bool) -> Tensor:
        ctx.structure, ctx.width, ctx.mean = structure, h.shape[1], mean
        ctx.save_for_backward(h if ctx.needs_input_grad[2] else None, w)
        return native.weighted_sum(structure, "v", h, w, mean, own=True)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), (h, w) = grads, ctx.saved_tensors
        structure: Structure = ctx.structure
        own, total = g[:, : ctx.width], g[:, ctx.width :]
        if ctx.mean:
            total = total / structure.in_degrees.clamp(min=1).to(g.dtype).unsqueeze(1)
        grad_h = Spmm.apply(structure, total, w, "u") if ctx.needs_input_grad[1] else None
        if grad_h is not None:
            grad_h = _added(grad_h, own)
        grad_w = EdgeDot.apply(structure, total, h, None) if ctx.needs_input_grad[2] else None
        return None, grad_h, grad_w, None


def _added(rows: Tensor, own: Tensor) -> Tensor:
    """Add ``own`` to the first rows, in place where nobody else has seen them."""
    if torch.is_grad_enabled():  # a gradient of this gradient may be asked for
        return torch.cat([rows[: len(own)] + own, rows[len(own) :]])
    rows[: len(own)] += own
    return rows
