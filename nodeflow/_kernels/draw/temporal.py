"""Temporal draws: the past edges of a row, by binary search in edges sorted by time."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.prefetch import prefetch

_AHEAD = 16  # rows between the prefetch of an entry of indptr and its use


@njit(nogil=True, cache=True)
def plan_past(indptr, stamps, rows, limits, context, fanout, replace, strict):
    """Return ``(indptr of the draw [n + 1], first position [n], number of past edges [n])`` of n rows.

    The past edges of row ``rows[i]`` have a stamp of at most ``limits[context[i]]``, with ``strict`` a smaller one. The
    row draws ``fanout`` of them (-1: all). ``stamps`` ascend within a row.
    """
    n = rows.shape[0]
    out_indptr, begin, past = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    out_indptr[0] = 0
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, rows[i + _AHEAD])
        limit = limits[context[i]]
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
        out_indptr[i + 1] = out_indptr[i] + number
    return out_indptr, begin, past
