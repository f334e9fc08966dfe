"""Arrays as bytes: each with its type and shape before it, all padded to 8 bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from nodeflow._core.base.types import Array
from nodeflow._core.rows.rows import new_rows
from nodeflow._processes.transport import Bytes

_NAMES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")
_KINDS = tuple(map(np.dtype, _NAMES))
_DIMS = 64  # more than an array can have
_PADDING = np.zeros(8, np.uint8)


def pack(arrays: Sequence[Array]) -> Bytes:
    """Return arrays as bytes, none as no bytes."""
    pieces: list[Bytes] = []
    for array in arrays:
        kind = _KINDS.index(array.dtype)
        head = np.array([kind * _DIMS + array.ndim, *array.shape], np.int64)
        numbers = np.ascontiguousarray(array).reshape(-1)
        pieces += head.view(np.uint8), numbers.view(np.uint8), _PADDING[: -array.nbytes % 8]
    size = sum(map(len, pieces))
    packed: Bytes = new_rows(size, (), torch.uint8).numpy()
    return np.concatenate(pieces, out=packed) if pieces else packed


def unpack(packed: Bytes) -> list[Array]:
    """Return the arrays that ``pack`` was given; they share the memory of ``packed``."""
    words = packed.view(np.int64)
    arrays = []
    word = 0
    while word < len(words):
        kind, ndim = divmod(int(words[word]), _DIMS)
        shape = words[word + 1 : word + 1 + ndim].tolist()
        word += 1 + ndim
        dtype = _KINDS[kind]
        size = math.prod(shape) * dtype.itemsize
        arrays.append(packed[8 * word : 8 * word + size].view(dtype).reshape(shape))
        word += -(-size // 8)
    return arrays
