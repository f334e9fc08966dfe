"""Uniform draws of neighbours: positions in a graph's edge arrays for a set of destinations."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow.kernels.prefetch import prefetch
from nodeflow.kernels.random import U64, bounded, stream

_AHEAD = 16  # destinations whose row of indptr is asked for early
_SCAN = 32  # up to this many picks, looking through them is faster than a hash set


@njit(nogil=True, cache=True)
def counts(indptr, dst, fanout, replace):  # type: ignore[no-untyped-def]
    """Return the indptr ``[len(dst) + 1]`` of a draw of ``fanout`` neighbours for every destination (-1 = all)."""
    out = np.empty(dst.shape[0] + 1, np.int64)
    out[0] = 0
    for i in range(dst.shape[0]):
        if i + _AHEAD < dst.shape[0]:
            prefetch(indptr, dst[i + _AHEAD])
        number = indptr[dst[i] + 1] - indptr[dst[i]]
        if fanout >= 0 and (number > fanout or (replace and number > 0)):
            number = fanout
        out[i + 1] = out[i] + number
    return out


@njit(nogil=True, cache=True)
def draw_with(indptr, indices, dst, key, out_indptr, pos):  # type: ignore[no-untyped-def]
    """Fill ``pos`` with uniform draws with replacement, as many for each destination as ``out_indptr`` says."""
    for i in range(dst.shape[0]):
        begin = indptr[dst[i]]
        degree = U64(indptr[dst[i] + 1] - begin)
        state = stream(key, dst[i])
        for w in range(out_indptr[i], out_indptr[i + 1]):
            pick, state = bounded(state, degree)
            pos[w] = begin + int64(pick)
            prefetch(indices, pos[w])


@njit(nogil=True, cache=True)
def draw_without(indptr, indices, dst, key, out_indptr, pos):  # type: ignore[no-untyped-def]
    """Fill ``pos`` with uniform subsets of the in-edges, by Floyd's method (Bentley and Floyd 1987).

    A destination whose count equals its degree keeps all its in-edges in the graph's order.
    """
    most = 0
    for i in range(dst.shape[0]):
        most = max(most, out_indptr[i + 1] - out_indptr[i])
    size = 1
    while size < 2 * most:
        size *= 2
    seen = np.empty(size if most > _SCAN else 1, np.int64)
    for i in range(dst.shape[0]):
        begin = indptr[dst[i]]
        degree = indptr[dst[i] + 1] - begin
        start = out_indptr[i]
        count = out_indptr[i + 1] - start
        if count == degree:
            for j in range(count):
                pos[start + j] = begin + j
                prefetch(indices, begin + j)
            continue
        state = stream(key, dst[i])
        hashed = count > _SCAN
        if hashed:
            seen[:] = -1
        # step j picks from the first last + 1 edges; a pick made before is replaced by the new edge, `last`
        for j in range(count):
            last = degree - count + j
            pick, state = bounded(state, U64(last + 1))
            t = begin + int64(pick)
            if hashed:
                if not _add(seen, t):
                    t = begin + last
                    _add(seen, t)
            else:
                for q in range(start, start + j):
                    if pos[q] == t:
                        t = begin + last
                        break
            pos[start + j] = t
            prefetch(indices, t)


@njit(inline="always")
def _add(seen, value):  # type: ignore[no-untyped-def]
    """Add a number to an open-addressing set; False when it was there already."""
    mask = seen.shape[0] - 1
    h = int64((U64(value) * U64(0x9E3779B97F4A7C15)) >> U64(32)) & mask
    while seen[h] != -1:
        if seen[h] == value:
            return False
        h = (h + 1) & mask
    seen[h] = value
    return True
