"""Rows of which only the edges of a time count: the search of ``kernels.uniform.plan_past``, in tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._tensors.ragged import spans


def past(
    indptr: Tensor,
    stamps: Tensor,
    rows: Tensor,
    limits: Tensor,
    starts: Tensor,
    lowest: float,
    context: Tensor,
    longest: int,
    *,
    strict: bool,
) -> tuple[Tensor, Tensor]:
    """Return where the past edges of each of n rows begin, and how many they are, int64 ``[n]`` each.

    Arguments as of ``kernels.uniform.plan_past``; no row has more than ``longest`` edges.
    """
    begin, end = spans(indptr, rows)
    if not len(stamps):
        return begin, end - begin
    if len(starts):
        last = stamps.index_select(0, (end - 1).clamp_(min=0))
        first = _first(stamps, begin, end, starts.index_select(0, context), longest, above=False)
        begin = torch.where((end > begin) & (last > lowest), first, begin)
    now = _first(stamps, begin, end, limits.index_select(0, context), longest, above=not strict)
    return begin, now - begin


def _first(values: Tensor, low: Tensor, high: Tensor, bound: Tensor, longest: int, *, above: bool) -> Tensor:
    """Return the first places from ``low`` to ``high`` whose value is at least the bound, or ``above`` it, by halves.

    Values ascend from each ``low`` to its ``high``, which is returned where there is none.
    """
    for _ in range(longest.bit_length()):
        middle = (low + high) >> 1
        value = values.index_select(0, middle.clamp(max=len(values) - 1))
        after = ((value <= bound) if above else (value < bound)).logical_and_(low < high)
        low, high = torch.where(after, middle + 1, low), torch.where(after, high, middle)
    return low
