"""Messages along the edges of a flow: materialised, or reduced without being materialised."""

from __future__ import annotations

import torch
from torch import Tensor

import nodeflow.ops._compiled as native
from nodeflow._core.base.checks import check_one_of
from nodeflow.ops._autograd import EdgeDot, Gather
from nodeflow.ops._chunked import EdgeSum
from nodeflow.ops._edgewise import OPERATIONS, Operands, check_operands
from nodeflow.ops._reductions import OF_MESSAGES, REDUCTIONS, summed_source
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque

_LOW = (torch.float16, torch.bfloat16)


@opaque
def message_reduce(
    structure: Structure,
    op: str,
    lhs_kind: str,
    lhs: Tensor,
    rhs_kind: str | None,
    rhs: Tensor | None,
    reduce: str,
    *,
    names: tuple[object, object] = ("lhs", "rhs"),
) -> Tensor:
    """Compute a message per edge from one or two operands and reduce it per destination; never
    holds all messages.

    Args:
        structure: the edges.
        op: "copy" (of lhs; no rhs), "add", "sub", "mul", "div" or "dot" (over the last dimension,
            kept with size 1).
        lhs_kind: what lhs has a row for: "u" (sources), "v" (destinations) or "e" (edges); rhs_kind
            likewise.
        lhs: ``[rows, ...]``; feature dimensions of both broadcast, aligned at the right, and a row
            of one number fits any shape.
        reduce: a reduction of ``nodeflow.fn`` by name, such as "sum".
        names: what error messages call lhs and rhs.

    Returns ``[num_dst, *message shape]``. Destinations without edges: 0, and 1 for prod (the empty
    product). The type is that of the message; sums, means, products and dots of float16 and
    bfloat16 are made in float32 and rounded once; integers give int64 sums and products, and "div"
    of integers the default floating type.

    Differentiable in the operands: twice and more, except for prod (once). Messages that tie for
    max or min share the gradient equally; in prod each gets the product of the others.

    Raises ValueError for wrong rows, shapes that do not broadcast, an unknown op or reduction;
    TypeError for sparse operands and for the mean of integers.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> h = torch.tensor([1.0, 2.0, 3.0])
    >>> message_reduce(structure, "copy", "u", h, None, None, "mean")
    tensor([1.5000, 3.0000])
    """
    check_one_of(reduce, "reduce", OF_MESSAGES)
    operands = check_operands(structure, op, lhs_kind, lhs, rhs_kind, rhs, names)
    if REDUCTIONS[reduce].divides and not operands.dtype.is_floating_point:
        raise TypeError(
            f"the {reduce} needs floating numbers, got messages of {operands.dtype}: convert with "
            ".float() first"
        )
    dtype = _computed_in(operands, reduce)
    if dtype != operands.dtype:
        operands = operands._replace(tensors=tuple(tensor.to(dtype) for tensor in operands.tensors))
    out = OF_MESSAGES[reduce](structure, operands)
    if operands.dtype.is_floating_point:
        return out.to(operands.dtype)
    return out


@opaque
def message(
    structure: Structure,
    op: str,
    lhs_kind: str,
    lhs: Tensor,
    rhs_kind: str | None = None,
    rhs: Tensor | None = None,
    *,
    names: tuple[object, object] = ("lhs", "rhs"),
) -> Tensor:
    """Compute the message of every edge, ``[num_edges, *message shape]``; arguments and errors of
    ``message_reduce``.

    The dot product gathers its operands in pieces; the other operations gather them whole.

    >>> structure = Structure(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2]), num_src=3)
    >>> own, h = torch.tensor([10.0, 20.0]), torch.tensor([1.0, 2.0, 3.0])
    >>> message(structure, "sub", "v", own, "u", h)
    tensor([ 9.,  8., 17.])
    """
    operands = check_operands(structure, op, lhs_kind, lhs, rhs_kind, rhs, names)
    if op == "dot":
        return _dots(structure, operands)
    ends = zip(operands.kinds, operands.tensors, strict=True)
    return OPERATIONS[op](
        *(rows if kind == "e" else Gather.apply(structure, rows, kind) for kind, rows in ends)
    )


def _computed_in(operands: Operands, reduce: str) -> torch.dtype:
    """The type that messages are computed and reduced in."""
    dtype = operands.dtype
    if REDUCTIONS[reduce].selects:
        if operands.op == "dot" and dtype in _LOW:
            return torch.float32
        return dtype
    if not dtype.is_floating_point:
        return torch.int64
    # Sums of rows add in float32 without a copy, also means and weighted sums that one loop makes
    # of bfloat16. The sum under a mean may be beyond float16.
    alone = reduce == "sum" and operands.op == "copy"
    if (
        dtype == torch.bfloat16
        and reduce in ("sum", "mean")
        and summed_source(operands) is not None
    ):
        alone = alone or native.is_summed(*operands.tensors)
    if dtype in _LOW and not alone:
        return torch.float32
    return dtype


def _dots(structure: Structure, operands: Operands) -> Tensor:
    left, right = operands.tensors
    floating = operands.dtype.is_floating_point
    if (
        floating
        and set(operands.kinds) == {"u", "v"}
        and left.shape[1:] == right.shape[1:]
        and left.ndim == 2
    ):
        if operands.kinds[0] == "u":
            left, right = right, left
        return EdgeDot.apply(structure, left, right, None).unsqueeze(1)
    wide = _computed_in(operands, "sum")
    out = EdgeSum.apply(
        structure, "e", OPERATIONS["dot"], operands.kinds, left.to(wide), right.to(wide)
    )
    if floating:
        return out.to(operands.dtype)
    return out
