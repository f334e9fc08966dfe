"""Rows of several lengths, one behind another: entry e of row i lies between ``indptr[i]`` and
``indptr[i + 1]``.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import torch
from torch import Tensor

_SHORT: Final = 32
Triple: TypeAlias = tuple[Tensor, Tensor, Tensor]


def ends_of(counts: Tensor) -> Tensor:
    """Return the ``indptr`` of rows with ``counts`` entries each, int64 ``[n + 1]``."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def integers_for(count: int) -> torch.dtype:
    """Return the narrower type of integers that has ``count`` numbers, from 0 on."""
    return torch.int32 if count <= 2**31 else torch.int64


def indices_of(mask: Tensor) -> Tensor:
    """Return where a mask is True, ascending, int64."""
    return mask.nonzero().view(-1)  # waits


def spans(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the entries of some rows begin, and where they end, int64 ``[n]`` each."""
    return indptr.index_select(0, rows), indptr.index_select(0, rows + 1)


def entries_of(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``(indptr, positions)`` of the entries of some rows, in the order in which the rows
    are given.
    """
    begin, end = spans(indptr, rows)
    out = ends_of(end - begin)
    return out, positions_of(begin, out, int(out[-1]))  # waits


def positions_of(begin: Tensor, indptr: Tensor, size: int) -> Tensor:
    """Return the positions of entries whose rows begin at ``begin``, int64 ``[size]``."""
    steps = begin.new_ones(size + 1)
    steps[:1] = 0
    return _summed(begin - indptr[:-1], indptr, steps)


def spread(values: Tensor, indptr: Tensor, size: int) -> Tensor:
    """Return the value of each row once per entry, ``[size]``; ``size`` is ``indptr[-1]``."""
    return values.index_select(0, row_of(indptr, size))


def row_of(indptr: Tensor, size: int) -> Tensor:
    """Return the row of every entry, int64 ``[size]``."""
    return spread_integers(torch.arange(len(indptr) - 1, device=indptr.device), indptr, size)


def spread_integers(values: Tensor, indptr: Tensor, size: int) -> Tensor:
    """Return what ``spread`` does of integers, faster: it adds up their differences."""
    # repeat_interleave takes three times as long, and wakes all threads of torch for a single row
    return _summed(values, indptr, values.new_zeros(size + 1))


def _summed(values: Tensor, indptr: Tensor, steps: Tensor) -> Tensor:
    """Return the value of each entry's row plus the sum of ``steps`` ``[size + 1]`` up to it.

    ``steps`` is overwritten.
    """
    # A running sum needs no row of every entry: where a row begins, the difference of its value to
    # the one before is added to the steps.
    if len(values):
        steps[:1] += values[:1]
        # rows without entries add up with the next one
        steps.scatter_add_(0, indptr[1:-1], values.diff())
    return steps[:-1].cumsum_(0)


def places(indptr: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the row of every entry, and its place in the row from 0 on, int64 ``[size]`` each."""
    row = row_of(indptr, size)
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


def is_among(ascending: Tensor, values: Tensor) -> Tensor:
    """Return for each of ``values`` whether it is among ``ascending``, bool."""
    if not len(ascending):
        return torch.zeros_like(values, dtype=torch.bool)
    places_of = torch.searchsorted(ascending, values).clamp_(max=len(ascending) - 1)
    return ascending.index_select(0, places_of) == values


def rows_of_nodes(
    nodes: Tensor, ends: Tensor, begins: Tensor, first_kind: Tensor, kinds: Tensor
) -> Triple:
    """Return the rows of ``nodes``, node by node, the kind of each, and where the rows of each node
    begin.

    Arguments as of ``kernels.csr.rows_of_nodes``, int64.
    """
    # the last range has no end that matters
    part = torch.searchsorted(ends[:-1], nodes, right=True)
    count = first_kind.diff().index_select(0, part)
    before = torch.cat([ends.new_zeros(1), ends[:-1]]).index_select(0, part)
    row = begins.index_select(0, part).add_((nodes - before).mul_(count))
    indptr = ends_of(count)
    node, nth = places(indptr, int(indptr[-1]))  # waits
    first = first_kind.index_select(0, part)
    kind = kinds.index_select(0, first.index_select(0, node).add_(nth))
    return row.index_select(0, node).add_(nth), kind, indptr
