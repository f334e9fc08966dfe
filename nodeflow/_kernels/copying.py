"""Rows copied by number. Rows of ``words`` and ``out`` are ``width`` words, one after another.

Rows lie at random places, so what counts is how many loads are under way at once: every loop asks
for a row some rows before it copies it.
"""

# What is not good yet: rows are written into the caches, also where these cannot hold them, and
# ``copy_found`` is ``copy_rows`` with a branch.

import numpy as np
from numba import njit

from nodeflow._kernels.instructions import LINE, prefetch_lines
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64

_LINES = 256  # that may be asked for at a time: half of the smallest cache


@njit
def rows_ahead(words, width, most):
    """Return how many rows may be asked for at a time, at most ``most``."""
    return min(most, _LINES // (width // (LINE // words.itemsize) + 1))


@loop
def copy_found(words, width, at, out):
    """Copy row ``at[i]`` to row i of ``out``, for all i where it is not -1."""
    n = at.shape[0]
    ahead = max(2, rows_ahead(words, width, 16))
    for late in range(n + ahead):
        if late < n and at[U64(late)] >= 0:
            prefetch_lines(words, at[U64(late)] * width, width)
        i = late - ahead
        if i >= 0 and at[U64(i)] >= 0:
            begin = at[U64(i)] * width
            to = i * width
            for c in range(width):
                out[U64(to + c)] = words[U64(begin + c)]


@loop
def copy_rows(words, width, source, out, target):
    """Copy row ``source[i]`` to row ``target[i]`` of ``out``, or to row i where that is None.

    Returns the place of the first number that is not a row, or -1: then all rows are copied.
    """
    n = source.shape[0]
    size = words.shape[0] // width
    ahead = max(2, rows_ahead(words, width, 16))
    for i in range(n):
        if source[U64(i)] < 0 or source[U64(i)] >= size:
            return i
    # without the branches of ``copy_found``, which would take a tenth more time
    for late in range(n + ahead):
        if late < n:
            prefetch_lines(words, source[U64(late)] * width, width)
        i = late - ahead
        if i >= 0:
            begin = source[U64(i)] * width
            to = (i if target is None else target[U64(i)]) * width
            for c in range(width):
                out[U64(to + c)] = words[U64(begin + c)]
    return np.int64(-1)


@loop
def find_places(place, ids, at, cold):
    """Write ``place[id]`` of every id into ``at``; return how many are -1. ``cold`` gets their
    numbers, ascending.

    Separate from the copies, so that many of these reads are in flight without explicit
    prefetching.
    """
    count = 0
    for i in range(ids.shape[0]):
        row = np.int64(place[U64(ids[U64(i)])])
        at[U64(i)] = row
        if row < 0:
            cold[U64(count)] = i
            count += 1
    return count
