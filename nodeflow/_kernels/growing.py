"""Arrays that grow."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit
def reserve(array, used, more):
    """Return an array that begins with the first ``used`` entries of ``array`` and has space for ``more`` further ones.

    That is ``array`` itself where it is long enough, else a copy of twice the size that is needed. The entries are
    copied in a loop: for an assignment to a slice numba also compiles an error message, which takes seconds.
    """
    if used + more <= array.shape[0]:
        return array
    grown = np.empty(2 * (used + more), array.dtype)
    for i in range(used):
        grown[i] = array[i]
    return grown
