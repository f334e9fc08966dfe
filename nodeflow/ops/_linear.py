"""Linear maps of dense and of sparse rows, sums of several in one result, and dropout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow._base.checks import as_flag, as_number, check_type, describe
from nodeflow._rows.csr import check_csr
from nodeflow.ops._autograd import Op, Spmm
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import is_transforming

BLOCK = 2048
"""Rows computed at a time on a CPU: what is added to them, and the ReLU, finds them in the processor's cache."""

SMALL = 32
"""Rows of the smallest of the pieces that products in bfloat16 are made of."""

DEEP = 512
"""Rows of the largest of the pieces that sums of products over rows in bfloat16 are made of: more are slower."""

PARTS, LEAST = 8, 128
"""Parts of the rows that the gradient of a weight is summed up from, and rows that a part has at least."""


def sparse_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T + bias`` for dense or sparse CSR rows, dense ``[n, out]``.

    Args:
        x: ``[n, k]``, dense or torch sparse CSR (then a constant: no gradient flows into it).
        weight: ``[out, k]``, as in torch.nn.Linear.
        bias: ``[out]`` or None.

    For sparse rows the cost is that of their nonzeros, forward and backward. Raises TypeError for another layout or
    sparse rows that require a gradient, ValueError when the columns of x and weight differ in number.

    >>> x = torch.eye(2)
    >>> sparse_linear(x, torch.tensor([[1.0, 2.0]]))
    tensor([[1.],
            [2.]])
    """
    _check(x, weight, bias)
    if x.layout == torch.strided:
        return F.linear(x, weight, bias)
    if x.requires_grad:
        raise TypeError("x is sparse and requires a gradient, which sparse features do not get: pass x.detach()")
    check_csr(x, "x")
    parts = x.crow_indices().to(torch.int64), x.col_indices().to(torch.int64)
    structure = Structure._trusted(*parts, x.shape[1])
    low = _autocast_type((weight, x.values(), *([] if bias is None else [bias])))
    exact = weight.float() if low is not None else weight  # summed in float32, also in the gradient, and rounded once
    out = Spmm.apply(structure, exact.t().contiguous(), x.values().to(exact.dtype), "v", False, low)
    return out if bias is None else out + bias.to(low or bias.dtype)


def _check(x: object, weight: object, bias: object = None) -> None:
    """Raise what ``sparse_linear`` raises for rows, a weight and a bias that do not fit."""
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr):
        kind = f"layout {x.layout}" if isinstance(x, Tensor) else describe(x)
        raise TypeError(f"x must be a dense or a sparse CSR tensor, got {kind}")
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise ValueError(f"weight must be a tensor of shape [out, columns of x], got {describe(weight)}")
    if x.ndim == 0:
        raise ValueError(f"x must have rows, got {describe(x)}")
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has {x.shape[-1]} columns (shape {tuple(x.shape)}), but weight {tuple(weight.shape)} takes "
            f"{weight.shape[1]}: weight is [out, columns of x], as in torch.nn.Linear"
        )
    if bias is not None and not (isinstance(bias, Tensor) and bias.shape == weight.shape[:1]):
        raise ValueError(f"bias must be a tensor of shape [{len(weight)}], one number per output, got {describe(bias)}")


def linear_sum(
    *pairs: tuple[Tensor, Tensor], bias: Tensor | None = None, relu: bool = False, dropout: float = 0.0
) -> Tensor:
    """Return ``x1 @ w1.T + x2 @ w2.T + ... + bias``, dense ``[n, out]``, or its positive part.

    Args:
        pairs: one or more ``(x, w)``: rows ``[n, k]``, dense or sparse CSR, and a weight ``[out, k]``.
        bias: ``[out]`` or None.
        relu: set negative entries to 0.
        dropout: then drop entries with this probability, as ``dropout`` does; in bfloat16 on a CPU the two are one.

    Dense rows are mapped in blocks into one result, so nothing of its size is made beside it. Raises what
    ``sparse_linear`` raises, TypeError for no pair, and ValueError for different numbers of rows or outputs.

    >>> linear_sum((torch.eye(2), torch.tensor([[1.0, -2.0]])), bias=torch.ones(1), relu=True)
    tensor([[2.],
            [0.]])
    """
    relu, dropout = as_flag(relu, "relu"), as_number(dropout, "dropout", least=0, most=1)
    if not pairs:
        raise TypeError("linear_sum needs a pair (x, w) at least")
    for x, w in pairs:
        _check(x, w, bias)
    for k, which, what in ((0, "x", "rows"), (1, "w", "outputs")):
        if len({len(pair[k]) for pair in pairs}) > 1:
            raise ValueError(f"all {which} must have the same number of {what}, got {[len(pair[k]) for pair in pairs]}")
    low = _autocast_type((*(tensor for pair in pairs for tensor in pair), *([] if bias is None else [bias])))
    if not _plain(pairs, bias, low):
        (x, w), *others = pairs
        out = sparse_linear(x, w, bias)
        for x, w in others:
            out = out + sparse_linear(x, w)
        out = out.relu() if relu else out
        return _dropped(out, dropout) if dropout else out
    words = relu and bias is not None and (low or bias.dtype) == torch.bfloat16
    key = int(torch.randint(2**63 - 1, ())) if words and dropout else None
    out = _LinearSum.apply(low, relu, key, dropout, bias, *(tensor for pair in pairs for tensor in pair))
    return _dropped(out, dropout) if dropout and key is None else out


def _autocast_type(tensors: Iterable[Tensor]) -> torch.dtype | None:
    """Return bfloat16 where autocast to it takes these tensors, of float32 or bfloat16 on the CPU; None elsewhere."""
    types = (torch.float32, torch.bfloat16)
    if not torch.is_autocast_enabled("cpu") or torch.get_autocast_dtype("cpu") != torch.bfloat16:
        return None
    fit = all(tensor.device.type == "cpu" and tensor.dtype in types for tensor in tensors)
    return torch.bfloat16 if fit and not torch.compiler.is_compiling() and not is_transforming() else None


def in_bfloat16(x: Tensor) -> bool:
    """Whether linear maps of ``x`` are made in bfloat16 on the CPU, in whole by this package."""
    if x.device.type != "cpu" or torch.compiler.is_compiling() or is_transforming():
        return False
    return x.dtype == torch.bfloat16 if not torch.is_autocast_enabled("cpu") else _autocast_type([x]) is not None


def _plain(pairs: tuple[tuple[Tensor, Tensor], ...], bias: Tensor | None, low: torch.dtype | None) -> bool:
    """Whether all are matrices on the CPU of one type, which autocast may give, without transforms and compilation."""
    first = pairs[0][1]
    tensors = [*(tensor for pair in pairs for tensor in pair), *([] if bias is None else [bias])]
    return (
        all(tensor.layout == torch.strided and tensor.device.type == "cpu" for tensor in tensors)
        and (low is not None or all(tensor.dtype == first.dtype for tensor in tensors))
        and first.is_floating_point()
        and all(x.ndim == 2 for x, _ in pairs)
        and (bias is None or bias.shape == first.shape[:1])
        and (low is not None or not torch.is_autocast_enabled("cpu"))
        and not torch.compiler.is_compiling()
        and not is_transforming()
    )


def _pieces(x: Tensor, block: int = BLOCK) -> list[int]:
    """Return the numbers of rows, at most ``block``, that products with ``x`` are computed for at a time.

    For products in bfloat16 on a CPU, oneDNN compiles code for every number of rows, which takes longer than the
    product of some thousand rows. Batches have ever new numbers of rows, so these are made of few numbers: a block,
    each half of it, and what is left of the smallest.
    """
    size = len(x)
    if x.dtype != torch.bfloat16 or x.device.type != "cpu":
        return [min(block, size - begin) for begin in range(0, size, block)]
    pieces, block = [block] * (size // block), block // 2
    while block >= SMALL:
        if size & block:
            pieces.append(block)
        block //= 2
    return [*pieces, size % SMALL] if size % SMALL else pieces


def _times(x: Tensor, w: Tensor) -> Tensor:
    """Return ``x @ w`` for many rows."""
    if x.dtype != torch.bfloat16 or x.device.type != "cpu":
        return x @ w
    return torch.cat([rows @ w for rows in x.split(_pieces(x) or [0])])


def _outer(g: Tensor, x: Tensor) -> Tensor:
    """Return ``g.T @ x`` for many rows, for bfloat16 on a CPU in float32.

    Parts that threads need not share are faster.
    """
    if g.dtype == torch.bfloat16 and g.device.type == "cpu":
        total, pieces = torch.zeros((g.shape[1], x.shape[1])), _pieces(g, DEEP)
        for left, right in zip(g.split(pieces), x.split(pieces), strict=True):
            total += left.t() @ right
        return total
    size = len(x) // PARTS
    whole = PARTS * size
    if size < LEAST or not (g.is_contiguous() and x.is_contiguous()):
        return g.t() @ x
    left, right = (rows[:whole].view(PARTS, size, rows.shape[1]) for rows in (x, g))
    out = torch.bmm(left.transpose(1, 2), right).sum(0)
    return (out if whole == len(x) else torch.addmm(out, x[whole:].t(), g[whole:])).t().contiguous()


class _LinearSum(Op):
    """``(type or None, relu, key or None, rate, bias or None, x1, w1, x2, w2, ...)`` to ``[n, out]``.

    With a type, the products are computed in it; gradients are of the types of their tensors. With a key, for words
    with bias and ReLU, the result is dropped: dropped and negative numbers are 0, which is all that the gradient needs.
    """

    @staticmethod
    def forward(
        ctx: Any, low: torch.dtype | None, relu: bool, key: int | None, rate: float, bias: Tensor | None, *flat: Tensor
    ) -> Tensor:
        ctx.types = [None if tensor is None else tensor.dtype for tensor in (bias, *flat)]
        if low is not None:
            bias, flat = None if bias is None else bias.to(low), tuple(tensor.to(low) for tensor in flat)
        rows, weights = flat[::2], flat[1::2]
        out = rows[0].new_empty((len(rows[0]), len(weights[0])))
        transposed = [w.t() for w in weights]
        pieces, words = _pieces(rows[0]), native.is_words(out)
        ctx.scale = 1.0 if key is None else native.drop_scale(rate)
        for block, *parts in zip(out.split(pieces), *(x.split(pieces) for x in rows), strict=True):
            # Everything that a block needs is done while it is in the cache. In bfloat16 the bias comes last, in one
            # loop with the ReLU: added first it would be rounded with every product.
            if bias is None or words:
                torch.mm(parts[0], transposed[0], out=block)
            else:
                torch.addmm(bias, parts[0], transposed[0], out=block)
            for x, w in zip(parts[1:], transposed[1:], strict=True):
                block.addmm_(x, w)
            if words and bias is not None and key is None:
                native.add_bias(block, bias, relu)
            elif relu and key is None:
                block.relu_()
        if key is not None:
            out = native.drop(out, key, rate, bias)
        ctx.save_for_backward(out if relu else None, *flat)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,), (out, *flat) = grads, ctx.saved_tensors
        bias: Tensor | None = None
        # First the gradient before the ReLU: 0 where the result is. The loop for bfloat16 sums it up for the bias too,
        # but a gradient of this gradient needs an operation of torch.
        if out is not None and native.is_words(out) and not torch.is_grad_enabled():
            g, bias = native.relu_gradient(g, out, ctx.scale)
        elif out is not None:
            g = torch.ops.aten.threshold_backward(g if ctx.scale == 1 else g * ctx.scale, out, 0)
        gradients: list[Tensor | None] = [None] * len(flat)
        needed, types = ctx.needs_input_grad[5:], ctx.types[1:]
        for i in range(0, len(flat), 2):
            x, w = flat[i : i + 2]
            if needed[i]:
                gradients[i] = _times(g, w).to(types[i])
            if needed[i + 1]:
                gradients[i + 1] = _outer(g, x).to(types[i + 1])
        if ctx.needs_input_grad[4]:
            bias = (g.sum(0) if bias is None else bias).to(ctx.types[0])  # added up in float32 at least
        else:
            bias = None
        return None, None, None, None, bias, *gradients


def dropout(h: Tensor, rate: float) -> Tensor:
    """Return ``h`` with each number set to 0 with probability ``rate``, and the others divided by ``1 - rate``.

    Args:
        h: floating numbers of any shape.
        rate: between 0 and 1; for bfloat16 on a CPU rounded to a multiple of 2**-16.

    bfloat16 on a CPU is done by a compiled loop, with a key from torch's global generator. All else is
    ``torch.nn.functional.dropout``. Differentiable any number of times.

    >>> bool((dropout(torch.ones(1000, dtype=torch.bfloat16), 0.5).unique() == torch.tensor([0, 2])).all())
    True
    """
    check_type(h, "h", Tensor, "a tensor")
    rate = as_number(rate, "rate", least=0, most=1)
    if torch.compiler.is_compiling() or h.dtype != torch.bfloat16 or not native.is_summed(h) or rate == 0:
        return F.dropout(h, rate)
    return _Dropout.apply(h, int(torch.randint(2**63 - 1, ())), rate)


_dropped = dropout  # for ``linear_sum``, in which an argument has that name


class _Dropout(Op):
    """``(h, key, rate)`` to the dropped ``h``: linear, so its gradient is the same of the gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, key: int, rate: float) -> Tensor:
        ctx.key, ctx.rate = key, rate
        return native.drop(h, key, rate)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Dropout.apply(grads[0], ctx.key, ctx.rate), None, None
