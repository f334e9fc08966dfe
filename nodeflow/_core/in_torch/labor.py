"""LABOR-0 with a random number per source: the hash and the Poisson draw of
``_kernels/draw/labor.py`` in tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import torch
from torch import Tensor

from nodeflow._core.in_torch.bits import GOLDEN, mix, shifted, signed, stream
from nodeflow._core.in_torch.kept import RowsPiece, kept
from nodeflow._core.in_torch.ragged import (
    Triple,
    ends_of,
    indices_of,
    places as rows_and_places,
    positions_of,
    spread,
    spread_integers,
)
from nodeflow._core.in_torch.uniform import number_drawn

_WORDS: Final = 2.0**32
_signed: Final = partial(signed, width=32)


class Key(NamedTuple):
    """A key of 64 bits, and the three words of 32 bits that ``kernels.labor`` makes of it."""

    bits: int
    before: int
    between: int
    after: int


def draw_poisson(
    begin: Tensor,
    degree: Tensor,
    indices: Tensor,
    num_nodes: int,
    fanout: Tensor,
    keys: Sequence[Key],
    early: int,
) -> Triple:
    """Return ``(indptr [n + 1], positions [E], sources [E])`` of the edges that n rows keep, int64.

    Sources are below ``num_nodes``. An edge is kept if the number of its source is below
    ``ceil(2**32 * p)``, see ``rates``; for ``keys`` and ``early`` see ``hashed``.
    """
    # a number is compared less 2**31, in int32: the largest that is kept
    bounds = (rates(fanout, degree) * _WORDS).ceil_()
    largest = bounds.sub_(2**31 + 1).clamp_(min=-(2**31)).int()

    def is_kept(number: Tensor, piece: RowsPiece) -> Tensor:
        return number <= piece.spread(largest)

    number_of = partial(hashed, keys=keys, early=early)
    return kept(begin, degree, indices, num_nodes, number_of, is_kept)


def draw_smallest(
    begin: Tensor,
    degree: Tensor,
    indices: Tensor,
    num_nodes: int,
    fanout: Tensor,
    keys: Sequence[Key],
    early: int,
    repeats: tuple[Tensor, Tensor],
) -> Triple:
    """Return ``(indptr, positions, sources)`` of the edges of n rows whose sources have the
    smallest numbers.

    They are as many as a draw without repeats has. ``repeats`` are ``again`` and ``copies`` of
    ``kernels.labor.draw_smallest``.
    """
    again, copies = repeats
    count = number_drawn(degree, fanout, replace=False)

    def is_kept(number: Tensor, piece: RowsPiece) -> Tensor:
        if len(again):
            # the edges of the piece whose source occurred before in their row have other numbers
            first = torch.searchsorted(again, piece.begin)
            last = torch.searchsorted(again, piece.begin + piece.indptr.diff())
            ends = ends_of(last - first)
            repeats = positions_of(first, ends, int(ends[-1]))  # waits
            shift = spread_integers(piece.begin - piece.indptr[:-1], ends, len(repeats))
            places = again.index_select(0, repeats) - shift
            ids = piece.sources.index_select(0, places)
            number[places] = _of_copies(ids, copies.index_select(0, repeats), keys, early)
        return _smallest(number, count[piece.rows], piece.indptr)

    number_of = partial(hashed, keys=keys, early=early)
    return kept(begin, degree, indices, num_nodes, number_of, is_kept)


def _smallest(number: Tensor, count: Tensor, indptr: Tensor) -> Tensor:
    """Return which numbers are among the ``count`` smallest of their row, a bool each; of equal
    ones the first.
    """
    share = _enough(count) / indptr.diff().clamp(min=1)
    # numbers below a bound are sorted, and of rows that have too few of them more
    while True:
        bound = (share.clamp(max=1) * _WORDS).ceil_()
        largest = spread_integers(bound.sub_(2**31 + 1).int(), indptr, len(number))
        places = indices_of(number <= largest)
        ends = torch.searchsorted(places, indptr)
        few = ends.diff() < count
        if not bool(few.any()):  # waits
            break
        share = torch.where(few, 2 * share, share)
    row, nth = rows_and_places(ends, len(places))
    # by row, and by number in it; numbers were less 2**31
    by = number.index_select(0, places).long().add_(2**31) + (row << 32)
    places = places.index_select(0, by.sort(stable=True).indices)
    is_small = torch.zeros_like(number, dtype=torch.bool)
    return is_small.scatter_(0, places, nth < count.index_select(0, row))


def _enough(count: Tensor) -> Tensor:
    """Return how many numbers to expect below a bound, so that most rows have ``count`` there,
    float64.
    """
    return count + 4 * count.double().sqrt_() + 4


def _of_copies(ids: Tensor, copies: Tensor, keys: Sequence[Key], early: int) -> Tensor:
    """Return the numbers of later parallel edges, less 2**31, int32: those of ``kernels.labor``."""
    states = [stream(key.bits, ids.long()) for key in keys[:2]]
    renewed = _hash(_folded(ids), keys[2]) < early - 2**31
    bits = mix(torch.where(renewed, states[1], states[0]) + copies * GOLDEN)
    return shifted(bits, 32).sub_(2**31).int()


def rates(fanout: Tensor, degree: Tensor) -> Tensor:
    """Return the probabilities of the edges of rows, float64 ``[n]``: 1, or fanout / degree where
    that is less.
    """
    share = fanout.double().div_(degree.clamp(min=1))  # int64 / int64 would be float32
    return torch.where((fanout < 0) | (degree <= fanout), 1.0, share)


def inverses(fanout: Tensor, degree: Tensor, indptr: Tensor, size: int) -> Tensor:
    """Return 1 / p of every drawn edge, float64 ``[size]``, where p is rounded up to a multiple of
    2**-32.
    """
    bounds = (rates(fanout, degree) * _WORDS).ceil_()
    return spread(bounds.reciprocal_().mul_(_WORDS), indptr, size)


def hashed(ids: Tensor, keys: Sequence[Key], early: int) -> Tensor:
    """Return the number of every id less 2**31, int32: that of ``kernels.labor.hash_block``.

    It is made under ``keys[0]``, or under ``keys[1]`` where a number made under ``keys[2]`` is
    below ``early``.
    """
    low = _folded(ids)
    number = _hash(low, keys[0])
    if early:
        number = torch.where(_hash(low, keys[2]) < early - 2**31, _hash(low, keys[1]), number)
    return number


def _folded(ids: Tensor) -> Tensor:
    """Return ids as int32; of one beyond 32 bits, the upper ones are folded into the lower ones."""
    if ids.dtype == torch.int32:
        return ids
    return ids.int() ^ (ids >> 32).int().mul_(_signed(0x9E3779B9))


def _hash(ids: Tensor, key: Key) -> Tensor:
    _, before, between, after = map(_signed, key)
    x = _round(ids ^ before, 0x21F0AAAD, 0xD35A2D97)
    x = _round(x.bitwise_xor_(between), 0x7FEB352D, 0x846CA68B)
    # the sign bit turned: as if 2**31 was taken off
    return x.bitwise_xor_(after ^ -(2**31))


def _round(x: Tensor, first: int, second: int) -> Tensor:
    for by, factor in ((16, first), (15, second)):
        x = x ^ (x >> by).bitwise_and_((1 << (32 - by)) - 1)
        x.mul_(_signed(factor))
    return x.bitwise_xor_((x >> 15).bitwise_and_((1 << 17) - 1))
