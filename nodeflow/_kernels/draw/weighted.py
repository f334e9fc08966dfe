"""Draws in proportion to edge weights: how each row draws, and the estimator weights of the drawn edges."""

import numpy as np
from numba import njit

from nodeflow._kernels.draw.alias import MOST, SQUARES, TOTAL
from nodeflow._kernels.draw.sampford import may_reject
from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.rng import U64

_AHEAD = 16  # rows between the prefetch of their numbers and their use
_SHORT = 100  # longest row in which weights may be counted
_CLEAR = 1 + 1e-6  # a margin larger than rounding errors

TABLE, SCAN, KEEP = 0, 1, 2  # how a row draws: from its alias table; by a pass over its edges; all non-zero edges


@njit(nogil=True, cache=True)
def plan_weighted(indptr, sums, weights, rows, ident, fanouts, replace):
    """Return ``(indptr of the draw [n + 1], first position, degree, unit, top [n], ways [3, n], sizes [3])``.

    The first ``sizes[w]`` entries of ``ways[w]`` are the numbers (0 to n - 1) of the rows that draw in way w,
    ascending. ``unit`` is W / k, the weight that is drawn once on average; 0 for rows that keep all edges. ``top`` is
    the largest weight in units of W / k. ``fanouts`` is as in ``uniform.plan``.
    """
    n, kinds = rows.shape[0], fanouts.shape[0]
    out_indptr, begin, degree = np.zeros(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    unit, top = np.zeros(n, np.float64), np.zeros(n, np.float64)
    ways, sizes = np.empty((3, n), np.int64), np.zeros(3, np.int64)
    for i in range(n):
        prefetch_at(indptr, rows, i + _AHEAD)
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
        out_indptr[i + 1] = out_indptr[i] + number
        ways[way, sizes[way]] = i
        sizes[way] += number > 0
    return out_indptr, begin, degree, unit, top, ways, sizes


@njit(nogil=True, cache=True)
def keep_nonzero(rows, begin, weights, indices, out_indptr, positions, src):
    """Fill ``positions`` and ``src`` with the non-zero edges of the rows number ``rows`` of the draw."""
    for i in rows:
        p = begin[i] - 1
        for w in range(out_indptr[i], out_indptr[i + 1]):
            p += 1
            while weights[U64(p)] == 0:
                p += 1
            positions[U64(w)], src[U64(w)] = p, indices[U64(p)]


@njit(nogil=True, cache=True)
def inverse_probability(weights, positions, out_indptr, unit, replace):
    """Return 1 / probability of every drawn edge, float64: unit / weight, and at least 1 without replacement.

    With replacement it is 1 / (number of times that the edge is drawn on average). It is 1 in rows that keep all edges.
    """
    inverse = np.empty(positions.shape[0], np.float64)
    for i in range(unit.shape[0]):
        for w in range(out_indptr[i], out_indptr[i + 1]):
            inverse[w] = unit[i] / weights[positions[w]]
            if unit[i] == 0 or (not replace and inverse[w] < 1):
                inverse[w] = 1
    return inverse
