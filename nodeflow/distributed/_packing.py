"""Arrays as bytes that travel, and back: a header of 64-bit integers, then the numbers of each array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow._base.types import Array
from nodeflow._rows.rows import new_rows

Bytes = NDArray[np.uint8]
_KINDS = [np.dtype(kind) for kind in (
    "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16",
)]  # fmt: skip
_ALIGNED = 8


def pack(arrays: Sequence[Array]) -> Bytes:
    """Return arrays as bytes; no arrays are no bytes."""
    if not len(arrays):
        return np.zeros(0, np.uint8)
    head = [len(arrays)]
    for array in arrays:
        head += [_KINDS.index(array.dtype), array.ndim, *array.shape]
    sizes = [-(-array.nbytes // _ALIGNED) * _ALIGNED for array in arrays]
    packed: Bytes = new_rows(8 * len(head) + sum(sizes), (), torch.uint8).numpy()
    packed[: 8 * len(head)] = np.array(head, np.int64).view(np.uint8)
    at = 8 * len(head)
    for array, size in zip(arrays, sizes, strict=True):
        packed[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        packed[at + array.nbytes : at + size] = 0
        at += size
    return packed


def unpack(packed: Bytes) -> list[Array]:
    """Return the arrays that ``pack`` was given; they share the memory of ``packed``."""
    if not len(packed):
        return []
    words = packed[: len(packed) // 8 * 8].view(np.int64)
    count, at = int(words[0]), 1
    kinds: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
    for _ in range(count):
        kind, ndim = (int(word) for word in words[at : at + 2])
        kinds.append((_KINDS[kind], tuple(int(size) for size in words[at + 2 : at + 2 + ndim])))
        at += 2 + ndim
    start, arrays = 8 * at, []
    for dtype, shape in kinds:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        arrays.append(packed[start : start + size].view(dtype).reshape(shape))
        start += -(-size // _ALIGNED) * _ALIGNED
    return arrays
