"""Draws in proportion to edge weights: how each row draws, Sampford's method, the estimator weights
of the drawn edges.

Sampford's method (1967) draws k distinct edges of a row, each with a probability of exactly k w /
W, by rejection.

The first draw is in proportion to the weights w, the k - 1 others in proportion to pi / (1 - pi)
with pi = k w / W. When an edge is drawn twice, all are drawn again. Here all draws are in
proportion to w, and each but the first is accepted with probability (1 - largest pi) / (1 - pi).
When one is rejected, all are drawn again: the same distribution.
"""

# What is not good yet: ``draw_sampford`` holds three stages of different rows in one loop, since
# only so the loads of many rows are under way; ``may_reject`` bounds the number of attempts by a
# rule of thumb.

import numpy as np
from numba import float64, int64

from nodeflow._kernels.draw.alias import CLASSES, MOST, ROWS, SQUARES, TOTAL, ask, edge_of
from nodeflow._kernels.draw.uniform import read_sources
from nodeflow._kernels.instructions import bit_length, prefetch, prefetch_at
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.rng import GOLDEN, U64, stream, uniform

_AHEAD = 16  # rows between the prefetch of their numbers and their use
_SHORT = 100  # longest row in which weights may be counted
_CLEAR = 1 + 1e-6  # a margin larger than rounding errors
_SLOTS = 64  # slots per draw in the hash table of drawn edges, so that few collide
# limits of ``may_reject``
_EASY = 2.0
_HARD = 4.0
_LONG = 100

# how a row draws: from its alias table; by a pass over its edges; all non-zero edges
TABLE = 0
SCAN = 1
KEEP = 2


@inlined
def may_reject(count, degree, total, most, squares):
    """Whether to draw ``count`` edges of a row by rejection; the expected number of attempts is
    about e^x or less.

    x bounds the expected number of rejected draws (each has probability at most the largest pi) and
    of pairs of equal draws (each has a probability of about ``squares``, the sum of (w / W)^2).
    Rejection with many attempts pays only in long rows, where a pass over all edges costs more. No
    pi may exceed 1/2; that bounds the probability of success from below for every graph.
    """
    x = (count - 1) * count * (most / total + squares / 2)
    possible = count == 1 or 2 * count * most <= total
    return possible and (x <= _EASY or (x <= _HARD and degree > _LONG * count))


@loop
def plan_weighted(indptr, sums, weights, rows, kind, fanouts, replace):
    """Return
    ``(indptr of the draw [n + 1], first position, degree, unit, top [n], ways [3, n], sizes [3])``.

    The first ``sizes[w]`` entries of ``ways[w]`` are the numbers (0 to n - 1) of the rows that draw
    in way w, ascending. ``unit`` is W / k, the weight that is drawn once on average; 0 for rows
    that keep all edges. ``top`` is the largest weight in units of W / k. ``fanouts`` and ``kind``
    are as in ``uniform.plan``.
    """
    n = rows.shape[0]
    kinds = fanouts.shape[0]
    out_indptr = np.zeros(n + 1, np.int64)
    begin = np.empty(n, np.int64)
    degree = np.empty(n, np.int64)
    unit = np.zeros(n, np.float64)
    top = np.zeros(n, np.float64)
    ways = np.empty((3, n), np.int64)
    sizes = np.zeros(3, np.int64)
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
        fanout = fanouts[0] if kinds == 1 else fanouts[U64(kind[U64(i)])]
        total = sums[r, U64(TOTAL)]
        most = sums[r, U64(MOST)]
        squares = sums[r, U64(SQUARES)]
        number = fanout
        way = KEEP
        if total == 0 or fanout == 0:
            number = 0
        elif fanout > 0 and (replace or may_reject(float(fanout), degree[i], total, most, squares)):
            way = TABLE
        elif fanout > 0 and fanout < degree[i] and fanout * most * _CLEAR < total:
            way = SCAN
        else:
            number = 0
            p = begin[i]
            while p < begin[i] + degree[i] and (fanout < 0 or number <= fanout):
                number += weights[U64(p)] > 0
                p += 1
            if 0 < fanout < number:
                number = fanout
                way = SCAN
        if way != KEEP:
            unit[i] = total / fanout
            top[i] = most * fanout / total
        out_indptr[i + 1] = out_indptr[i] + number
        ways[way, sizes[way]] = i
        sizes[way] += number > 0
    return out_indptr, begin, degree, unit, top, ways, sizes


