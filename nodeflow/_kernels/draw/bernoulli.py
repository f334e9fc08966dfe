"""Bernoulli draws: every edge of a row is kept independently with the same probability."""

# What is not good yet: each kept edge costs a logarithm, also where nearly all edges are kept.

import math

import numpy as np
from numba import float64, int64

from nodeflow._kernels.arrays import reserve
from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

_AHEAD = 16  # rows between the prefetch of an entry of indptr and its use
_LAG = 64  # edges between the prefetch of a source and its use


@loop
def log_rejection(indptr, rows, numbers, kind, are_rates):
    """Return ``(first position [n], degree [n], log(1 - p) [n])`` of n ``rows``; p = 1 gives -inf.

    ``numbers`` has one per kind of rows; the kind of row i is ``kind[i]``, which is not read where
    there is one. With ``are_rates`` a number is p. Else p is the probability that an edge is among
    that number of uniform draws with replacement: log(1 - p) = number * log(1 - 1 / degree); -1
    means p = 1. A row whose number is 0 gets degree 0.
    """
    n = rows.shape[0]
    kinds = numbers.shape[0]
    begin = np.empty(n, np.int64)
    degree = np.empty(n, np.int64)
    rejection = np.empty(n, np.float64)
    for i in range(n):
        prefetch_at(indptr, rows, i + _AHEAD)
        begin[i] = indptr[rows[i]]
        degree[i] = indptr[rows[i] + 1] - begin[i]
        number = numbers[0] if kinds == 1 else numbers[kind[i]]
        if number == 0:
            degree[i] = 0
            rejection[i] = -np.inf
        elif are_rates:
            rejection[i] = math.log1p(-number) if number < 1 else -np.inf
        else:
            rejection[i] = (
                number * math.log1p(-1.0 / degree[i]) if number > 0 and degree[i] > 1 else -np.inf
            )
    return begin, degree, rejection


@loop
def draw_bernoulli(begin, degree, indices, ident, key, rejection):
    """Return ``(indptr of the draw, positions, sources)``; the kept edges of a row are in the order
    of the graph.

    The loop jumps from one kept edge to the next. The number of edges in between is geometric:
    floor(log(U) / log(1 - p)) for U uniform on (0, 1] (Devroye 1986, section X.2), because U <= (1
    - p)^m has probability (1 - p)^m.
    """
    n = begin.shape[0]
    indptr = np.zeros(n + 1, np.int64)
    expected = 0.0
    for i in range(n):
        expected -= degree[i] * math.expm1(rejection[i])
    positions = np.empty(int(expected + 6 * math.sqrt(expected)) + 16, np.int64)
    w = 0
    for i in range(n):
        first = begin[i]
        d = degree[i]
        if rejection[i] == -np.inf:
            positions = reserve(positions, w, d)
            for j in range(d):
                positions[w + j] = first + j
                prefetch(indices, first + j)
            w += d
            indptr[i + 1] = w
            continue
        state = stream(key, ident[i])
        offset = 0
        while True:
            state += GOLDEN
            skip = math.log(float64((mix(state) >> U64(11)) + U64(1)) * 2.0**-53) / rejection[i]
            if not skip < d - offset:
                break
            offset += int64(skip)
            if w == positions.shape[0]:
                positions = reserve(positions, w, 1)
            positions[w] = first + offset
            prefetch(indices, first + offset)
            w += 1
            offset += 1
        indptr[i + 1] = w
    positions = positions[:w]
    src = np.empty(w, np.int64)
    for j in range(w):
        prefetch_at(indices, positions, j + _LAG)
        src[j] = indices[positions[j]]
    return indptr, positions, src
