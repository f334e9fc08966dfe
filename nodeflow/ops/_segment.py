"""Operations on one row per edge: gathers, reductions and the softmax over each destination's
edges.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow import _kernels as kernels
from nodeflow.ops._autograd import Gather, Op, SegmentSum, bag
from nodeflow.ops._edgewise import check_rows
from nodeflow.ops._messages import message_reduce
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque


@opaque
def gather_src(structure: Structure, h: Tensor) -> Tensor:
    """Return the source row of every edge: ``[num_src, ...]`` to ``[num_edges, ...]``.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> gather_src(structure, torch.tensor([1.0, 2.0, 3.0]))
    tensor([1., 2., 3.])
    """
    return Gather.apply(structure, check_rows(structure, "u", h, "h"), "u")


@opaque
def gather_dst(structure: Structure, h: Tensor) -> Tensor:
    """Return the destination row of every edge: ``[num_dst, ...]`` to ``[num_edges, ...]``.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> gather_dst(structure, torch.tensor([10.0, 20.0]))
    tensor([10., 10., 20.])
    """
    return Gather.apply(structure, check_rows(structure, "v", h, "h"), "v")


@opaque
def segment_reduce(structure: Structure, values: Tensor, reduce: str = "sum") -> Tensor:
    """Reduce a row per edge, ``[num_edges, ...]``, to a row per destination, ``[num_dst, ...]``.

    ``reduce`` is as in ``message_reduce``, which has results, gradients and errors.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> segment_reduce(structure, torch.tensor([[1.0], [2.0], [3.0]]), "max")
    tensor([[2.],
            [3.]])
    """
    return message_reduce(structure, "copy", "e", values, None, None, reduce, names=("values", ""))


@opaque
def segment_softmax(structure: Structure, scores: Tensor) -> Tensor:
    """Return the softmax of ``scores`` ``[num_edges, ...]`` over the edges of each destination, of
    the same shape.

    Each destination's largest score is subtracted first, so large scores do not overflow. A score
    of -inf gives 0, also when all scores of a destination are -inf. float16 and bfloat16 are
    computed in float32. Differentiable twice.

    Raises ValueError for a wrong number of rows, TypeError for integers.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> segment_softmax(structure, torch.tensor([0.0, 0.0, 5.0]))
    tensor([0.5000, 0.5000, 1.0000])
    """
    check_rows(structure, "e", scores, "scores")
    if not scores.is_floating_point():
        raise TypeError(
            f"scores must be floating numbers, got {scores.dtype}: convert with .float() first"
        )
    wide = torch.promote_types(scores.dtype, torch.float32)
    return _Softmax.apply(structure, scores.to(wide)).to(scores.dtype)


class _Softmax(Op):
    """``(structure, scores [E, ...])`` to ``[E, ...]``."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, scores: Tensor) -> Tensor:
        ctx.structure = structure
        if scores.numel() == 0:
            out = torch.zeros_like(scores)
        elif native.is_native(scores):
            out = native.by_destination(structure, kernels.softmax.softmax_rows, scores)
        else:
            rows = scores.reshape(structure.num_edges, -1).contiguous()
            # "unsafe" only skips the check of the offsets; destinations without edges get -inf, and
            # are not gathered
            largest = torch.segment_reduce(rows, "max", offsets=structure.indptr, unsafe=True)
            # -inf minus -inf would be NaN
            largest.masked_fill_(largest == -torch.inf, 0)
            out = rows.sub(largest.index_select(0, structure.dst)).exp_()
            total = bag(structure.indptr, torch.arange(len(out), device=out.device), out)
            total.masked_fill_(total == 0, 1)
            out = out.div_(total.index_select(0, structure.dst)).resize_(scores.shape)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (out,) = ctx.saved_tensors
        if native.is_native(out, grads[0]) and not torch.is_grad_enabled():
            return None, native.by_destination(
                ctx.structure, kernels.softmax.softmax_gradient, out, grads[0]
            )
        # the same of differentiable operations, for gradients of gradients and other types
        weighted = out * grads[0]
        total = SegmentSum.apply(ctx.structure, weighted, "v")
        return None, weighted - out * Gather.apply(ctx.structure, total, "v")
