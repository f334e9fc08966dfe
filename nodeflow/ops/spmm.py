"""The differentiable primitives on one flow: five autograd functions, each one's backward made of the other four.

With ``u`` the sources, ``v`` the destinations and ``e`` the edges of a structure:

    Spmm        out[v] = sum over e into v of w[e] * h[u(e)]        backward: Spmm (transposed), EdgeDot
    EdgeDot     out[e] = <a[v(e)], b[u(e)]>                         backward: Spmm, Spmm (transposed)
    Gather      out[e] = h[u(e)] or h[v(e)]                         backward: SegmentSum
    SegmentSum  out[v] (or out[u]) = sum of x[e] over its edges     backward: Gather
    Permute     out[i] = x[order[i]]                                backward: Permute (inverse)

So every derivative, of any order, is again a sum over consecutive rows: no backward scatters, and none is left to the
slow native backward of ``embedding_bag``, which does the sums. It is the fastest sparse sum torch has on a CPU, it
accumulates in float32 for bfloat16 and float16, and it runs on CUDA.
"""

# ruff: noqa: D102  autograd's forward and backward are described by their class
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from nodeflow.structure import Structure

DOT_ELEMENTS = 2**18
"""Elements gathered at a time by EdgeDot: two such pieces stay in the processor's cache."""


def bag(indptr: Tensor, indices: Tensor, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the sum of the rows ``x[indices[a:b]]`` for each ``(a, b)`` of ``indptr``: ``[rows, ...]``; not recorded.

    ``x`` is floating ``[n, ...]``, ``weight`` ``[len(indices)]`` of the same type. Rows without indices are 0.
    """
    shape = (len(indptr) - 1, *x.shape[1:])
    if 0 in shape or len(indices) == 0:
        return x.new_zeros(shape)
    rows = _flat(x).contiguous()
    weight = None if weight is None else weight.contiguous()
    out = F.embedding_bag(indices, rows, indptr, mode="sum", include_last_offset=True, per_sample_weights=weight)
    return out.resize_(shape)  # not a view: those refuse to be changed in place outside


def _flat(x: Tensor) -> Tensor:
    return x.reshape(len(x), x.shape[1:].numel())


def _summed(structure: Structure, end: str) -> tuple[Tensor, Tensor]:
    """``(indptr, edge ids)`` of the edges grouped by one end, "u" or "v"."""
    if end == "v":
        return structure.indptr, torch.arange(structure.num_edges, device=structure.device)
    swapped, edges = structure.transposed()
    return swapped.indptr, edges


class Spmm(Function):
    """``(structure, h [num_src, ...], w [E] or None)`` to ``[num_dst, ...]``."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, h: Tensor, w: Tensor | None) -> Tensor:
        ctx.structure = structure
        ctx.save_for_backward(h if ctx.needs_input_grad[2] else None, w)
        return bag(structure.indptr, structure.indices, h, w)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), (h, w) = grads, ctx.saved_tensors
        grad_h = grad_w = None
        if ctx.needs_input_grad[1]:
            swapped, edges = ctx.structure.transposed()
            grad_h = Spmm.apply(swapped, g, None if w is None else Permute.apply(w, edges))
        if ctx.needs_input_grad[2]:
            grad_w = EdgeDot.apply(ctx.structure, g, h)
        return None, grad_h, grad_w


class EdgeDot(Function):
    """``(structure, a [num_dst, ...], b [num_src, ...])`` to ``[E]``; products and sums in at least float32."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, a: Tensor, b: Tensor) -> Tensor:
        ctx.structure = structure
        ctx.save_for_backward(a, b)
        at, bt = _flat(a), _flat(b)
        exact = torch.promote_types(a.dtype, torch.float32)
        out = torch.empty(structure.num_edges, dtype=a.dtype, device=a.device)
        step = max(1, DOT_ELEMENTS // max(1, at.shape[1]))
        if at.is_cuda:  # the bound on memory is the generic one there; a launch costs more than the cache saves
            step *= 16
        for start in range(0, structure.num_edges, step):
            piece = slice(start, start + step)
            left = at.index_select(0, structure.dst[piece]).to(exact)
            right = bt.index_select(0, structure.indices[piece]).to(exact)
            out[piece] = left.mul_(right).sum(1)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), (a, b) = grads, ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[1]:
            grad_a = Spmm.apply(ctx.structure, b, g)
        if ctx.needs_input_grad[2]:
            swapped, edges = ctx.structure.transposed()
            grad_b = Spmm.apply(swapped, a, Permute.apply(g, edges))
        return None, grad_a, grad_b


class Gather(Function):
    """``(structure, h [rows of end, ...], end)`` to ``[E, ...]``: the row of each edge's end, "u" or "v"."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, h: Tensor, end: str) -> Tensor:
        ctx.structure, ctx.end = structure, end
        return h.index_select(0, structure.indices if end == "u" else structure.dst)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, SegmentSum.apply(ctx.structure, grads[0], ctx.end), None


class SegmentSum(Function):
    """``(structure, x [E, ...], end)`` to ``[rows of end, ...]``: the sum over the edges of each row."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, x: Tensor, end: str) -> Tensor:
        ctx.structure, ctx.end = structure, end
        indptr, edges = _summed(structure, end)
        return bag(indptr, edges, x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, Gather.apply(ctx.structure, grads[0], ctx.end), None


class Permute(Function):
    """``(x [n, ...], order)`` to ``x[order]`` for a permutation ``order`` of all rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor) -> Tensor:
        ctx.order = order
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inverse = torch.empty_like(ctx.order)
        inverse[ctx.order] = torch.arange(len(inverse), device=inverse.device)
        return Permute.apply(grads[0], inverse), None
