"""Uniform draws of edges, row by row, of all or of past ones: ``_kernels/draw/uniform.py`` in
tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from nodeflow._core.in_torch.bits import bounded, stream
from nodeflow._core.in_torch.ragged import Triple, ends_of, places, positions_of, repeated, spans

_SHORT: Final = 64  # up to this fanout rows draw as many numbers, whatever they keep


def draw(
    indptr: Tensor,
    indices: Tensor,
    rows: Tensor,
    ident: Tensor,
    key: int,
    counts: Sequence[int],
    kinds: Tensor,
    *,
    replace: bool,
    left_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``(indptr of the draw [n + 1], degree [n], positions [E], sources [E])`` of n
    ``rows``, int64.

    ``counts`` has the number of edges that rows of each kind draw (-1: all), and ``kinds`` the kind
    of each row, which is not read where there is one. Row i draws from the stream of ``ident[i]``.
    The edges at the positions ``left_out`` (ascending) do not count.
    """
    begin, end = spans(indptr, rows)
    if len(left_out):  # positions among the edges that stay
        begin, end = (ends - torch.searchsorted(left_out, ends) for ends in (begin, end))
    degree = end - begin
    out, positions = draw_between(
        begin, degree, ident, key, counts, kinds, len(indices), replace=replace
    )
    if len(left_out):
        stay = left_out - torch.arange(len(left_out), device=left_out.device)
        positions += torch.searchsorted(stay, positions, right=True)
    return out, degree, positions, indices.index_select(0, positions).long()


def draw_between(
    begin: Tensor,
    degree: Tensor,
    ident: Tensor,
    key: int,
    counts: Sequence[int],
    kinds: Tensor,
    most: int,
    *,
    replace: bool,
) -> tuple[Tensor, Tensor]:
    """Return ``(indptr of the draw [n + 1], positions [E])`` of rows that begin at positions of
    their own.

    No row has more than ``most`` edges.
    """
    fanout = per_kind(counts, kinds, degree)
    wanted = number_drawn(degree, fanout, replace=replace)
    out = ends_of(wanted)
    largest = max(counts)
    if largest < 0:
        return out, positions_of(begin, out, int(out[-1]))  # waits
    # a row that keeps all its edges may be longer than what others draw
    if replace:
        longest = largest
    else:
        longest = min(largest, most)
    row, nth, pick = _picks(
        stream(key, ident), degree, wanted, out, longest, most, min(counts) < 0, replace=replace
    )
    if not replace:
        pick = _subsets(pick, row, nth, (degree - wanted).index_select(0, row), longest, most)
    elif min(counts) < 0:
        pick = torch.where(fanout.index_select(0, row) < 0, nth, pick)
    return out, begin.index_select(0, row).add_(pick)


def per_kind(numbers: Sequence[int], kinds: Tensor, like: Tensor) -> Tensor:
    """Return the number of the kind of each row, int64 ``[n]``; ``kinds`` is not read where there
    is one number.
    """
    if len(numbers) == 1:
        return torch.full_like(like, numbers[0])
    return torch.tensor(numbers, dtype=torch.int64, device=like.device).index_select(0, kinds)


def number_drawn(degree: Tensor, fanout: Tensor, *, replace: bool) -> Tensor:
    """Return how many edges rows draw, int64 ``[n]``; a fanout of -1 is all."""
    if replace:
        some = fanout * (degree > 0)
    else:
        some = torch.minimum(degree, fanout)
    return torch.where(fanout < 0, degree, some)


def _picks(
    start: Tensor,
    degree: Tensor,
    wanted: Tensor,
    out: Tensor,
    longest: int,
    most: int,
    some_all: bool,
    *,
    replace: bool,
) -> Triple:
    """Return the row of each drawn edge, which draw of the row it is, and the number drawn, int64
    ``[E]`` each.
    """

    def numbers(row: Tensor, nth: Tensor, read: Tensor | None) -> tuple[Tensor, int]:
        if replace:
            bound = degree.index_select(0, row)
        else:
            bound = before.index_select(0, row).add_(nth).add_(1)
        return bounded(start, row, nth, bound.clamp_(min=1), most, read)

    before = degree - wanted
    if some_all or longest > _SHORT:
        row, nth = places(out, int(out[-1]))  # waits
        return row, nth, numbers(row, nth, None)[0]
    # all rows draw as if they were long, before it is known how many edges there are: that saves a
    # wait
    count = len(degree)
    every = torch.arange(count, device=out.device).repeat_interleave(longest)
    pick, size = numbers(every, torch.arange(longest, device=out.device).repeat(count), out[-1])
    del every
    row, nth = places(out, size)
    return row, nth, pick.index_select(0, row * longest + nth)


def _subsets(
    pick: Tensor, row: Tensor, nth: Tensor, before: Tensor, longest: int, most: int
) -> Tensor:
    """Return picks without repeats by Floyd's method, all steps of all rows at once.

    Step j picks one of the first ``last + 1 = before + j + 1`` edges. It takes edge ``last``
    instead if its pick was taken before: by an equal pick of an earlier step, or by the step whose
    ``last`` it is, if that one took it. Such steps are followed back, twice as far in every round.
    Rows that keep all their edges have 0 in ``before``, and every step takes its ``last``.
    """
    is_taken = repeated(pick, row, longest, most).logical_or_(before == 0)
    last = before.add_(nth)
    # to the step whose ``last`` was picked; none in the row where it is further than that begins
    back = pick - last
    link = back.masked_fill_(back < -nth, 0).add_(torch.arange(len(row), device=row.device))
    for _ in range((longest - 1).bit_length()):
        is_taken |= is_taken.index_select(0, link)
        link = link.index_select(0, link)
    return torch.where(is_taken, last, pick)


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
    """Return where the past edges of each of n rows begin, and how many they are, int64 ``[n]``
    each.

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


def _first(
    values: Tensor, low: Tensor, high: Tensor, bound: Tensor, longest: int, *, above: bool
) -> Tensor:
    """Return the first places from ``low`` to ``high`` whose value is at least the bound, or
    ``above`` it, by halves.

    Values ascend from each ``low`` to its ``high``, which is returned where there is none.
    """
    for _ in range(longest.bit_length()):
        middle = (low + high) >> 1
        value = values.index_select(0, middle.clamp(max=len(values) - 1))
        after = ((value <= bound) if above else (value < bound)).logical_and_(low < high)
        low = torch.where(after, middle + 1, low)
        high = torch.where(after, high, middle)
    return low
