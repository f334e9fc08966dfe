"""Temporal draws: the past edges of a row, by binary search in edges sorted by time."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.prefetch import prefetch_at
from nodeflow._kernels.search import first_above, first_at_least

_AHEAD = 16  # rows between the prefetch of an entry of indptr and its use


@njit(nogil=True, cache=True)
def plan_past(indptr, stamps, rows, limits, starts, context, fanout, replace, strict):
    """Return ``(indptr of the draw [n + 1], first position [n], number of past edges [n])`` of n rows.

    The past edges of row ``rows[i]`` have a stamp of at most ``limits[context[i]]``, with ``strict`` a smaller one,
    and of at least ``starts[context[i]]``, unless ``starts`` is empty. The row draws ``fanout`` of them (-1: all).
    ``stamps`` ascend within a row.
    """
    n = rows.shape[0]
    out_indptr, begin, past = np.zeros(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        prefetch_at(indptr, rows, i + _AHEAD)
        limit = limits[context[i]]
        begin[i] = indptr[rows[i]]
        end = indptr[rows[i] + 1]
        if len(starts):
            begin[i] = first_at_least(stamps, begin[i], end, starts[context[i]])
        now = first_at_least(stamps, begin[i], end, limit) if strict else first_above(stamps, begin[i], end, limit)
        past[i] = now - begin[i]
        number = past[i]
        if fanout >= 0 and (number > fanout or (replace and number > 0)):
            number = fanout
        out_indptr[i + 1] = out_indptr[i] + number
    return out_indptr, begin, past
