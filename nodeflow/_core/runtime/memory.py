"""Memory of large arrays, under three policies; asking the system for fresh pages takes as long as
filling them.

- ``reused``: results. A freed result leaves its memory to a later one of similar size.
- ``take_scratch``: work space of any size, which one batch leaves to the next.
- ``outside``: memory outside the heap. There, small objects that live long come to lie between
  large arrays that are made and freed for every batch; the gaps cannot be used again, nor go back
  to the system. Memory maps go back at once, and only their pages that are written to take memory.

``process.reuse_buffers`` turns the first two off.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import weakref
from collections import deque
from typing import Final

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.runtime import process

_KEPT: Final = 16
_BYTES: Final = 2**30
_LINE: Final = 64  # bytes that the processor fetches at once; a buffer begins with such a line
_SPARE: Final = 8  # a new buffer is larger by 1 / 8, since the next result may be a little larger

_free: dict[int, NDArray[np.uint8]] = {}
"""Buffers that nothing uses, by their ids, the oldest first. Only single steps of the dict are
used, which need no lock: a buffer comes back when a tensor is freed, at any time and in any
thread.
"""
_scratch: deque[tuple[Ints, Ints]] = deque(maxlen=_KEPT)
"""Pairs of arrays that nothing uses, the last used one last. Single steps of the deque need no
lock.
"""


def reused(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an array of undefined content, in the memory of a freed result where one of about that
    size is kept.

    The memory goes to the next caller when the returned array object is freed, whether or not views
    of it are left. A tensor that ``torch.from_numpy`` makes of the array keeps it alive. At most 16
    unused buffers, and at most 1 GiB of them, are kept.
    """
    if not process.reuse_buffers:
        return np.empty(shape, dtype)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = _fitting(size)
    array: Array = buffer[:size].view(dtype).reshape(shape)
    # The finalizer is tied to this array object: torch.from_numpy keeps it alive, numpy views may
    # not.
    weakref.finalize(array, _give_back, buffer).atexit = False
    return array


def as_tensor(array: NDArray[np.uint8], dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """Return the bytes of an array as a tensor, which keeps the very array alive as long as its
    memory is used.
    """
    # torch does not take every empty array for one of another type
    if len(array) == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.from_numpy(array).view(dtype).view(shape)


def _fitting(size: int) -> NDArray[np.uint8]:
    """A buffer of ``size`` bytes or up to a quarter more: the smallest that is free, else a new
    one.
    """
    most = size + 2 * (size // _SPARE)
    for buffer in sorted(
        (kept for kept in list(_free.values()) if size <= len(kept) <= most), key=len
    ):
        if _free.pop(id(buffer), None) is not None:  # else another thread took it
            return buffer
    room = size + size // _SPARE
    memory = np.empty(room + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + room]


def _give_back(buffer: NDArray[np.uint8]) -> None:
    _free[id(buffer)] = buffer
    # as a list, since other threads may change it meanwhile
    while len(_free) > _KEPT or sum(buffer.nbytes for buffer in list(_free.values())) > _BYTES:
        # another thread took the oldest
        with contextlib.suppress(KeyError, RuntimeError, StopIteration):
            del _free[next(iter(_free))]


def take_scratch() -> tuple[Ints, Ints]:
    """Return two int64 arrays of undefined content and of any length, which is 0 where no memory is
    kept.
    """
    if process.reuse_buffers:
        with contextlib.suppress(IndexError):
            return _scratch.pop()
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def leave_scratch(first: Ints, second: Ints, most: int) -> None:
    """Keep two arrays, which nothing may use afterwards, for ``take_scratch``; those beyond
    ``most`` entries are freed.

    Where reuse is turned off nothing is kept.
    """
    if process.reuse_buffers:
        _scratch.append((_unless_large(first, most), _unless_large(second, most)))


def _unless_large(array: Ints, most: int) -> Ints:
    return array if len(array) <= most else np.zeros(0, np.int64)


def outside(size: int, kind: DTypeLike) -> Array:
    """Return an array of ``size`` zeros outside the heap. A child made by fork has a copy of its
    own.
    """
    access = mmap.ACCESS_COPY if hasattr(os, "fork") else mmap.ACCESS_WRITE
    memory = mmap.mmap(-1, max(size, 1) * np.dtype(kind).itemsize, access=access)
    return np.frombuffer(memory, kind)[:size]


def copied_outside(array: Array, kind: DTypeLike | None = None) -> Array:
    """Return a copy of ``array`` outside the heap, with the type ``kind`` where one is given."""
    out = outside(len(array), array.dtype if kind is None else kind)
    out[:] = array
    return out
