"""Reductions of the rows of each destination's sources, one or several at once; variances and standard deviations."""

from __future__ import annotations

from typing import overload

import torch
from torch import Tensor

from nodeflow._base.checks import check_one_of, check_type
from nodeflow.ops._messages import message_reduce
from nodeflow.ops._opaque import opaque
from nodeflow.ops._operands import check_rows
from nodeflow.ops._reductions import REDUCTIONS, Sums
from nodeflow.ops._several import several
from nodeflow.ops._structure import Structure


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

    Args:
        structure: the edges.
        h: a row per source.
        reduce: "sum", "mean", "max", "min", "prod", "var" or "std"; or a list of these, for a tuple of results in the
            same order. "var" is the mean of the squared deviations from the mean (divided by the number of edges), and
            "std" its square root.
        weight: ``[num_edges]`` or ``[num_edges, ...]``, multiplied to the rows before they are reduced ("mean" divides
            by the number of edges, not by their weights); None for none. Not for "var" and "std".

    Several reductions without a weight read the rows together ("prod" reads them alone). Destinations without edges
    give 0 (1 for "prod"). Where the variance is 0, the gradient of "std" is 0. "var" and "std" of float16 and bfloat16
    are made in float32 and rounded once. See ``message_reduce`` for the other results, gradients and errors.

    Raises ValueError for an unknown or no reduction, and for "var" or "std" with a weight; TypeError for integers in
    "mean", "var" and "std".

    >>> structure = Structure(torch.tensor([0, 2, 3, 3]), torch.tensor([0, 1, 1]), num_src=2)
    >>> mean, std = aggregate(structure, torch.tensor([[1.0], [2.0]]), ["mean", "std"])
    >>> mean.squeeze(1), std.squeeze(1)
    (tensor([1.5000, 2.0000, 0.0000]), tensor([0.5000, 0.0000, 0.0000]))
    """
    if isinstance(reduce, str):
        check_one_of(reduce, "reduce", REDUCTIONS)
        if REDUCTIONS[reduce].of_messages:
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
    spread = [name for name in names if not REDUCTIONS[name].of_messages]
    if spread and weight is not None:
        raise ValueError(
            f"{spread[0]!r} takes no weight, because a weighted variance has several definitions: aggregate weight * h "
            "and weight * h ** 2 with 'sum', and divide as your definition says"
        )
    h = check_rows(structure, "u", h, "h")
    if spread and not h.is_floating_point():
        raise TypeError(f"{spread[0]!r} needs floating numbers, got h of {h.dtype}: convert with .float() first")
    needed = {REDUCTIONS[name].needs for name in names} - {None}
    together = [name for name in set(names) if REDUCTIONS[name].needs]
    if weight is not None or not h.is_floating_point() or (len(together) < 2 and not spread):
        single = {name: _single(structure, h, name, weight) for name in dict.fromkeys(names)}
        return tuple(single[name] for name in names)
    wide = h.to(torch.promote_types(h.dtype, torch.float32))
    total, largest, smallest, squares = (field in needed for field in Sums._fields[:4])
    parts = several(structure, wide, (total or squares, largest, smallest, squares))
    sums = Sums._make((*parts, structure.divisor(wide)))
    return tuple(
        REDUCTIONS[name].finish(sums).to(h.dtype) if REDUCTIONS[name].needs else _single(structure, h, name, None)
        for name in names
    )
