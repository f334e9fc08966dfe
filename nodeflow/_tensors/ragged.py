"""Rows of several lengths, one behind another: entry e of row i lies between ``indptr[i]`` and ``indptr[i + 1]``."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

_SHORT: Final = 32


def ends_of(counts: Tensor) -> Tensor:
    """Return the ``indptr`` of rows with ``counts`` entries each, int64 ``[n + 1]``."""
    indptr = counts.new_zeros(len(counts) + 1)
    torch.cumsum(counts, 0, out=indptr[1:])
    return indptr


def spread(values: Tensor, indptr: Tensor, size: int) -> Tensor:
    """Return the value of each row once for each of its entries, ``[size]``; ``size`` is the last of ``indptr``."""
    return torch.repeat_interleave(values, indptr.diff(), output_size=size)


def places(indptr: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the row of every entry, and its place in the row from 0 on, int64 ``[size]`` each."""
    row = spread(torch.arange(len(indptr) - 1, device=indptr.device), indptr, size)
    return row, torch.arange(size, device=indptr.device).sub_(indptr.index_select(0, row))


def repeated(values: Tensor, row: Tensor, most: int, upper: int) -> Tensor:
    """Return whether an earlier entry of the same row has the same value, bool ``[E]``.

    Args:
        values: int64 ``[E]``, at least 0 and below ``upper``.
        row: the row of every entry, ascending, int64 ``[E]``.
        most: no row has more entries.
    """
    again = torch.zeros(len(values), dtype=torch.bool, device=values.device)
    entries = (row * upper).add_(values)
    # comparing all pairs of short rows is faster than sorting
    if most <= _SHORT:
        for back in range(1, most):
            again[back:] |= entries[back:] == entries[:-back]
        return again
    ordered, order = entries.sort(stable=True)
    return again.scatter_(0, order[1:], ordered[1:] == ordered[:-1])
