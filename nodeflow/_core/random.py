"""A counter-based random number generator: every number is a pure function of a key, an id and the
number of the draw.

Nothing reads or changes global random state, and no generator carries state from one draw to the
next. So a draw does not depend on earlier draws, nor on the thread or process that makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import LARGEST, Ints, as_count, as_ids, as_int, describe
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import IdsLike

__all__ = ["Random", "derive_key", "hash_ids"]

_MASK: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
_START: Final = int.from_bytes(b"nodeflow", "big")
# in place of GOLDEN for a negative word
_NEGATIVE: Final = 0xD1342543DE82EF95
# for the bits of a word beyond its lowest 64
_MORE: Final = 0xAF251AF3B0F025B5


def mix(z: int) -> int:
    """Return 64 random bits of a state of 64 bits: the finalizer of SplitMix64 (Steele, Lea, Flood
    2014).
    """
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def derive_key(*words: int | str) -> int:
    """Return a 64-bit key that depends on words, such as a purpose, a seed and an epoch, and on
    their order.

    Integers may have any size: all their bits and their sign count. Text stands for the integer
    whose bytes, highest first, are its letters in UTF-8.

    >>> derive_key("order", 0, 1) == derive_key("order", 0, 1), derive_key(0, 1) == derive_key(1, 0)
    (True, False)
    """
    key = _START
    for value in words:
        if isinstance(value, str):
            word = int.from_bytes(value.encode(), "big")
        else:
            word = value
        bits_left, step = (word, GOLDEN) if word >= 0 else (~word, _NEGATIVE)
        key = mix(((key + step) & _MASK) ^ mix(bits_left & _MASK))
        while bits_left := bits_left >> 64:
            key = mix(((key + _MORE) & _MASK) ^ mix(bits_left & _MASK))
    return key


def hash_ids(ids: Ints) -> int:
    """Return a 64-bit hash of an int64 array of ids, which depends on their order.

    >>> first, second = np.array([3, 1]), np.array([1, 3])
    >>> hash_ids(first) == hash_ids(first.copy()), hash_ids(first) == hash_ids(second)
    (True, False)
    """
    ids = as_ids(ids, "ids", LARGEST + 1, "any", lower=-LARGEST - 1)
    return hash_pieces([ids], len(ids))


def hash_pieces(pieces: Iterable[Ints], length: int) -> int:
    """Return ``hash_ids`` of an array that comes in consecutive pieces, ``length`` ids in all."""
    # a sum over positions does not depend on the pieces that an array comes in
    total = np.uint64(0)
    begin = 0
    for ids in pieces:
        bits = Random(derive_key(length)).bits(ids)
        order = Random(derive_key(1)).bits(np.arange(begin, begin + len(ids)))
        with np.errstate(over="ignore"):
            mixed = Random(2).bits((bits ^ order).view(np.int64))
            total = np.add.reduce(mixed, initial=total)
        begin += len(ids)
    return int(total)


class Random(Frozen):
    """Random numbers for ids under one key; number ``draw`` of an id is always the same.

    Args:
        key: any integer; different keys give independent numbers. A key that is negative or has
            more than 64 bits is replaced by ``derive_key(key)``.

    >>> Random(7).uniform([5, 6]).equal(Random(7).uniform([6, 5]).flip(0))
    True
    """

    __slots__ = ("key",)
    key: int

    def __init__(self, key: int) -> None:
        number = as_int(key, "key")
        self._set(key=number if 0 <= number <= _MASK else derive_key(number))

    def __repr__(self) -> str:
        return f"Random({self.key})"

    def bits(self, ids: Ints, draw: int = 0) -> NDArray[np.uint64]:
        """Return 64 random bits for every id of an int64 array, uint64 ``[len(ids)]``."""
        out = np.empty(len(ids), np.uint64)
        kernels.rng.fill_bits(np.uint64(self.key), ids, draw, out)
        return out

    def uniform(self, ids: IdsLike, draw: int = 0) -> Tensor:
        """Return a number uniform in [0, 1), with 53 random bits, for every id (0 or more), float64
        ``[len(ids)]``.
        """
        bits = self.bits(as_ids(ids, "ids", LARGEST), as_count(draw, "draw"))
        return torch.from_numpy((bits >> np.uint64(11)) * 2.0**-53)

    def integers(self, ids: IdsLike, bounds: IdsLike | int, draw: int = 0) -> Tensor:
        """Return an integer exactly uniform in ``[0, bound)`` for every id, int64 ``[len(ids)]``.

        ``bounds`` is one integer, or one per id, at least 1 and below 2^63. Raises TypeError for
        bounds that are not integers, ValueError for bounds out of range.
        """
        checked = as_ids(ids, "ids", LARGEST)
        numbers = np.asarray(bounds)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise TypeError(f"bounds must be integers below 2**63, got {describe(bounds)}")
        if numbers.shape not in ((), checked.shape):
            raise ValueError(
                f"bounds must be one integer or one per id ({len(checked)}), got shape "
                f"{numbers.shape}"
            )
        if numbers.size and (numbers.min() < 1 or numbers.max() > LARGEST):
            raise ValueError(
                f"bounds must be at least 1 and below 2**63, got {numbers.min()} to {numbers.max()}"
            )
        limits = np.broadcast_to(numbers, checked.shape).astype(np.int64)
        out = np.empty(len(checked), np.int64)
        kernels.rng.fill_bounded(np.uint64(self.key), checked, as_count(draw, "draw"), limits, out)
        return torch.from_numpy(out)

    def permutation(self, size: int) -> Tensor:
        """Return a random permutation of 0..size-1, int64 ``[size]``."""
        bits = self.bits(np.arange(as_count(size, "size")))
        return torch.from_numpy(np.argsort(bits, kind="stable"))
