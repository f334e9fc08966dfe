"""Reductions of the rows of sources: one, several from one reading, or beside a destination's row.

A destination's own row and the reduced ones share one gradient. Autograd alone would fill a second
matrix of the size of the rows with zeros, and add the two.
"""

from __future__ import annotations

from typing import Any, overload

import torch
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow._core.base.checks import check_one_of, check_type
from nodeflow.ops._autograd import EdgeDot, Op, Recorded, Spmm, divided
from nodeflow.ops._chunked import read_once
from nodeflow.ops._edgewise import check_rows
from nodeflow.ops._messages import message_reduce
from nodeflow.ops._reductions import OF_MESSAGES, REDUCTIONS
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque


@overload
def aggregate(
    structure: Structure, h: Tensor, reduce: str = ..., weight: Tensor | None = ...
) -> Tensor: ...


@overload
def aggregate(
    structure: Structure,
    h: Tensor,
    reduce: list[str] | tuple[str, ...],
    weight: Tensor | None = ...,
) -> tuple[Tensor, ...]: ...


@opaque
def aggregate(
    structure: Structure,
    h: Tensor,
    reduce: str | list[str] | tuple[str, ...] = "sum",
    weight: Tensor | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Reduce the rows of each destination's sources: ``h`` ``[num_src, ...]`` to
    ``[num_dst, ...]``.

    Arguments, results and errors are those of ``Flow.aggregate``. Several reductions without a
    weight read the rows together ("prod" reads them alone). "var" and "std" of float16 and bfloat16
    are made in float32 and rounded once. See ``message_reduce`` for the gradients and types of the
    others.

    >>> structure = Structure(torch.tensor([0, 2, 3, 3]), torch.tensor([0, 1, 1]), num_src=2)
    >>> mean, std = aggregate(structure, torch.tensor([[1.0], [2.0]]), ["mean", "std"])
    >>> mean.squeeze(1), std.squeeze(1)
    (tensor([1.5000, 2.0000, 0.0000]), tensor([0.5000, 0.0000, 0.0000]))
    """
    if isinstance(reduce, str):
        if reduce in OF_MESSAGES:
            return _single(structure, h, reduce, weight)
        return _several(structure, h, (reduce,), weight)[0]
    check_type(reduce, "reduce", list | tuple, "a name or a list of names")
    if not reduce:
        raise ValueError("reduce must name one reduction at least, got an empty list")
    return _several(structure, h, tuple(reduce), weight)


def _single(structure: Structure, h: Tensor, reduce: str, weight: Tensor | None) -> Tensor:
    if weight is None:
        return message_reduce(structure, "copy", "u", h, None, None, reduce, names=("h", ""))
    return message_reduce(structure, "mul", "u", h, "e", weight, reduce, names=("h", "weight"))


def _several(
    structure: Structure, h: Tensor, names: tuple[str, ...], weight: Tensor | None
) -> tuple[Tensor, ...]:
    """Return each reduction; sums, extremes and deviations are read from the rows together."""
    for name in names:
        check_one_of(name, "reduce", REDUCTIONS)
    of_rows = [name for name in names if name not in OF_MESSAGES]
    if of_rows and weight is not None:
        raise ValueError(
            f"{of_rows[0]!r} takes no weight, because a weighted variance has several definitions: "
            "aggregate weight * h and weight * h ** 2 with 'sum', and divide as your definition "
            "says"
        )
    h = check_rows(structure, "u", h, "h")
    if of_rows and not h.is_floating_point():
        raise TypeError(
            f"{of_rows[0]!r} needs floating numbers, got h of {h.dtype}: convert with .float() "
            "first"
        )
    # "prod" has a pass of its own, and so has a single one that message_reduce makes
    together = [name for name in dict.fromkeys(names) if REDUCTIONS[name].reads is not None]
    if not of_rows and (len(together) < 2 or weight is not None or not h.is_floating_point()):
        together = []
    results = {name: _single(structure, h, name, weight) for name in names if name not in together}
    if together:
        wide = h.to(torch.promote_types(h.dtype, torch.float32))
        degree = structure.divisor(wide)
        needed = {REDUCTIONS[name].reads for name in together}
        total, largest, smallest, squares = (k in needed for k in range(4))
        parts = read_once(structure, "u", wide, (total or squares, largest, smallest, squares))
        for name in together:
            reduction = REDUCTIONS[name]
            assert reduction.reads is not None
            results[name] = reduction.finish(parts[reduction.reads], degree).to(h.dtype)
    return tuple(results[name] for name in names)


def aggregate_beside_own(
    structure: Structure, h: Tensor, reduce: str = "sum", weight: Tensor | None = None
) -> Tensor:
    """Return every destination's own row beside ``aggregate(structure, h, reduce, weight)``.

    The destinations must be the first sources, so their own rows are ``h[:num_dst]``. The result is
    one matrix ``[num_dst, 2 * width, ...]``, own rows first. Arguments and errors are those of
    ``aggregate``; more destinations than sources raise ValueError.

    >>> structure = Structure(torch.tensor([0, 2]), torch.tensor([1, 2]), num_src=3)
    >>> aggregate_beside_own(structure, torch.tensor([[1.0], [2.0], [4.0]]))
    tensor([[1., 6.]])
    """
    check_type(reduce, "reduce", str, "the name of one reduction here")
    h = check_rows(structure, "u", h, "h")
    if structure.num_dst > structure.num_src:
        raise ValueError(
            f"the destinations must be the first sources, but {structure} has more destinations"
        )
    # one loop writes both beside each other, for matrices with at most a weight per edge
    is_simple = h.ndim == 2 and reduce in ("sum", "mean")
    if weight is not None:
        is_simple &= weight.layout == torch.strided and weight.dtype == h.dtype
        is_simple &= weight.shape == (structure.num_edges,)
    if is_simple and native.is_summed(h, weight) and not torch.compiler.is_compiling():
        return _OwnBesideSum.apply(structure, h, weight, reduce == "mean")
    own_rows, rows = rows_beside_own(h, structure.num_dst)
    return torch.cat([own_rows, aggregate(structure, rows, reduce, weight)], 1)


def rows_beside_own(h: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return ``(h[:count], h)``, whose gradients are made in one matrix.

    The second result must be read by one operation only, which makes its gradient anew, as sums
    over edges and linear maps do.
    """
    if not (torch.is_grad_enabled() and h.requires_grad) or torch.compiler.is_compiling():
        return h[:count], h
    own_rows, rows = _ShareOwn.apply(h, count)
    return own_rows, rows


class _ShareOwn(Recorded):
    """``(h [n, ...], count)`` to ``(h[:count], h)``."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, count: int) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.shape = h.shape
        return h[:count], h.view_as(h)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        own_grad, rows = grads
        if own_grad is None:
            return rows, None
        count = len(own_grad)
        if rows is None:
            others = own_grad.new_zeros((ctx.shape[0] - count, *ctx.shape[1:]))
            return torch.cat([own_grad, others]), None
        # not in place: where the rows were added to others, their gradient is that of the others
        # too
        return torch.cat([rows[:count] + own_grad, rows[count:]]), None


class _OwnBesideSum(Op):
    """``(structure, h [num_src, width], w [E] or None, mean)`` to ``[num_dst, 2 * width]``."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, h: Tensor, w: Tensor | None, mean: bool) -> Tensor:
        ctx.structure = structure
        ctx.width = h.shape[1]
        ctx.mean = mean
        ctx.save_for_backward(h if ctx.needs_input_grad[2] else None, w)
        return native.weighted_sum(structure, "v", h, w, mean, own=True)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        h, w = ctx.saved_tensors
        structure = ctx.structure
        own_grad = g[:, : ctx.width]
        total = g[:, ctx.width :]
        if ctx.mean:
            total = divided(total, structure)
        grad_h = grad_w = None
        if ctx.needs_input_grad[1]:
            grad_h = Spmm.apply(structure, total, w, "u", g.dtype)
            # nobody else has this matrix yet, so the own rows' gradient is added in place
            grad_h[: len(own_grad)] += own_grad
        if ctx.needs_input_grad[2]:
            grad_w = EdgeDot.apply(structure, total, h, None)
        return None, grad_h, grad_w, None
