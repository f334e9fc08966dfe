"""Large arrays outside the heap, in anonymous memory maps.

On the heap, small objects that live long come to lie between large arrays that are made and freed for every batch. The
gaps cannot be used again, nor go back to the system. Maps go back at once. An array may also be longer than needed:
only pages that are written to take memory.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import DTypeLike

from nodeflow._base.types import Array


def outside(size: int, kind: DTypeLike) -> Array:
    """Return an array of ``size`` zeros. A child made by fork has a copy of its own."""
    memory = mmap.mmap(-1, max(size, 1) * np.dtype(kind).itemsize, access=mmap.ACCESS_COPY)
    return np.frombuffer(memory, kind)[:size]


def copied_outside(array: Array, kind: DTypeLike | None = None) -> Array:
    """Return a copy of ``array`` outside the heap, with the type ``kind`` where one is given."""
    out = outside(len(array), array.dtype if kind is None else kind)
    out[:] = array
    return out
