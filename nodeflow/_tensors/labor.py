"""LABOR-0 with a random number per source: the hash and the Poisson draw of
``_kernels/draw/labor.py`` in tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor

from nodeflow._tensors.bits import GOLDEN, mix, shifted, stream
from nodeflow._tensors.kept import Piece, Rule, by_node, kept
from nodeflow._tensors.ragged import ends_of, places, positions_of, spread, spread_integers
from nodeflow._tensors.uniform import number_drawn

_WORDS: Final = 2.0**32


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
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(indptr [n + 1], positions [E], sources [E])`` of the edges that n rows keep, int64.

    Sources are below ``num_nodes``. An edge is kept if the number of its source is below
    ``ceil(2**32 * p)``, see ``rates``; for ``keys`` and ``early`` see ``hashed``.
    """
    # a number is compared less 2**31, in int32: the largest that is kept
    largest = (rates(fanout, degree) * _WORDS).ceil_().sub_(2**31 + 1).clamp_(min=-(2**31)).int()

    def rule_for(size: int) -> Rule:
        number_of = by_node(lambda ids: hashed(ids, keys, early), size, num_nodes, indices)
        return lambda piece: number_of(piece.sources) <= piece.spread(largest)

    return kept(begin, degree, indices, rule_for)


def draw_smallest(
    begin: Tensor,
    degree: Tensor,
    indices: Tensor,
    num_nodes: int,
    fanout: Tensor,
    keys: Sequence[Key],
    early: int,
    again: Tensor,
    copies: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(indptr, positions, sources)`` of the edges of n rows whose sources have the
    smallest numbers.

    They are as many as a draw without repeats has. ``again`` and ``copies`` see
    ``kernels.labor.draw_smallest``.
    """
    count = number_drawn(degree, fanout, replace=False)

    def rule_for(size: int) -> Rule:
        number_of = by_node(lambda ids: hashed(ids, keys, early), size, num_nodes, indices)

        def rule(piece: Piece) -> Tensor:
            number = number_of(piece.sources)
            if len(again):
                first, last = (
                    torch.searchsorted(again, piece.begin + by) for by in (0, piece.indptr.diff())
                )
                ends = ends_of(last - first)
                which = positions_of(first, ends, int(ends[-1]))  # waits
                at = again.index_select(0, which) - spread_integers(
                    piece.begin - piece.indptr[:-1], ends, len(which)
                )
                number[at] = _of_copies(
                    piece.sources.index_select(0, at), copies.index_select(0, which), keys, early
                )
            return _smallest(number, count[piece.rows], piece.indptr)

        return rule

    return kept(begin, degree, indices, rule_for)


def _smallest(number: Tensor, count: Tensor, indptr: Tensor) -> Tensor:
    """Return which numbers are among the ``count`` smallest of their row, a bool each; of equal
    ones the first.
    """
    share = _enough(count) / indptr.diff().clamp(min=1)
    while True:  # numbers below a bound are sorted, and of rows that have too few of them more
        bound = (share.clamp(max=1) * _WORDS).ceil_().sub_(2**31 + 1).int()
        at = (number <= spread_integers(bound, indptr, len(number))).nonzero().view(-1)  # waits
        ends = torch.searchsorted(at, indptr)
        few = ends.diff() < count
        if not bool(few.any()):  # waits
            break
        share = torch.where(few, 2 * share, share)
    row, nth = places(ends, len(at))
    order = (number.index_select(0, at).long().add_(2**31) + (row << 32)).sort(stable=True).indices
    is_small = torch.zeros_like(number, dtype=torch.bool)
    return is_small.scatter_(0, at.index_select(0, order), nth < count.index_select(0, row))


def _enough(count: Tensor) -> Tensor:
    """Return how many numbers to expect below a bound, so that most rows have ``count`` there,
    float64.
    """
    return count + 4 * count.double().sqrt_() + 4


def _of_copies(ids: Tensor, copies: Tensor, keys: Sequence[Key], early: int) -> Tensor:
    """Return the numbers of later parallel edges, less 2**31, int32: those of ``kernels.labor``."""
    numbers = [
        shifted(mix(stream(key.bits, ids.long()) + copies * GOLDEN), 32).sub_(2**31).int()
        for key in keys[:2]
    ]
    renewed = _hash(_folded(ids), keys[2]) < early - 2**31
    return torch.where(renewed, numbers[1], numbers[0])


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
    return spread((rates(fanout, degree) * _WORDS).ceil_().reciprocal_().mul_(_WORDS), indptr, size)


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
    return (
        ids if ids.dtype == torch.int32 else ids.int() ^ (ids >> 32).int().mul_(_signed(0x9E3779B9))
    )


def _hash(ids: Tensor, key: Key) -> Tensor:
    _, before, between, after = map(_signed, key)
    x = _round(ids ^ before, 0x21F0AAAD, 0xD35A2D97)
    x = _round(x.bitwise_xor_(between), 0x7FEB352D, 0x846CA68B)
    return x.bitwise_xor_(after ^ -(2**31))  # the sign bit turned: as if 2**31 was taken off


def _round(x: Tensor, one: int, two: int) -> Tensor:
    for by, factor in ((16, one), (15, two)):
        x = x ^ (x >> by).bitwise_and_((1 << (32 - by)) - 1)
        x.mul_(_signed(factor))
    return x.bitwise_xor_((x >> 15).bitwise_and_((1 << 17) - 1))


def _signed(bits: int) -> int:
    """Return the integer that has the same 32 bits in int32 as ``bits`` in uint32."""
    return bits - (1 << 32) if bits >> 31 else bits
