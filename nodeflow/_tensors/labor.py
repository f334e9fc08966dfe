"""LABOR-0 with a random number per source: the hash and the Poisson draw of ``_kernels/draw/labor.py`` in tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import torch
from torch import Tensor

from nodeflow._tensors.ragged import ends_of, positions_of, spread, spread_integers

_PIECE: Final = 1 << 17  # edges looked at together, all in-edges of their rows: what is made of them stays in caches
_WORDS: Final = 2.0**32

Words: TypeAlias = tuple[int, int, int]
"""The three words of 32 bits that are made of a key, see ``kernels.labor``."""


def draw_poisson(
    begin: Tensor, degree: Tensor, indices: Tensor, fanout: Tensor, keys: Sequence[Words], early: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(indptr [n + 1], positions [E], sources [E])`` of the edges that n rows keep, int64.

    An edge is kept if the number of its source is below ``ceil(2**32 * p)``, see ``rates``; for ``keys`` and ``early``
    see ``hashed``.
    """
    # a number is compared less 2**31, in int32: the largest that is kept
    largest = (rates(fanout, degree) * _WORDS).ceil_().sub_(2**31 + 1).clamp_(min=-(2**31)).int()
    out = ends_of(degree)
    size, cuts = int(out[-1]), [0, len(degree)]  # waits
    if size > _PIECE:
        at = torch.searchsorted(out, torch.arange(_PIECE, size, _PIECE, device=out.device))
        cuts = sorted({*cuts, *at.tolist()})  # waits
    counts, kept, sources = torch.empty_like(degree), list[Tensor](), list[Tensor]()
    for first, last in pairwise(cuts):
        ends = ends_of(degree[first:last])
        part = int(ends[-1]) if size > _PIECE else size  # waits
        positions = positions_of(begin[first:last], ends, part)
        source = indices.index_select(0, positions)
        keep = hashed(source, keys, early) <= spread_integers(largest[first:last], ends, part)
        chosen = keep.nonzero().view(-1)  # waits
        counts[first:last] = torch.searchsorted(chosen, ends).diff()
        kept.append(positions.index_select(0, chosen))
        sources.append(source.index_select(0, chosen).long())
    return ends_of(counts), torch.cat(kept), torch.cat(sources)


def rates(fanout: Tensor, degree: Tensor) -> Tensor:
    """Return the probabilities of the edges of rows, float64 ``[n]``: 1, or fanout / degree where that is less."""
    share = fanout.double().div_(degree.clamp(min=1))  # int64 / int64 would be float32
    return torch.where((fanout < 0) | (degree <= fanout), 1.0, share)


def inverses(fanout: Tensor, degree: Tensor, indptr: Tensor, size: int) -> Tensor:
    """Return 1 / p of every drawn edge, float64 ``[size]``, where p is rounded up to a multiple of 2**-32."""
    return spread((rates(fanout, degree) * _WORDS).ceil_().reciprocal_().mul_(_WORDS), indptr, size)


def hashed(ids: Tensor, keys: Sequence[Words], early: int) -> Tensor:
    """Return the number of every id less 2**31, int32: that of ``kernels.labor.hash_block``.

    It is made under ``keys[0]``, or under ``keys[1]`` where a number made under ``keys[2]`` is below ``early``.
    """
    # of an id beyond 32 bits, the upper ones are folded into the lower ones
    low = ids if ids.dtype == torch.int32 else ids.int() ^ (ids >> 32).int().mul_(_signed(0x9E3779B9))
    number = _hash(low, keys[0])
    if early:
        number = torch.where(_hash(low, keys[2]) < early - 2**31, _hash(low, keys[1]), number)
    return number


def _hash(ids: Tensor, key: Words) -> Tensor:
    before, between, after = map(_signed, key)
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
