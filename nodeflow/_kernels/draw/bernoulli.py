"""Draws that keep every edge of a row independently, with one probability, by jumps from one kept edge to the next."""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, njit

from nodeflow._kernels.growing import room
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

_AHEAD = 16  # rows whose part of indptr is asked for early
_LAG = 64  # edges between asking for a neighbour's id and reading it


@njit(nogil=True, cache=True)
def log_rejection(indptr, rows, fanout, rate):
    """Return ``(first position, degree, log(1 - p) [n])`` for n ``rows``; -inf where every edge is kept.

    p is ``rate``; where that is 0, the probability to be among ``fanout`` uniform draws with replacement, so that
    log(1 - p) is ``fanout`` log(1 - 1 / degree), or 1 where ``fanout`` is -1.
    """
    n = rows.shape[0]
    begin, degree, rejection = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.float64)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, rows[i + _AHEAD])
        begin[i] = indptr[rows[i]]
        degree[i] = indptr[rows[i] + 1] - begin[i]
        if rate > 0:
            rejection[i] = math.log1p(-rate) if rate < 1 else -np.inf
        else:
            rejection[i] = fanout * math.log1p(-1.0 / degree[i]) if fanout > 0 and degree[i] > 1 else -np.inf
    return begin, degree, rejection


@njit(nogil=True, cache=True)
def draw_bernoulli(begin, degree, near, ident, key, rejection):
    """Return ``(indptr of the draw, positions, neighbours)``; the kept edges of a row are in the order of the graph.

    The number of edges passed before the next kept one is geometric: floor(log(U) / log(1 - p)) for U uniform on
    (0, 1] (Devroye 1986, section X.2), because U <= (1 - p)^m has probability (1 - p)^m.
    """
    n = begin.shape[0]
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    expected = 0.0
    for i in range(n):
        expected -= degree[i] * math.expm1(rejection[i])
    pos = np.empty(int(expected + 6 * math.sqrt(expected)) + 16, np.int64)
    w = 0
    for i in range(n):
        first, d = begin[i], degree[i]
        if rejection[i] == -np.inf:
            pos = room(pos, w, d)
            for j in range(d):
                pos[w + j] = first + j
                prefetch(near, first + j)
            w += d
            indptr[i + 1] = w
            continue
        state = stream(key, ident[i])
        at = 0
        while True:
            state += GOLDEN
            skip = math.log(float64((mix(state) >> U64(11)) + U64(1)) * 2.0**-53) / rejection[i]
            if not skip < d - at:
                break
            at += int64(skip)
            if w == pos.shape[0]:
                pos = room(pos, w, 1)
            pos[w] = first + at
            prefetch(near, first + at)
            w += 1
            at += 1
        indptr[i + 1] = w
    pos = pos[:w]
    ids = np.empty(w, np.int64)
    for j in range(w):
        if j + _LAG < w:
            prefetch(near, pos[j + _LAG])
        ids[j] = near[pos[j]]
    return indptr, pos, ids