@loop
def draw_sampford(
    rows, begin, degree, table, weights, indices, ident, key, unit, top, out_indptr, positions, src
):
    """Fill ``positions`` and ``src`` with a subset for each of the rows number ``rows`` of the
    draw.

    ``unit`` ``[n]`` is W / k and ``top`` ``[n]`` the largest pi of every row. An attempt takes 2 k
    - 1 numbers of the stream: k for the draws, and one to accept or reject each draw but the first.
    Edges come in the order of the draws. Rows whose attempt has failed try again in the next round,
    so that the loads of many rows are always under way.
    """
    left = rows.shape[0]
    widest = 0
    for step in range(left):
        widest = max(widest, out_indptr[rows[step] + 1] - out_indptr[rows[step]])
    spread = bit_length(U64(_SLOTS * widest))
    marks = np.zeros(1 << int64(spread), np.uint32)
    attempt = np.uint32(0)
    lows = src.view(np.uint64)  # the memory of the result, until sources are read
    waiting = rows
    again = np.empty(left, np.int64)
    number = 0
    while left > 0:
        failed = 0
        # Three rows are under way at a time: cells of row ``step`` are drawn and prefetched, those
        # of the row ``ROWS`` before it become edges that are accepted or not, and the one before
        # that reads its sources.
        for step in range(left + 2 * ROWS):
            if step < left:
                i = waiting[step]
                start = out_indptr[i]
                stop = out_indptr[i + 1]
                state = stream(key, ident[i]) + U64(number * (2 * (stop - start) - 1)) * GOLDEN
                ask(state, U64(begin[i]), U64(degree[i]), table, start, stop, positions, lows)
            lagged = step - ROWS
            if 0 <= lagged < left:
                i = waiting[lagged]
                start = out_indptr[i]
                stop = out_indptr[i + 1]
                first = U64(begin[i])
                bits = bit_length(U64(degree[i] - 1))
                state = (
                    stream(key, ident[i])
                    + U64(number * (2 * (stop - start) - 1) + stop - start) * GOLDEN
                )
                least = 1 - top[i]
                part = top[i] * (1.0 / CLASSES)
                attempt += np.uint32(1)
                if attempt == 0:  # the counter has wrapped: old marks would look new
                    marks[:] = 0
                    attempt += np.uint32(1)
                bad = False
                for w in range(start, stop):
                    p = U64(positions[U64(w)])
                    offset, kind = edge_of(table[p], p - first, lows[U64(w)], bits)
                    p = first + offset
                    prefetch(indices, int64(p))
                    if w > start:
                        # pi / (largest pi) is known to within 1 / 256 from the weight class: the
                        # weight itself is read only where that does not decide.
                        chance = uniform(state)
                        stays = chance * (1 - float64(int64(kind)) * part) < least
                        if (
                            not stays
                            and chance * (1 - (float64(int64(kind)) + 1.02) * part) < least
                        ):
                            stays = chance * (1 - float64(weights[p]) / unit[i]) < least
                        bad |= not stays
                    state += GOLDEN
                    # The drawn edges are searched for a duplicate only if this attempt has marked
                    # the hash of the edge.
                    h = (offset * GOLDEN) >> (U64(64) - spread)
                    if marks[h] == attempt:
                        for v in range(start, w):
                            bad |= U64(positions[U64(v)]) == p
                    marks[h] = attempt
                    positions[U64(w)] = int64(p)
                again[failed] = i
                failed += bad
            lagged = step - 2 * ROWS
            if 0 <= lagged < left:
                i = waiting[lagged]
                read_sources(indices, out_indptr[i], out_indptr[i + 1], positions, src)
        if number == 0:
            waiting = np.empty(failed, np.int64)
        waiting, again = again, waiting
        left = failed
        number += 1


@loop
def keep_nonzero(rows, begin, weights, indices, out_indptr, positions, src):
    """Fill ``positions`` and ``src`` with the non-zero edges of the rows number ``rows`` of the
    draw.
    """
    for i in rows:
        p = begin[i] - 1
        for w in range(out_indptr[i], out_indptr[i + 1]):
            p += 1
            while weights[U64(p)] == 0:
                p += 1
            positions[U64(w)] = p
            src[U64(w)] = indices[U64(p)]


@loop
def inverse_probability(weights, positions, out_indptr, unit, replace):
    """Return 1 / probability of every drawn edge, float64: unit / weight, and at least 1 without
    replacement.

    With replacement it is 1 / (number of times that the edge is drawn on average). It is 1 in rows
    that keep all edges.
    """
    inverse = np.empty(positions.shape[0], np.float64)
    for i in range(unit.shape[0]):
        for w in range(out_indptr[i], out_indptr[i + 1]):
            inverse[w] = unit[i] / weights[positions[w]]
            if unit[i] == 0 or (not replace and inverse[w] < 1):
                inverse[w] = 1
    return inverse
