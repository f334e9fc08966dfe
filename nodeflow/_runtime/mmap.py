"""Large arrays outside the heap.

On the heap, what lives longer soon lies between large arrays that come and go, so that every batch needs new memory for
them, and what they have left does not go back to the system. Here it does; and an array may be far too long at first,
since only the pages that are written to take memory.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import DTypeLike

from nodeflow._base.types import Array


def outside(size: int, kind: DTypeLike) -> Array:
    """Return zeros that are in no other process, also not in its forks."""
    memory = mmap.mmap(-1, max(size, 1) * np.dtype(kind).itemsize, access=mmap.ACCESS_COPY)
    return np.frombuffer(memory, kind)[:size]


def copied_outside(array: Array, kind: DTypeLike | None = None) -> Array:
    """Return a copy, of another type where one is given."""
    out = outside(len(array), array.dtype if kind is None else kind)
    out[:] = array
    return out
