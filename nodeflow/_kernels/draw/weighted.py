"""Draws of neighbours in proportion to edge weights: how each row draws, and what its edges then count."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.draw.alias import MOST, SQUARES, TOTAL
from nodeflow._kernels.draw.sampford import may_reject
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import U64

_AHEAD = 16  # rows whose numbers are asked for early
_SHORT = 100  # rows of so many edges may have to be looked through
_CLEAR = 1 + 1e-6  # a row is said to have more edges than it draws only where rounding cannot say so wrongly

TABLE, SCAN, KEEP = 0, 1, 2  # how a row draws: from its alias table; all edges gone through; all non-zero edges


@njit(nogil=True, cache=True)
def plan_weighted(indptr, sums, weights, rows, ident, fanouts, replace):
    """Return ``(indptr of the draw [n + 1], first position, degree, unit, top [n], ways [3, n], sizes [3])``.

    Row w of ``ways`` has the numbers of the rows that draw in way w, ascending, ``sizes[w]`` of them. ``unit`` is
    W / k, the weight that is drawn once on average, 0 for rows that keep all; ``top`` the largest weight in units of
    it. ``fanouts`` is as in ``draw.plan``.
    """
    n, kinds = rows.shape[0], fanouts.shape[0]
    out, begin, degree = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    unit, top = np.zeros(n, np.float64), np.zeros(n, np.float64)
    ways, sizes = np.empty((3, n), np.int64), np.zeros(3, np.int64)
    out[0] = 0
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, rows[i + _AHEAD])
        begin[i] = indptr[U64(rows[i])]
        degree[i] = indptr[U64(rows[i] + 1)] - begin[i]
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(sums, 3 * rows[i + _AHEAD])
            prefetch(sums, 3 * rows[i + _AHEAD] + 2)
            if degree[i + _AHEAD] < _SHORT:
                prefetch(weights, begin[i + _AHEAD])
        r = U64(rows[i])
        fanout = fanouts[0] if kinds == 1 else fanouts[ident[i] % kinds]
        total, most, squares = sums[r, U64(TOTAL)], sums[r, U64(MOST)], sums[r, U64(SQUARES)]
        number, way = fanout, KEEP
        if total == 0 or fanout == 0:
            number = 0
        elif fanout > 0 and (replace or may_reject(float(fanout), degree[i], total, most, squares)):
            way = TABLE
        elif fanout > 0 and fanout < degree[i] and fanout * most * _CLEAR < total:
            way = SCAN
        else:
            number, p = 0, begin[i]
            while p < begin[i] + degree[i] and (fanout < 0 or number <= fanout):
                number += weights[U64(p)] > 0
                p += 1
            if 0 < fanout < number:
                number, way = fanout, SCAN
        if way != KEEP:
            unit[i], top[i] = total / fanout, most * fanout / total
        out[i + 1] = out[i] + number
        ways[way, sizes[way]] = i
        sizes[way] += number > 0
    return out, begin, degree, unit, top, ways, sizes


@njit(nogil=True, cache=True)
def keep_nonzero(rows, begin, weights, near, out_indptr, pos, ids):
    """Fill ``pos`` with the non-zero edges of the rows with the numbers ``rows``; ``ids`` receives the neighbours."""
    for i in rows:
        p = begin[i] - 1
        for w in range(out_indptr[i], out_indptr[i + 1]):
            p += 1
            while weights[U64(p)] == 0:
                p += 1
            pos[U64(w)], ids[U64(w)] = p, near[U64(p)]


@njit(nogil=True, cache=True)
def inverse_probability(weights, positions, out_indptr, unit, replace):
    """Return 1 / probability of every drawn edge: ``unit`` of its row over its weight, at least 1 without replacement.

    (With replacement 1 / number of times drawn on average.) 1 in rows that keep all.
    """
    found = np.empty(positions.shape[0], np.float64)
    for i in range(unit.shape[0]):
        for w in range(out_indptr[i], out_indptr[i + 1]):
            found[w] = unit[i] / weights[positions[w]]
            if unit[i] == 0 or (not replace and found[w] < 1):
                found[w] = 1
    return found
