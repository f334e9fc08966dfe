"""Uniform draws of edges, row by row, with and without replacement: ``_kernels/draw/uniform.py`` in tensors."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from nodeflow._tensors.bits import bounded, stream
from nodeflow._tensors.ragged import ends_of, places, repeated

_SHORT: Final = 64  # up to this fanout rows draw as many numbers, whatever they keep


def draw(
    indptr: Tensor,
    indices: Tensor,
    rows: Tensor,
    ident: Tensor,
    key: int,
    fanout: int,
    *,
    replace: bool,
    left_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``(indptr of the draw [n + 1], degree [n], positions [E], sources [E])`` of n ``rows``, int64.

    Row i draws ``fanout`` of its edges (-1: all) from the stream of ``ident[i]``. The edges at the positions
    ``left_out`` (ascending) do not count.
    """
    begin, end = indptr.index_select(0, rows), indptr.index_select(0, rows + 1)
    if len(left_out):  # positions among the edges that stay
        begin, end = (ends - torch.searchsorted(left_out, ends) for ends in (begin, end))
    degree = end - begin
    wanted = degree if fanout < 0 else fanout * (degree > 0) if replace else degree.clamp(max=fanout)
    out, most = ends_of(wanted), len(indices)
    if fanout < 0:
        row, pick = places(out, int(out[-1]))  # waits
    else:
        row, pick = _picks(stream(key, ident), degree, wanted, out, fanout, most, replace=replace)
    positions = begin.index_select(0, row).add_(pick)
    if len(left_out):
        stay = left_out - torch.arange(len(left_out), device=left_out.device)
        positions += torch.searchsorted(stay, positions, right=True)
    return out, degree, positions, indices.index_select(0, positions).long()


def _picks(
    start: Tensor, degree: Tensor, wanted: Tensor, out: Tensor, fanout: int, most: int, *, replace: bool
) -> tuple[Tensor, Tensor]:
    """Return the row of each drawn edge, and which edge of the row it is, int64 ``[E]`` each."""
    longest, before = min(fanout, most) if not replace else fanout, degree - wanted

    def numbers(row: Tensor, nth: Tensor, read: Tensor | None) -> tuple[Tensor, int]:
        bound = degree.index_select(0, row) if replace else before.index_select(0, row).add_(nth).add_(1)
        return bounded(start, row, nth, bound.clamp_(min=1), most, read)

    if longest > _SHORT:
        row, nth = places(out, int(out[-1]))  # waits
        pick = numbers(row, nth, None)[0]
    else:  # all rows draw as if they were long, before it is known how many edges there are: that saves a wait
        count = len(degree)
        every = torch.arange(count, device=out.device).repeat_interleave(longest)
        pick, size = numbers(every, torch.arange(longest, device=out.device).repeat(count), out[-1])
        row, nth = places(out, size)
        pick = pick.index_select(0, row * longest + nth)
    return row, pick if replace else _subsets(pick, row, nth, before.index_select(0, row), longest, most)


def _subsets(pick: Tensor, row: Tensor, nth: Tensor, before: Tensor, longest: int, most: int) -> Tensor:
    """Return picks without repeats by Floyd's method, all steps of all rows at once.

    Step j picks one of the first ``last + 1 = before + j + 1`` edges. It takes edge ``last`` instead if its pick was
    taken before: by an equal pick of an earlier step, or by the step whose ``last`` it is, if that one took it. Such
    steps are followed back, twice as far in every round. Rows that keep all their edges have 0 in ``before``, and every
    step takes its ``last``.
    """
    last = before + nth
    is_taken = repeated(pick, row, longest, most).logical_or_(before == 0)
    step, link = pick - before, torch.arange(len(row), device=row.device)
    link = torch.where((step >= 0) & (step < nth), link - nth + step, link)
    for _ in range((longest - 1).bit_length()):
        is_taken |= is_taken.index_select(0, link)
        link = link.index_select(0, link)
    return torch.where(is_taken, last, pick)
