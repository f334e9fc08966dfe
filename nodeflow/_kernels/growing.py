"""Arrays that grow."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit
def longer(array, used, size):
    """Return an array of ``size`` entries that begins with the first ``used`` of ``array``.

    By a loop: to assign to a slice, numba also compiles the words of an error message, which takes seconds.
    """
    grown = np.empty(size, array.dtype)
    for i in range(used):
        grown[i] = array[i]
    return grown


@njit
def room(array, used, more):
    """Return the array, or a longer one with its first ``used`` entries, so that ``more`` fit."""
    return array if used + more <= array.shape[0] else longer(array, used, 2 * (used + more))
