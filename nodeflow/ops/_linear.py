"""Linear maps of dense and of sparse rows, sums of several in one result, and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow._core.base.checks import as_flag, as_number, check_type, describe
from nodeflow._core.rows.csr import check_csr
from nodeflow.ops._autograd import Op, Spmm
from nodeflow.ops._products import is_widened, outer, pieces, times, widened
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import is_transforming


def sparse_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T + bias`` for dense or sparse CSR rows, dense ``[n, out]``.

    Args:
        x: ``[n, k]``, dense or torch sparse CSR (then a constant: no gradient flows into it).
        weight: ``[out, k]``, as in torch.nn.Linear.
        bias: ``[out]`` or None.

    For sparse rows the cost is that of their nonzeros, forward and backward. Raises TypeError for
    another layout or sparse rows that require a gradient, ValueError when the columns of x and
    weight differ in number.

    >>> x = torch.eye(2)
    >>> sparse_linear(x, torch.tensor([[1.0, 2.0]]))
    tensor([[1.],
            [2.]])
    """
    _check(x, weight, bias)
    if x.layout == torch.strided:
        pair = (x, weight)
        low = _autocast_type(pair, bias)
        if (low or x.dtype) == torch.bfloat16 and _plain((pair,), bias, low):
            return _mapped((pair,), bias, low)
        return F.linear(x, weight, bias)
    if x.requires_grad:
        raise TypeError(
            "x is sparse and requires a gradient, which sparse features do not get: pass x.detach()"
        )
    check_csr(x, "x")
    # a sparse matrix is a flow: its rows are destinations, its columns sources, its entries edges
    structure = Structure._trusted(
        x.crow_indices().to(torch.int64), x.col_indices().to(torch.int64), x.shape[1]
    )
    low = _autocast_type((weight, x.values()), bias)
    # summed in float32, also in the gradient, and rounded once
    exact = weight
    if low is not None:
        exact = weight.float()
    values = x.values().to(exact.dtype)
    out = Spmm.apply(structure, exact.t().contiguous(), values, "v", low)
    if bias is None:
        return out
    return out + bias.to(low or bias.dtype)


def _check(x: object, weight: object, bias: object = None) -> None:
    """Raise what ``sparse_linear`` raises for rows, a weight and a bias that do not fit."""
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr):
        if isinstance(x, Tensor):
            kind = f"layout {x.layout}"
        else:
            kind = describe(x)
        raise TypeError(f"x must be a dense or a sparse CSR tensor, got {kind}")
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise ValueError(
            f"weight must be a tensor of shape [out, columns of x], got {describe(weight)}"
        )
    if x.ndim == 0:
        raise ValueError(f"x must have rows, got {describe(x)}")
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has {x.shape[-1]} columns (shape {tuple(x.shape)}), but weight "
            f"{tuple(weight.shape)} takes {weight.shape[1]}: weight is [out, columns of x], as in "
            "torch.nn.Linear"
        )
    if bias is not None and not (isinstance(bias, Tensor) and bias.shape == weight.shape[:1]):
        raise ValueError(
            f"bias must be a tensor of shape [{len(weight)}], one number per output, got "
            f"{describe(bias)}"
        )


