"""The differentiable primitives on one flow: five autograd functions, whose backwards are of them.

With ``u`` the sources, ``v`` the destinations and ``e`` the edges of a structure:

    Spmm        out[v] = sum over e into v of w[e] * h[u(e)]   backward: Spmm (by source), EdgeDot
                (or out[u], over the edges that leave u, of h[v(e)])
    EdgeDot     out[e] = <a[v(e)], b[u(e)]>                    backward: Spmm (by either end)
    Gather      out[e] = h[u(e)] or h[v(e)]                    backward: SegmentSum
    SegmentSum  out[v] (or out[u]) = sum of x[e] of its edges  backward: Gather
    Permute     out[i] = x[order[i]]                           backward: Permute (inverse)

So every derivative, of any order, is again one of these. Compiled loops do the sums and dots on a
CPU (see ``nodeflow.ops._compiled``). Other types and devices sum by ``embedding_bag``: it
accumulates in float32 for bfloat16 and float16 and runs on CUDA, and its slow native backward is
never used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

import nodeflow.ops._compiled as native
from nodeflow._core.rows.coded import rows_if_made
from nodeflow.ops._structure import Structure

DOT_ELEMENTS = 2**18
"""Elements gathered at a time by EdgeDot: two such pieces stay in the processor's cache."""


class Recorded(Function):
    """An autograd function that gets the plain rows of coded ones that were read.

    These may have a gradient, which the coded ones have not.
    """

    @classmethod
    def apply(cls, *args: Any) -> Any:
        return super().apply(*map(rows_if_made, args))


class Op(Recorded):
    """An autograd function with one result."""

    apply: ClassVar[Callable[..., Tensor]]


