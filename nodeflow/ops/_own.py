"""Each destination's own row beside the reduced rows of its neighbours, with one shared gradient.

Autograd alone would fill a second matrix of the size of the rows with zeros, and add the two.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow._base.checks import check_type
from nodeflow.ops._aggregate import aggregate
from nodeflow.ops._autograd import EdgeDot, Op, Recorded, Spmm, divided
from nodeflow.ops._edgewise import check_rows
from nodeflow.ops._structure import Structure


def aggregate_beside_own(structure: Structure, h: Tensor, reduce: str = "sum", weight: Tensor | None = None) -> Tensor:
    """Return every destination's own row beside ``aggregate(structure, h, reduce, weight)``.

    The destinations must be the first sources, so their own rows are ``h[:num_dst]``. The result is one matrix
    ``[num_dst, 2 * width, ...]``, own rows first. Arguments and errors are those of ``aggregate``;
    more destinations than sources raise ValueError.

    >>> structure = Structure(torch.tensor([0, 2]), torch.tensor([1, 2]), num_src=3)
    >>> aggregate_beside_own(structure, torch.tensor([[1.0], [2.0], [4.0]]))
    tensor([[1., 6.]])
    """
    check_type(reduce, "reduce", str, "the name of one reduction here")
    h = check_rows(structure, "u", h, "h")
    if structure.num_dst > structure.num_src:
        raise ValueError(f"the destinations must be the first sources, but {structure} has more destinations")
    weighted = weight is None or (
        weight.layout == torch.strided and weight.shape == (structure.num_edges,) and weight.dtype == h.dtype
    )
    simple = h.ndim == 2 and reduce in ("sum", "mean") and weighted
    if simple and native.is_summed(h, weight) and not torch.compiler.is_compiling():
        return _OwnBesideSum.apply(structure, h, weight, reduce == "mean")
    own, rows = rows_beside_own(h, structure.num_dst)
    return torch.cat([own, aggregate(structure, rows, reduce, weight)], 1)


def rows_beside_own(h: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return ``(h[:count], h)``, whose gradients are made in one matrix.

    The second result must be read by one operation only, which makes its gradient anew, as sums over edges and linear
    maps do.
    """
    if not (torch.is_grad_enabled() and h.requires_grad) or torch.compiler.is_compiling():
        return h[:count], h
    own, rows = _ShareOwn.apply(h, count)
    return own, rows


class _ShareOwn(Recorded):
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
        # not in place: where the rows were added to others, their gradient is that of the others too
        return torch.cat([rows[: len(own)] + own, rows[len(own) :]]), None


class _OwnBesideSum(Op):
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
            total = divided(total, structure)
        grad_h = grad_w = None
        if ctx.needs_input_grad[1]:
            grad_h = Spmm.apply(structure, total, w, "u", False, g.dtype)
            grad_h[: len(own)] += own
        if ctx.needs_input_grad[2]:
            grad_w = EdgeDot.apply(structure, total, h, None)
        return None, grad_h, grad_w, None
