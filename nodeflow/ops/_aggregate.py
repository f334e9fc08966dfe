"""Reductions of the rows of each destination's sources: one alone, or several from one reading of the rows."""

from __future__ import annotations

from typing import overload

import torch
from torch import Tensor

from nodeflow._base.checks import check_one_of, check_type
from nodeflow.ops._chunked import read_once
from nodeflow.ops._edgewise import check_rows
from nodeflow.ops._messages import message_reduce
from nodeflow.ops._reductions import OF_MESSAGES, REDUCTIONS, RowStatistics
from nodeflow.ops._structure import Structure
from nodeflow.ops._torch_state import opaque


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
    of_rows = [name for name in names if name not in OF_MESSAGES]
    if of_rows and weight is not None:
        raise ValueError(
            f"{of_rows[0]!r} takes no weight, because a weighted variance has several definitions: aggregate weight * "
            "h and weight * h ** 2 with 'sum', and divide as your definition says"
        )
    h = check_rows(structure, "u", h, "h")
    if of_rows and not h.is_floating_point():
        raise TypeError(f"{of_rows[0]!r} needs floating numbers, got h of {h.dtype}: convert with .float() first")
    together = {name: REDUCTIONS[name] for name in names if REDUCTIONS[name].reads}
    if not of_rows and (len(together) < 2 or weight is not None or not h.is_floating_point()):
        together = {}
    results = {name: _single(structure, h, name, weight) for name in names if name not in together}
    if together:
        wide = h.to(torch.promote_types(h.dtype, torch.float32))
        needed = {field for reduction in together.values() for field in reduction.reads}
        total, largest, smallest, squares = (field in needed for field in RowStatistics._fields[:4])
        parts = read_once(structure, "u", wide, (total or squares, largest, smallest, squares))
        statistics = RowStatistics._make((*parts, structure.divisor(wide)))
        results |= {name: reduction.finish(statistics).to(h.dtype) for name, reduction in together.items()}
    return tuple(results[name] for name in names)
