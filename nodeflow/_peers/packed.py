"""Arrays as bytes: each with its type and shape before it, all padded to 8 bytes.

The head of an array are 64-bit integers: one that says how it travels, its sizes, and the first or smallest entry
unless it travels as it is. Integers travel in the narrowest type that holds them: those that ascend, such as sorted
ids, as their differences, others less the smallest of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from nodeflow._base.types import Array
from nodeflow._peers.transport import Bytes
from nodeflow._rows.rows import new_rows

_KINDS = tuple(map(np.dtype, ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")))
_NARROW = _KINDS[:3]
_AS_THEY_ARE, _OFFSETS, _STEPS = range(3)
_LEAST = 256  # bytes of an array for which it is worth a look
_PROBE = 32  # entries that say whether an array may ascend
_PADDING = np.zeros(8, np.uint8)


def pack(arrays: Sequence[Array]) -> Bytes:
    """Return arrays as bytes, none as no bytes."""
    pieces: list[Bytes] = []
    for array in arrays:
        how, first, numbers = _narrowed(array)
        word = ((how * 16 + _KINDS.index(numbers.dtype)) * 16 + _KINDS.index(array.dtype)) * 64 + array.ndim
        head = np.array([word, *array.shape, first][: 1 + array.ndim + (how > 0)], np.int64)
        pieces += [head.view(np.uint8), np.ascontiguousarray(numbers).reshape(-1).view(np.uint8)]
        pieces.append(_PADDING[: -numbers.nbytes % 8])
    packed: Bytes = new_rows(sum(map(len, pieces)), (), torch.uint8).numpy()
    return np.concatenate(pieces, out=packed) if pieces else packed


def unpack(packed: Bytes) -> list[Array]:
    """Return the arrays that ``pack`` was given; those that travelled as they are share the memory of ``packed``."""
    words, arrays, at = packed.view(np.int64), [], 0
    while at < len(words):
        word, ndim = divmod(int(words[at]), 64)
        how, dtype, kind = word // 256, _KINDS[word // 16 % 16], _KINDS[word % 16]
        shape = words[at + 1 : at + 1 + ndim].tolist()
        at += 1 + ndim
        first = int(words[at]) if how else 0
        at += how > 0
        size = (math.prod(shape) - (how == _STEPS)) * dtype.itemsize
        numbers = packed[8 * at : 8 * at + size].view(dtype)
        at += -(-size // 8)
        arrays.append(_widened(how, first, numbers, kind).reshape(shape))
    return arrays


def _narrowed(array: Array) -> tuple[int, int, Array]:
    """How integers travel, the first or smallest of them, and the differences or offsets from it."""
    if array.dtype.kind != "i" or array.itemsize < 4 or array.ndim != 1 or array.nbytes < _LEAST:
        return _AS_THEY_ARE, 0, array
    smallest = int(array.min())
    span = int(array.max()) - smallest
    if span < 2**63 and (array[1:_PROBE] >= array[: _PROBE - 1]).all():
        steps = np.diff(array.astype(np.int64, copy=False))
        if (steps >= 0).all() and (kind := _narrowest(int(steps.max()), array)) is not None:
            return _STEPS, smallest, steps.astype(kind)
    kind = _narrowest(span, array)
    if kind is None:
        return _AS_THEY_ARE, 0, array
    return _OFFSETS, smallest, (array - array.dtype.type(smallest)).astype(kind)


def _narrowest(most: int, array: Array) -> np.dtype | None:
    """The narrowest unsigned type up to ``most``; None where that of the array is as narrow."""
    kinds = (kind for kind in _NARROW if most <= np.iinfo(kind).max and kind.itemsize < array.itemsize)
    return next(kinds, None)


def _widened(how: int, first: int, numbers: Array, kind: np.dtype) -> Array:
    """The integers that travelled so."""
    if how == _AS_THEY_ARE:
        return numbers
    if how == _OFFSETS:
        offsets: Array = numbers.astype(kind) + kind.type(first)
        return offsets
    steps = np.empty(len(numbers) + 1, np.int64)
    steps[0], steps[1:] = first, numbers
    return np.cumsum(steps).astype(kind, copy=False)
