"""Uniform draws of neighbours: positions in a graph's edge arrays for a set of destinations."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.csr import step_past
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import U64, bounded, stream

_AHEAD = 16  # destinations whose row of indptr is asked for early
_LAG = 64  # edges between asking for a neighbour's id and reading it
_SCAN = 32  # up to this many picks, looking through them is faster than a hash set


@njit(nogil=True, cache=True)
def plan(indptr, dst, fanouts, ident, replace, left_out):
    """Return ``(indptr of the draw [n + 1], first position [n], degree [n])`` for n rows ``dst``.

    ``fanouts`` has one number per type of rows (-1 = all); the type of row i is ``ident[i]`` modulo their number. The
    edges at the positions ``left_out`` (ascending) do not count in the degrees: draws are then ranks among the others,
    see ``step_over``.
    """
    n, kinds = dst.shape[0], fanouts.shape[0]
    out, begin, degree = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    out[0] = 0
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, dst[i + _AHEAD])
        begin[i] = indptr[U64(dst[i])]
        degree[i] = indptr[U64(dst[i] + 1)] - begin[i]
        if left_out.shape[0] > 0:
            first = np.searchsorted(left_out, begin[i])
            if first < left_out.shape[0] and left_out[first] < begin[i] + degree[i]:
                degree[i] -= np.searchsorted(left_out, begin[i] + degree[i]) - first
        number = degree[i]
        fanout = fanouts[0] if kinds == 1 else fanouts[ident[i] % kinds]
        if fanout >= 0 and (number > fanout or (replace and number > 0)):
            number = fanout
        out[i + 1] = out[i] + number
    return out, begin, degree


@njit(nogil=True, cache=True)
def draw_with(begin, degree, near, dst, key, fanouts, out_indptr, pos, ids):
    """Fill ``pos`` with uniform draws with replacement, as many for each destination as ``out_indptr`` says.

    A destination whose fanout is -1 keeps all once. ``ids`` receives the neighbours at these positions.
    """
    read, kinds = 0, fanouts.shape[0]
    for i in range(dst.shape[0]):
        if kinds > 1 and fanouts[dst[i] % kinds] < 0:
            for w in range(out_indptr[i], out_indptr[i + 1]):
                pos[w] = begin[i] + w - out_indptr[i]
            continue
        state = stream(key, dst[i])
        for w in range(out_indptr[i], out_indptr[i + 1]):
            pick, state = bounded(state, U64(degree[i]))
            pos[U64(w)] = begin[i] + int64(pick)
            prefetch(near, begin[i] + int64(pick))
        read = _gather(near, pos, ids, read, out_indptr[i + 1] - _LAG)
    _gather(near, pos, ids, read, pos.shape[0])


@njit(nogil=True, cache=True)
def draw_without(begin, degree, near, dst, key, out_indptr, pos, ids):
    """Fill ``pos`` with uniform subsets of the in-edges, by Floyd's method (Bentley and Floyd 1987).

    Step j picks from the first ``last + 1`` edges; an edge picked before is replaced by the new one, ``last``. A
    destination whose count equals its degree keeps all its in-edges in the graph's order. ``ids`` receives the
    neighbours at the positions.
    """
    read, most = 0, 0
    for i in range(dst.shape[0]):
        if out_indptr[i + 1] - out_indptr[i] < degree[i]:
            most = max(most, out_indptr[i + 1] - out_indptr[i])
    size = 1
    while size < 2 * most:
        size *= 2
    seen = np.empty(size if most > _SCAN else 1, np.int64)
    for i in range(dst.shape[0]):
        first, start, count = begin[i], out_indptr[i], out_indptr[i + 1] - out_indptr[i]
        read = _gather(near, pos, ids, read, start - _LAG)
        if count == degree[i]:
            for j in range(count):
                pos[U64(start + j)] = first + j
                prefetch(near, first + j)
            continue
        state = stream(key, dst[i])
        if degree[i] <= 64:  # one bit per edge tells what was picked, without a branch that could be guessed wrong
            picked = U64(0)
            for j in range(count):
                last = degree[i] - count + j
                pick, state = bounded(state, U64(last + 1))
                before = (picked >> pick) & U64(1)
                pick = pick + before * (U64(last) - pick)
                picked |= U64(1) << pick
                pos[U64(start + j)] = first + int64(pick)
                prefetch(near, first + int64(pick))
            continue
        hashed = count > _SCAN
        if hashed:
            seen[:] = -1
        maybe = U64(0)  # a bit that is not set says that no pick so far has this remainder: nothing to look through
        for j in range(count):
            last = degree[i] - count + j
            pick, state = bounded(state, U64(last + 1))
            t = first + int64(pick)
            if hashed:
                if not _add(seen, t):
                    t = first + last
                    _add(seen, t)
            elif (maybe >> (pick & U64(63))) & U64(1):
                for q in range(start, start + j):
                    if pos[U64(q)] == t:
                        t = first + last
                        break
            maybe |= U64(1) << (U64(t - first) & U64(63))
            pos[U64(start + j)] = t
            prefetch(near, t)
    _gather(near, pos, ids, read, pos.shape[0])


@njit(nogil=True, cache=True)
def step_over(indptr, dst, left_out, near, out_indptr, pos, ids):
    """Turn ranks among the edges that are not left out (see ``plan``) into positions, and read their neighbours."""
    for i in range(dst.shape[0]):
        first = np.searchsorted(left_out, indptr[dst[i]])
        if first == left_out.shape[0] or left_out[first] >= indptr[dst[i] + 1]:
            continue
        last = np.searchsorted(left_out, indptr[dst[i] + 1])
        for w in range(out_indptr[i], out_indptr[i + 1]):
            p = step_past(left_out, first, last, int64(pos[w]))
            pos[w] = p
            ids[w] = near[p]


@njit(inline="always")
def _gather(near, pos, ids, start, stop):
    for w in range(start, stop):
        ids[U64(w)] = near[U64(pos[U64(w)])]  # unsigned: a sign would have to be looked at
    return max(start, stop)


@njit(inline="always")
def _add(seen, value):
    """Add a number to an open-addressing set; False when it was there already."""
    mask = seen.shape[0] - 1
    h = int64((U64(value) * U64(0x9E3779B97F4A7C15)) >> U64(32)) & mask
    while seen[h] != -1:
        if seen[h] == value:
            return False
        h = (h + 1) & mask
    seen[h] = value
    return True