def bag(indptr: Tensor, indices: Tensor, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the sum of the rows ``x[indices[a:b]]`` for each ``(a, b)`` of ``indptr``:
    ``[rows, ...]``; not recorded.

    ``x`` is floating ``[n, ...]``, ``weight`` ``[len(indices)]`` of the same type. Rows without
    indices are 0.
    """
    shape = (len(indptr) - 1, *x.shape[1:])
    if 0 in shape or len(indices) == 0:
        return x.new_zeros(shape)
    rows = _flat(x).contiguous()
    if weight is not None:
        weight = weight.contiguous()
    out = F.embedding_bag(
        indices, rows, indptr, mode="sum", include_last_offset=True, per_sample_weights=weight
    )
    # not a view: those refuse to be changed in place outside
    return out.resize_(shape)


def _flat(x: Tensor) -> Tensor:
    return x.reshape(len(x), x.shape[1:].numel())


class Spmm(Op):
    """``(structure, h, w [E], [E, groups] or None, end, dtype, mean)`` to a row per ``end``.

    ``h`` has a row per other end, whose consecutive numbers fall into ``groups`` of equal size;
    ``mean`` is for destinations (``end="v"``) only and divides by the number of edges. The result
    is of ``dtype``, where None is the type of ``h``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        structure: Structure,
        h: Tensor,
        w: Tensor | None,
        end: str = "v",
        dtype: torch.dtype | None = None,
        mean: bool = False,
    ) -> Tensor:
        ctx.structure = structure
        ctx.end = end
        ctx.mean = mean
        ctx.dtype = h.dtype
        # rows are needed for the gradient of weights only, and may be as large as a batch
        ctx.save_for_backward(h if ctx.needs_input_grad[2] else None, w)
        if native.is_summed(h, w):
            return native.weighted_sum(structure, end, h, w, mean, dtype=dtype)
        by, edges = structure.grouped(end)
        if w is not None and edges is not None:
            w = w.index_select(0, edges)
        if w is None or w.ndim == 1:
            out = bag(by.indptr, by.indices, h, w)
        else:
            # -1 is unknown without rows
            groups = w.shape[1]
            parts = h.reshape(len(h), groups, h.shape[1:].numel() // groups)
            heads = [bag(by.indptr, by.indices, parts[:, k], w[:, k]) for k in range(groups)]
            out = torch.stack(heads, 1)
            out = out.reshape(len(out), *h.shape[1:]).clone()
        if mean:
            out = out.div_(structure.divisor(out))
        if dtype is None:
            return out
        return out.to(dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        h, w = ctx.saved_tensors
        structure = ctx.structure
        grad_h = grad_w = None
        # a mean is the sum of rows that are divided by the degrees of their destinations
        if ctx.mean:
            g = divided(g, structure)
        if ctx.needs_input_grad[1]:
            other = "v"
            if ctx.end == "v":
                other = "u"
            grad_h = Spmm.apply(structure, g, w, other, ctx.dtype)
        if ctx.needs_input_grad[2]:
            groups = None
            if w.ndim != 1:
                groups = w.shape[1]
            if ctx.end == "v":
                ends = (g, h)
            else:
                ends = (h, g)
            grad_w = EdgeDot.apply(structure, *ends, groups)
        return None, grad_h, grad_w, None, None, None


def divided(g: Tensor, structure: Structure) -> Tensor:
    """Return the rows of destinations divided by the number of edges, in float32 at least."""
    return g / structure.divisor(g, torch.promote_types(g.dtype, torch.float32))


class EdgeDot(Op):
    """``(structure, a [num_dst, ...], b [num_src, ...], groups)`` to ``[E, groups]``, or ``[E]``.

    Products and sums in at least float32.
    """

    @staticmethod
    def forward(ctx: Any, structure: Structure, a: Tensor, b: Tensor, groups: int | None) -> Tensor:
        ctx.structure = structure
        ctx.save_for_backward(a, b)
        shape = [structure.num_edges]
        if groups is not None:
            shape.append(groups)
        if native.is_native(a, b):
            return native.dots(structure, a, b, groups or 1).resize_(shape)
        of_dst = _flat(a)
        of_src = _flat(b)
        # products of float16 may overflow, and sums of bfloat16 would lose digits
        exact = torch.promote_types(a.dtype, torch.float32)
        out = torch.empty(shape, dtype=a.dtype, device=a.device)
        step = max(1, DOT_ELEMENTS // max(1, of_dst.shape[1]))
        # the bound on memory is the generic one there; a launch costs more than the cache saves
        if of_dst.is_cuda:
            step *= 16
        for start in range(0, structure.num_edges, step):
            piece = slice(start, start + step)
            left = of_dst.index_select(0, structure.dst[piece]).to(exact)
            right = of_src.index_select(0, structure.indices[piece]).to(exact)
            product = left.mul_(right)
            if groups is not None:
                product = product.view(len(product), groups, -1)
            out[piece] = product.sum(-1)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        a, b = ctx.saved_tensors
        grad_a = grad_b = None
        if ctx.needs_input_grad[1]:
            grad_a = Spmm.apply(ctx.structure, b, g)
        if ctx.needs_input_grad[2]:
            grad_b = Spmm.apply(ctx.structure, a, g, "u")
        return None, grad_a, grad_b, None


class Gather(Op):
    """``(structure, h [rows of end, ...], end)`` to ``[E, ...]``: the row of each edge's end."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, h: Tensor, end: str) -> Tensor:
        ctx.structure = structure
        ctx.end = end
        if end == "u":
            return h.index_select(0, structure.indices)
        return h.index_select(0, structure.dst)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, SegmentSum.apply(ctx.structure, grads[0], ctx.end), None


class SegmentSum(Op):
    """``(structure, x [E, ...], end)`` to ``[rows of end, ...]``: the sum over each row's edges."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, x: Tensor, end: str) -> Tensor:
        ctx.structure = structure
        ctx.end = end
        if native.is_native(x):
            return native.edge_sum(structure, end, x)
        by, edges = structure.grouped(end)
        if edges is None:
            edges = torch.arange(len(x), device=x.device)
        return bag(by.indptr, edges, x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, Gather.apply(ctx.structure, grads[0], ctx.end), None


class Permute(Op):
    """``(x [n, ...], order, back or None)`` to ``x[order]``, a permutation that ``back`` undoes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, back: Tensor | None = None) -> Tensor:
        ctx.order = order
        ctx.back = back
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        back = ctx.back
        if ctx.back is None:
            back = inverse(ctx.order)
        return Permute.apply(grads[0], back, ctx.order), None, None


def inverse(order: Tensor) -> Tensor:
    """Return the permutation that undoes ``order``."""
    numbers = torch.arange(len(order), device=order.device)
    # several times faster than by indexing
    return torch.empty_like(order).scatter_(0, order, numbers)
