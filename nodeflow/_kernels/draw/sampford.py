"""Sampford's method (1967): k distinct edges of a row, each with a probability of exactly k w / W, by rejection.

The first draw is in proportion to the weights w, the k - 1 others in proportion to pi / (1 - pi) with pi = k w / W.
When an edge is drawn twice, all are drawn again. Here all draws are in proportion to w, and each but the first is
accepted with probability (1 - largest pi) / (1 - pi). When one is rejected, all are drawn again: the same distribution.
"""

import numpy as np
from numba import float64, int64, njit

from nodeflow._kernels.draw.alias import CLASSES, ROWS, ask, edge_of
from nodeflow._kernels.draw.uniform import read_sources
from nodeflow._kernels.instructions import bit_length, prefetch
from nodeflow._kernels.rng import GOLDEN, U64, stream, uniform

_SLOTS = 64  # slots per draw in the hash table of drawn edges, so that few collide
_EASY, _HARD, _LONG = 2.0, 4.0, 100  # see ``may_reject``


@njit(inline="always")
def may_reject(count, degree, total, most, squares):
    """Whether to draw ``count`` edges of a row by rejection; the expected number of attempts is about e^x or less.

    x bounds the expected number of rejected draws (each has probability at most the largest pi) and of pairs of equal
    draws (each has a probability of about ``squares``, the sum of (w / W)^2). Rejection with many attempts pays only in
    long rows, where a pass over all edges costs more. No pi may exceed 1/2; that bounds the probability of success from
    below for every graph.
    """
    x = (count - 1) * count * (most / total + squares / 2)
    possible = count == 1 or 2 * count * most <= total
    return possible and (x <= _EASY or (x <= _HARD and degree > _LONG * count))


@njit(nogil=True, cache=True)
def draw_sampford(rows, begin, degree, table, weights, indices, ident, key, unit, top, out_indptr, positions, src):
    """Fill ``positions`` and ``src`` with a subset for each of the rows number ``rows`` of the draw.

    ``unit`` ``[n]`` is W / k and ``top`` ``[n]`` the largest pi of every row. An attempt takes 2 k - 1 numbers of the
    stream: k for the draws, and one to accept or reject each draw but the first. Edges come in the order of the draws.
    Rows whose attempt has failed try again in the next round, so that the loads of many rows are always under way.
    """
    left, widest = rows.shape[0], 0
    for step in range(left):
        widest = max(widest, out_indptr[rows[step] + 1] - out_indptr[rows[step]])
    spread = bit_length(U64(_SLOTS * widest))
    marks, attempt = np.zeros(1 << int64(spread), np.uint32), np.uint32(0)
    lows = src.view(np.uint64)  # the memory of the result, until sources are read
    waiting, again, number = rows, np.empty(left, np.int64), 0
    while left > 0:
        failed = 0
        # Three rows are under way at a time: cells of row ``step`` are drawn and prefetched, those of the row ``ROWS``
        # before it become edges that are accepted or not, and the one before that reads its sources.
        for step in range(left + 2 * ROWS):
            if step < left:
                i = waiting[step]
                start, stop = out_indptr[i], out_indptr[i + 1]
                state = stream(key, ident[i]) + U64(number * (2 * (stop - start) - 1)) * GOLDEN
                ask(state, U64(begin[i]), U64(degree[i]), table, start, stop, positions, lows)
            lagged = step - ROWS
            if 0 <= lagged < left:
                i = waiting[lagged]
                start, stop, first = out_indptr[i], out_indptr[i + 1], U64(begin[i])
                bits = bit_length(U64(degree[i] - 1))
                state = stream(key, ident[i]) + U64(number * (2 * (stop - start) - 1) + stop - start) * GOLDEN
                least, part = 1 - top[i], top[i] * (1.0 / CLASSES)
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
                        # pi / (largest pi) is known to within 1 / 256 from the weight class: the weight itself is read
                        # only where that does not decide.
                        chance = uniform(state)
                        stays = chance * (1 - float64(int64(kind)) * part) < least
                        if not stays and chance * (1 - (float64(int64(kind)) + 1.02) * part) < least:
                            stays = chance * (1 - float64(weights[p]) / unit[i]) < least
                        bad |= not stays
                    state += GOLDEN
                    # The drawn edges are searched for a duplicate only if this attempt has marked the hash of the edge.
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
        waiting, again, left, number = again, waiting, failed, number + 1
