"""Reductions of the rows of each destination's sources: one alone, or several from one reading of the rows."""

from __future__ import annotations

from typing import Any, overload

import torch
from torch import Tensor
from torch.autograd import Function

import nodeflow.ops._compiled as native
from nodeflow._base.checks import check_one_of, check_type
from nodeflow.ops._autograd import Spmm
from nodeflow.ops._chunked import EdgeSum, Extreme
from nodeflow.ops._edgewise import OPERATIONS
from nodeflow.ops._messages import message_reduce
from nodeflow.ops._operands import check_rows
from nodeflow.ops._reductions import OF_MESSAGES, REDUCTIONS, Sums
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque

Wanted = tuple[bool, bool, bool, bool]
"""Whether the sum, the maximum, the minimum and the sum of squared deviations are wanted; the last takes the first."""


@overload
def aggregate(structure: Structure, h: Tensor, reduce: str = ..., weight: Tensor | None = ...) -> Tensor: ...


@overload
def aggregate(
    structure: Structure, h: Tensor, reduce: list[str] | tuple[str, ...], weight: Tensor | None = ...
) -> tuple[Tensor, ...]: ...


@opaque
def aggregate(
    structure: Structure, h: Tensor, reduce: str | list[str] | tuple[str, ...] = "sum", weight: Tensor | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Reduce the rows of each destination's sources: ``h`` ``[num_src, ...]`` to ``[num_dst, ...]``.

    Arguments, results and errors are those of ``Flow.aggregate``. Several reductions without a weight read the rows
    together ("prod" reads them alone). "var" and "std" of float16 and bfloat16 are made in float32 and rounded once.
    See ``message_reduce`` for the gradients and types of the others.

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


def _several(structure: Structure, h: Tensor, names: tuple[str, ...], weight: Tensor | None) -> tuple[Tensor, ...]:
    """Return each reduction; sums, extremes and deviations are read from the rows together."""
    for name in names:
        check_one_of(name, "reduce", REDUCTIONS)
    spread = [name for name in names if name not in OF_MESSAGES]
    if spread and weight is not None:
        raise ValueError(
            f"{spread[0]!r} takes no weight, because a weighted variance has several definitions: aggregate weight * h "
            "and weight * h ** 2 with 'sum', and divide as your definition says"
        )
    h = check_rows(structure, "u", h, "h")
    if spread and not h.is_floating_point():
        raise TypeError(f"{spread[0]!r} needs floating numbers, got h of {h.dtype}: convert with .float() first")
    together = {name: REDUCTIONS[name] for name in names if REDUCTIONS[name].needs}
    if not spread and (len(together) < 2 or weight is not None or not h.is_floating_point()):
        together = {}
    results = {name: _single(structure, h, name, weight) for name in names if name not in together}
    if together:
        wide = h.to(torch.promote_types(h.dtype, torch.float32))
        needed = {reduction.needs for reduction in together.values()}
        total, largest, smallest, squares = (field in needed for field in Sums._fields[:4])
        parts = _read_once(structure, wide, (total or squares, largest, smallest, squares))
        sums = Sums._make((*parts, structure.divisor(wide)))
        results |= {name: reduction.finish(sums).to(h.dtype) for name, reduction in together.items()}
    return tuple(results[name] for name in names)


def _read_once(structure: Structure, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
    """Return the four reductions of floating rows ``h`` ``[num_src, ...]``; those not ``wanted`` are empty.

    Differentiable twice and more. Rows that share an extreme share its gradient equally.
    """
    if not native.is_native(h) or torch.compiler.is_compiling():
        return _one_by_one(structure, h, wanted)
    outs: tuple[Tensor, ...] = _Several.apply(structure, h, wanted)
    return outs


def _one_by_one(structure: Structure, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
    """The same, made of one differentiable operation each."""
    none, copy = h.new_empty(0), OPERATIONS["copy"]
    total = Spmm.apply(structure, h, None, "v", False) if wanted[0] else none
    largest, smallest = (
        Extreme.apply(structure, is_largest, copy, ("u",), h) if want else none
        for is_largest, want in ((True, wanted[1]), (False, wanted[2]))
    )
    if not wanted[3]:
        return total, largest, smallest, none
    mean = total / structure.divisor(total)
    squares = EdgeSum.apply(structure, "v", _squared_deviation, ("u", "v"), h, mean)
    return total, largest, smallest, squares


def _squared_deviation(x: Tensor, mean: Tensor) -> Tensor:
    return (x - mean).square()


class _Several(Function):
    """``(structure, h [num_src, ...], wanted)`` to the four reductions."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.structure, ctx.wanted = structure, wanted
        counted = ctx.needs_input_grad[1] and (wanted[1] or wanted[2])
        outs, ties = native.several(structure, h, wanted, counted)
        ctx.save_for_backward(h, ties, *outs)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        h, ties, *outs = ctx.saved_tensors
        structure: Structure = ctx.structure
        present = [(k, g) for k, g in enumerate(grads) if g is not None]
        if not present:
            return None, None, None
        if torch.is_grad_enabled() or not native.is_native(h, *(g for _, g in present)):
            # A gradient of this gradient may be asked for: differentiate the separate operations instead.
            with torch.enable_grad():
                x = h if h.requires_grad else h.detach().requires_grad_()
                separate = _one_by_one(structure, x, ctx.wanted)
                (gradient,) = torch.autograd.grad(
                    [separate[k] for k, _ in present], x, [g for _, g in present], create_graph=torch.is_grad_enabled()
                )
            return None, gradient, None
        mean = None if grads[3] is None else outs[0] / structure.divisor(outs[0])
        return None, native.share_several(structure, h, mean, outs, ties, grads), None
