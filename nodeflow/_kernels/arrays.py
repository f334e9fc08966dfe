"""Binary searches in parts of ascending arrays, and arrays that grow."""

import numpy as np
from numba import njit

from nodeflow._kernels.loops import inlined

# so many are compared one after another, without a branch that would often be predicted wrong
_FEW = 4


@inlined
def first_at_least(values, first, end, bound):
    """The first i from ``first`` to ``end`` with ``values[i] >= bound``; ``end`` where there is
    none.
    """
    while end - first > _FEW:
        middle = (first + end) >> 1
        if values[middle] < bound:
            first = middle + 1
        else:
            end = middle
    place = first
    for p in range(first, end):
        place += np.int64(values[p] < bound)
    return place


@inlined
def first_above(values, first, end, bound):
    """The first i from ``first`` to ``end`` with ``values[i] > bound``; ``end`` where there is
    none.
    """
    while end - first > _FEW:
        middle = (first + end) >> 1
        if values[middle] > bound:
            end = middle
        else:
            first = middle + 1
    place = first
    for p in range(first, end):
        place += np.int64(values[p] <= bound)
    return place


@inlined
def step_past(left_out, first, last, p):
    """Return the position of the edge that would be at ``p`` without the edges at
    ``left_out[first:last]``.

    These are the edges of the same row that are left out, ascending.
    """
    low = first
    high = last
    while low < high:
        middle = (low + high) >> 1
        if left_out[middle] - (middle - first) <= p:
            low = middle + 1
        else:
            high = middle
    return p + low - first


@njit
def reserve(array, used, more):
    """Return an array that begins with the first ``used`` entries of ``array`` and has space for
    ``more`` further ones.

    That is ``array`` itself where it is long enough, else a copy of twice the size that is needed.
    The entries are copied in a loop: for an assignment to a slice numba also compiles an error
    message, which takes seconds.
    """
    if used + more <= array.shape[0]:
        return array
    grown = np.empty(2 * (used + more), array.dtype)
    for i in range(used):
        grown[i] = array[i]
    return grown
