"""Arrays as bytes: each with its type and shape before it as 64-bit integers, all padded to 8 bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from nodeflow._base.types import Array
from nodeflow._peers.transport import Bytes
from nodeflow._rows.rows import new_rows

_KINDS = tuple(map(np.dtype, ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")))
_PADDING = np.zeros(8, np.uint8)


def pack(arrays: Sequence[Array]) -> Bytes:
    """Return arrays as bytes, none as no bytes."""
    pieces: list[Bytes] = []
    for array in arrays:
        head = np.array([_KINDS.index(array.dtype), array.ndim, *array.shape], np.int64)
        numbers = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces += [head.view(np.uint8), numbers, _PADDING[: -array.nbytes % 8]]
    packed: Bytes = new_rows(sum(map(len, pieces)), (), torch.uint8).numpy()
    return np.concatenate(pieces, out=packed) if pieces else packed


def unpack(packed: Bytes) -> list[Array]:
    """Return the arrays that ``pack`` was given; they share the memory of ``packed``."""
    words, arrays, at = packed.view(np.int64), [], 0
    while at < len(words):
        kind, ndim = words[at : at + 2].tolist()
        shape, dtype = words[at + 2 : at + 2 + ndim].tolist(), _KINDS[kind]
        at += 2 + ndim
        size = math.prod(shape) * dtype.itemsize
        arrays.append(packed[8 * at : 8 * at + size].view(dtype).reshape(shape))
        at += -(-size // 8)
    return arrays
