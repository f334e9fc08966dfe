"""Sum, maximum, minimum and squared deviations over the sources of each destination, from one reading of the rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

import nodeflow.ops._compiled as native
from nodeflow.ops._autograd import Spmm
from nodeflow.ops._chunked import EdgeSum, Extreme
from nodeflow.ops._edgewise import OPERATIONS
from nodeflow.ops._structure import Structure

Wanted = tuple[bool, bool, bool, bool]
"""Whether the sum, the maximum, the minimum and the sum of squared deviations are wanted."""


def several(structure: Structure, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
    """Return the four reductions of floating rows ``h`` ``[num_src, ...]``; those not ``wanted`` are empty.

    Differentiable twice and more. Rows that share an extreme share its gradient equally.
    """
    if not native.is_native(h) or torch.compiler.is_compiling():
        return _apart(structure, h, wanted)
    outs: tuple[Tensor, ...] = _Several.apply(structure, h, wanted)
    return outs


def _apart(structure: Structure, h: Tensor, wanted: Wanted) -> tuple[Tensor, ...]:
    """The same, made of one differentiable operation each."""
    none, copy = h.new_empty(0), OPERATIONS["copy"]
    total = Spmm.apply(structure, h, None, "v", False) if wanted[0] or wanted[3] else none
    largest = Extreme.apply(structure, True, copy, ("u",), h) if wanted[1] else none
    smallest = Extreme.apply(structure, False, copy, ("u",), h) if wanted[2] else none
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
        summed = (wanted[0] or wanted[3], *wanted[1:])
        counted = ctx.needs_input_grad[1] and (wanted[1] or wanted[2])
        outs, ties = native.several(structure, h, summed, counted)
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
                separate = _apart(structure, x, ctx.wanted)
                (gradient,) = torch.autograd.grad(
                    [separate[k] for k, _ in present], x, [g for _, g in present], create_graph=torch.is_grad_enabled()
                )
            return None, gradient, None
        mean = None if grads[3] is None else outs[0] / structure.divisor(outs[0])
        return None, native.share_several(structure, h, mean, outs, ties, grads), None
