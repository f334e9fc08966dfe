"""Rows of a matrix picked by number, which are asked for well before they are read."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import U64

_LINE = 64  # bytes that the processor fetches at once
_LINES = 256  # that may be asked for at a time: half of the smallest cache


@njit(nogil=True, cache=True)
def gather_rows(words, width, ids, out):
    """Copy the rows ``ids`` of ``words``, rows of ``width`` words one after another, into ``out``, likewise.

    Returns the place of the first id that is not a row, or -1.
    """
    n, size = ids.shape[0], words.shape[0] // width
    line = _LINE // words.itemsize
    ahead = max(2, min(16, _LINES // (width // line + 1)))
    for i in range(n):
        if ids[U64(i)] < 0 or ids[U64(i)] >= size:
            return i
    for late in range(n + ahead):
        if late < n:
            begin = ids[U64(late)] * width
            for c in range(0, width, line):
                prefetch(words, begin + c)
            prefetch(words, begin + width - 1)
        i = late - ahead
        if i >= 0:
            begin, to = ids[U64(i)] * width, i * width
            for c in range(width):
                out[U64(to + c)] = words[U64(begin + c)]
    return np.int64(-1)