def linear_sum(
    *pairs: tuple[Tensor, Tensor],
    bias: Tensor | None = None,
    relu: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Return the sum of products of rows and weights, or its positive part.

    It is ``x1 @ w1.T + x2 @ w2.T + ... + bias``, dense ``[n, out]``.

    Args:
        pairs: one or more ``(x, w)``: rows ``[n, k]``, dense or sparse CSR, and a weight
            ``[out, k]``.
        bias: ``[out]`` or None.
        relu: set negative entries to 0.
        dropout: then drop entries with this probability, as ``dropout`` does; in bfloat16 on a CPU
            the two are one.

    Dense rows are mapped in blocks into one result, so nothing of its size is made beside it.
    Raises what ``sparse_linear`` raises, TypeError for no pair, and ValueError for different
    numbers of rows or outputs.

    >>> linear_sum((torch.eye(2), torch.tensor([[1.0, -2.0]])), bias=torch.ones(1), relu=True)
    tensor([[2.],
            [0.]])
    """
    relu = as_flag(relu, "relu")
    dropout = as_number(dropout, "dropout", least=0, most=1)
    if not pairs:
        raise TypeError("linear_sum needs a pair (x, w) at least")
    for x, w in pairs:
        _check(x, w, bias)
    for k, which, counted in ((0, "x", "rows"), (1, "w", "outputs")):
        if len({len(pair[k]) for pair in pairs}) > 1:
            raise ValueError(
                f"all {which} must have the same number of {counted}, got "
                f"{[len(pair[k]) for pair in pairs]}"
            )
    low = _autocast_type(_flat(pairs), bias)
    if _plain(pairs, bias, low):
        # in bfloat16 one loop adds the bias, takes the positive part and drops
        if dropout and relu and bias is not None and (low or bias.dtype) == torch.bfloat16:
            return _mapped(pairs, bias, low, relu=relu, key=_new_key(), rate=dropout)
        out = _mapped(pairs, bias, low, relu=relu)
    else:
        # not in place, which transforms may not allow
        (x, w), *others = pairs
        out = sparse_linear(x, w, bias)
        for x, w in others:
            out = out + sparse_linear(x, w)
        if relu:
            out = out.relu()
    if dropout:
        return _dropped(out, dropout)
    return out


def _flat(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    return [tensor for pair in pairs for tensor in pair]


def _new_key() -> int:
    """Return a key of dropout from torch's global generator."""
    return int(torch.randint(2**63 - 1, ()))


def _autocast_type(tensors: Sequence[Tensor], bias: Tensor | None = None) -> torch.dtype | None:
    """Return bfloat16 where autocast to it takes all these tensors of the CPU, else None."""
    if not torch.is_autocast_enabled("cpu") or torch.get_autocast_dtype("cpu") != torch.bfloat16:
        return None
    if is_transforming():
        return None
    types = (torch.float32, torch.bfloat16)
    for tensor in tensors if bias is None else (*tensors, bias):
        if tensor.device.type != "cpu" or tensor.dtype not in types:
            return None
    return torch.bfloat16


def in_bfloat16(x: Tensor) -> bool:
    """Whether linear maps of ``x`` are made in bfloat16 on the CPU, in whole by this package."""
    if x.device.type != "cpu" or is_transforming():
        return False
    if torch.is_autocast_enabled("cpu"):
        return _autocast_type([x]) is not None
    return x.dtype == torch.bfloat16


def _plain(
    pairs: tuple[tuple[Tensor, Tensor], ...], bias: Tensor | None, low: torch.dtype | None
) -> bool:
    """Whether ``_LinearSum`` takes these: dense matrices of one type on the CPU, no transforms.

    Their shapes were checked by ``_check``. Autocast may give the type, which is ``low`` then.
    """
    if is_transforming():
        return False
    tensors = _flat(pairs)
    if bias is not None:
        tensors.append(bias)
    if low is None:
        is_one_type = all(tensor.dtype == tensors[0].dtype for tensor in tensors)
        if torch.is_autocast_enabled("cpu") or not is_one_type:
            return False
    return (
        all(tensor.layout == torch.strided and tensor.device.type == "cpu" for tensor in tensors)
        and tensors[0].is_floating_point()
        and all(x.ndim == 2 for x, _ in pairs)
    )


def _mapped(
    pairs: Sequence[tuple[Tensor, Tensor]],
    bias: Tensor | None,
    low: torch.dtype | None,
    *,
    relu: bool = False,
    key: int | None = None,
    rate: float = 0.0,
) -> Tensor:
    """Return the sum of linear maps that ``_LinearSum`` makes."""
    return _LinearSum.apply(low, relu, key, rate, bias, *_flat(pairs))


class _LinearSum(Op):
    """``(type or None, relu, key or None, rate, bias or None, x1, w1, x2, w2, ...)`` to
    ``[n, out]``.

    With a type, the products are computed in it; gradients are of the types of their tensors. With
    a key, for words with bias and ReLU, the result is dropped: dropped and negative numbers are 0,
    which is all that the gradient needs.
    """

    @staticmethod
    def forward(
        ctx: Any,
        low: torch.dtype | None,
        relu: bool,
        key: int | None,
        rate: float,
        bias: Tensor | None,
        *flat: Tensor,
    ) -> Tensor:
        ctx.types = [None if tensor is None else tensor.dtype for tensor in (bias, *flat)]
        rows = flat[::2]
        weights = flat[1::2]
        kind = low or rows[0].dtype
        out = rows[0].new_empty((len(rows[0]), len(weights[0])), dtype=kind)
        if bias is not None:
            bias = bias.to(kind)
        wide = is_widened(out)
        # products in float32 take rows and weights of float32 as they are, and round the results
        # alone
        if not wide:
            rows = tuple(x.to(kind) for x in rows)
        weights = tuple(w.to(torch.float32 if wide else kind) for w in weights)
        transposed = [w.t() for w in weights]
        sizes = pieces(out)
        words = native.is_words(out)
        exact = torch.empty((max(sizes, default=0), len(weights[0]))) if wide else out
        ctx.scale = 1.0 if key is None else native.drop_scale(rate)
        for block, *parts in zip(out.split(sizes), *(x.split(sizes) for x in rows), strict=True):
            # Everything that a block needs is done while it is in the cache. In bfloat16 the bias
            # comes last, in one loop with the ReLU: added first it would be rounded with every
            # product.
            total = exact[: len(block)] if wide else block
            if bias is None or words:
                torch.mm(widened(parts[0]), transposed[0], out=total)
            else:
                torch.addmm(widened(bias), widened(parts[0]), transposed[0], out=total)
            for x, w in zip(parts[1:], transposed[1:], strict=True):
                total.addmm_(widened(x), w)
            if wide:
                block.copy_(total)
            if words and bias is not None and key is None:
                native.add_bias(block, bias, relu)
            elif relu and key is None:
                block.relu_()
        if key is not None:
            out = native.drop(out, key, rate, bias)
        saved = _flat(list(zip(rows, weights, strict=True)))
        ctx.save_for_backward(out if relu else None, *saved)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (g,) = grads
        out, *flat = ctx.saved_tensors
        # the gradient of the bias
        summed: Tensor | None = None
        # First the gradient before the ReLU: 0 where the result is. The loop for bfloat16 sums it
        # up for the bias too, but a gradient of this gradient needs an operation of torch.
        if out is not None and native.is_words(out) and not torch.is_grad_enabled():
            g, summed = native.relu_gradient(g, out, ctx.scale)
        elif out is not None:
            if ctx.scale != 1:
                g = g * ctx.scale
            g = torch.ops.aten.threshold_backward(g, out, 0)
        gradients: list[Tensor | None] = [None] * len(flat)
        needed = ctx.needs_input_grad[5:]
        types = ctx.types[1:]
        for i in range(0, len(flat), 2):
            x, w = flat[i : i + 2]
            if needed[i]:
                gradients[i] = times(g, w).to(types[i])
            if needed[i + 1]:
                gradients[i + 1] = outer(g, x).to(types[i + 1])
        bias = None
        if ctx.needs_input_grad[4]:
            # added up in float32 at least
            bias = (g.sum(0) if summed is None else summed).to(ctx.types[0])
        return None, None, None, None, bias, *gradients


def dropout(h: Tensor, rate: float) -> Tensor:
    """Return ``h`` with each number set to 0 with probability ``rate``, and the others divided by
    ``1 - rate``.

    Args:
        h: floating numbers of any shape.
        rate: between 0 and 1; for bfloat16 on a CPU rounded to a multiple of 2**-16.

    bfloat16 on a CPU is done by a compiled loop, with a key from torch's global generator. All else
    is ``torch.nn.functional.dropout``. Differentiable any number of times.

    >>> dropout(torch.ones(1000, dtype=torch.bfloat16), 0.5).unique()
    tensor([0., 2.], dtype=torch.bfloat16)
    """
    check_type(h, "h", Tensor, "a tensor")
    rate = as_number(rate, "rate", least=0, most=1)
    if (
        torch.compiler.is_compiling()
        or h.dtype != torch.bfloat16
        or not native.is_summed(h)
        or rate == 0
    ):
        return F.dropout(h, rate)
    return _Dropout.apply(h, _new_key(), rate)


# for ``linear_sum``, in which an argument has that name
_dropped = dropout


class _Dropout(Op):
    """``(h, key, rate)`` to the dropped ``h``: linear, so its gradient drops the gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, key: int, rate: float) -> Tensor:
        ctx.key = key
        ctx.rate = rate
        return native.drop(h, key, rate)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Dropout.apply(grads[0], ctx.key, ctx.rate), None, None
