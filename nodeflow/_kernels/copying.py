"""Rows copied by number. Rows of ``words`` and ``out`` are ``width`` words, one row after
another.
"""

import numpy as np
from numba import njit

from nodeflow._kernels.instructions import prefetch
from nodeflow._kernels.rng import U64

_LINE = 64  # bytes that the processor fetches at once
_LINES = 256  # that may be asked for at a time: half of the smallest cache


@njit(nogil=True, cache=True)
def gather_at(words, width, at, out):
    """Copy row ``at[i]`` to row i of ``out``, for all i where it is not -1; rows are prefetched."""
    n = at.shape[0]
    line = _LINE // words.itemsize
    ahead = max(2, min(16, _LINES // (width // line + 1)))
    for late in range(n + ahead):
        if late < n and at[U64(late)] >= 0:
            begin = at[U64(late)] * width
            for c in range(0, width, line):
                prefetch(words, begin + c)
            prefetch(words, begin + width - 1)
        i = late - ahead
        if i >= 0 and at[U64(i)] >= 0:
            begin = at[U64(i)] * width
            to = i * width
            for c in range(width):
                out[U64(to + c)] = words[U64(begin + c)]


@njit(nogil=True, cache=True)
def gather_rows(words, width, ids, out):
    """Copy the rows ``ids`` to ``out`` in turn; return the place of the first id that is not a row,
    or -1.
    """
    n = ids.shape[0]
    size = words.shape[0] // width
    line = _LINE // words.itemsize
    ahead = max(2, min(16, _LINES // (width // line + 1)))
    for i in range(n):
        if ids[U64(i)] < 0 or ids[U64(i)] >= size:
            return i
    # as above without its branches, which would take a tenth more time
    for late in range(n + ahead):
        if late < n:
            begin = ids[U64(late)] * width
            for c in range(0, width, line):
                prefetch(words, begin + c)
            prefetch(words, begin + width - 1)
        i = late - ahead
        if i >= 0:
            begin = ids[U64(i)] * width
            to = i * width
            for c in range(width):
                out[U64(to + c)] = words[U64(begin + c)]
    return np.int64(-1)


@njit(nogil=True, cache=True)
def copy_rows(words, width, source, out, target):
    """Copy row ``source[i]`` to row ``target[i]`` of ``out``, for all i; rows are prefetched."""
    n = source.shape[0]
    line = _LINE // words.itemsize
    ahead = max(2, min(16, _LINES // (width // line + 1)))
    for late in range(n + ahead):
        if late < n:
            begin = source[U64(late)] * width
            for c in range(0, width, line):
                prefetch(words, begin + c)
            prefetch(words, begin + width - 1)
        i = late - ahead
        if i >= 0:
            begin = source[U64(i)] * width
            to = target[U64(i)] * width
            for c in range(width):
                out[U64(to + c)] = words[U64(begin + c)]


@njit(nogil=True, cache=True)
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
