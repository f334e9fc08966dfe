"""The past of rows whose edges are sorted by time: found by binary search."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.prefetch import prefetch

_AHEAD = 16  # rows whose place in indptr is asked for early


@njit(nogil=True, cache=True)
def plan_past(indptr, stamps, rows, limits, which, fanout, replace, strict):
    """Return ``(indptr of the draw [n + 1], first position [n], number of past edges [n])`` for n rows.

    Row ``rows[i]`` sees its edges with a stamp up to ``limits[which[i]]``, with ``strict`` those below it, and draws
    ``fanout`` of them (-1 = all). ``stamps`` ascend within a row.
    """
    n = rows.shape[0]
    out, begin, past = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    out[0] = 0
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, rows[i + _AHEAD])
        limit = limits[which[i]]
        begin[i] = indptr[rows[i]]
        low, high = begin[i], indptr[rows[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if stamps[middle] < limit or (not strict and stamps[middle] == limit):
                low = middle + 1
            else:
                high = middle
        past[i] = low - begin[i]
        number = past[i]
        if fanout >= 0 and (number > fanout or (replace and number > 0)):
            number = fanout
        out[i + 1] = out[i] + number
    return out, begin, past
