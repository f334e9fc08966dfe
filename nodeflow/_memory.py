"""Memory of large results, used again, so that the system need not make fresh pages for every step.

The system hands out memory in pages that it fills with zeros when they are first written to. A training step makes
matrices of the same sizes again and again, so the memory of one that is no longer needed is kept for the next.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT = 2**28
"""Bytes kept at most."""
LEAST = 2**18
"""Bytes of the smallest result that is given memory from here: of smaller ones malloc takes care."""

_spare: dict[int, list[NDArray[np.uint8]]] = {}
_kept = 0


def room(shape: tuple[int, ...], dtype: np.dtype[Any], *, zeros: bool = False) -> NDArray[Any]:
    """Return a new array, not filled unless with ``zeros``; its memory is taken back when the array is gone.

    No lock: what threads do at the same time to a list is safe, and a count that is off for that reason does no harm
    (a finalizer may run at any point of any thread, which could never take a lock).
    """
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST:
        return np.zeros(shape, dtype) if zeros else np.empty(shape, dtype)
    step = 1 << (size.bit_length() - 4)  # eight sizes from one power of two to the next
    whole = -(-size // step) * step
    memory = _taken(whole)
    fresh = memory is None
    if memory is None:
        memory = (np.zeros if zeros else np.empty)(whole, np.uint8)
    array = memory[:size].view(dtype).reshape(shape)
    if zeros and not fresh:
        array.fill(0)
    weakref.finalize(array, _give_back, memory).atexit = False
    return array


def _taken(size: int) -> NDArray[np.uint8] | None:
    global _kept
    try:
        memory = _spare[size].pop()
    except (KeyError, IndexError):
        return None
    _kept -= size
    return memory


def _give_back(memory: NDArray[np.uint8]) -> None:
    global _kept
    if _kept + len(memory) > KEPT:
        release()
    if len(memory) <= KEPT:
        _kept += len(memory)
        _spare.setdefault(len(memory), []).append(memory)


def release() -> None:
    """Give what is kept back to the system."""
    global _kept
    _spare.clear()
    _kept = 0
