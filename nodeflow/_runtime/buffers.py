"""A pool of reusable buffers for large results: asking the system for fresh pages takes as long as filling them."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections import deque
from typing import Final

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from nodeflow._base.types import Array
from nodeflow._runtime import switches

_KEPT: Final = 16
_BYTES: Final = 2**30
_LINE: Final = 64  # bytes that the processor fetches at once; a buffer begins with such a line
_SPARE: Final = 8  # a new buffer has one part in so many to spare, since the next result may be a little larger


class _Buffer:
    """A piece of memory. It equals only itself, so that ``deque.remove`` finds it."""

    __slots__ = ("memory",)

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self.memory = memory


_free: deque[_Buffer] = deque(maxlen=_KEPT)
"""Buffers that nothing uses, the oldest first. Only single steps of the deque are used, which need no lock: a buffer
comes back when a tensor is freed, at any time and in any thread."""


def reused(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an array of undefined content, in the memory of a freed result where one of about that size is kept.

    The memory goes to the next caller when the returned array object is freed, whether or not views of it are left. A
    tensor that ``torch.from_numpy`` makes of the array keeps it alive. At most 16 unused buffers, and at most 1 GiB of
    them, are kept. ``switches.reuse_buffers`` turns the pool off.
    """
    if not switches.reuse_buffers:
        return np.empty(shape, dtype)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = _fitting(size)
    array: Array = buffer.memory[:size].view(dtype).reshape(shape)
    weakref.finalize(array, _give_back, buffer).atexit = False
    return array


def as_tensor(array: NDArray[np.uint8], dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """Return the bytes of an array as a tensor, which keeps the very array alive as long as its memory is used."""
    if len(array) == 0:  # torch does not take every empty array for one of another type
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.from_numpy(array).view(dtype).view(shape)


def _fitting(size: int) -> _Buffer:
    """A buffer of ``size`` bytes or up to a quarter more: the smallest that is free, else a new one."""
    most = size + 2 * (size // _SPARE)
    fitting = [buffer for buffer in tuple(_free) if size <= len(buffer.memory) <= most]
    for buffer in sorted(fitting, key=lambda buffer: len(buffer.memory)):
        with contextlib.suppress(ValueError):  # taken by another thread
            _free.remove(buffer)
            return buffer
    room = size + size // _SPARE
    memory = np.empty(room + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return _Buffer(memory[begin : begin + room])


def _give_back(buffer: _Buffer) -> None:
    _free.append(buffer)
    while sum(len(one.memory) for one in tuple(_free)) > _BYTES:
        try:
            _free.popleft()
        except IndexError:  # another thread did
            break
