"""Sampford's method (1967): k distinct edges of a row, each with a probability of exactly k w / W, by rejection.

The first draw is in proportion to the weights w, the k - 1 others in proportion to pi / (1 - pi) with pi = k w / W;
where an edge comes twice, all are drawn again. Here all draws are in proportion to w, and each but the first stays with
probability (1 - largest pi) / (1 - pi); where one does not stay, all are drawn again, which gives the same law.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, njit

from nodeflow._kernels.draw.alias import CLASSES, ROWS, ask, bit_length, edge_of, read_near
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

UNIT = 2.0**-53
_ROOM = 64  # places per draw for marks of the edges drawn, so that few meet
_EASY, _HARD, _LONG = 2.0, 4.0, 100  # see ``may_reject``


@njit(inline="always")
def may_reject(count, degree, total, most, squares):
    """Whether ``count`` edges of a row are drawn by rejection, with an expected e^x attempts or less, roughly.

    x is at least the expected number of draws that do not stay (each with at most the largest pi) and of pairs that
    meet (each with about ``squares``, the sum of the (w / W)^2). Rows in which many attempts fail are worth it only
    where they are too long to be gone through. No pi may exceed 1/2: then the others are drawn with q <= 1 / k each,
    so that there is a chance of success that does not depend on the graph.
    """
    x = (count - 1) * count * (most / total + squares / 2)
    possible = count == 1 or 2 * count * most <= total
    return possible and (x <= _EASY or (x <= _HARD and degree > _LONG * count))


@njit(nogil=True, cache=True)
def draw_sampford(rows, begin, degree, table, weights, near, ident, key, unit, top, out_indptr, pos, ids):
    """Fill ``pos`` with a subset for each of the rows with the numbers ``rows``; ``ids`` receives the neighbours.

    ``unit`` ``[n]`` is W / k and ``top`` ``[n]`` the largest pi, of every row. An attempt takes 2 k - 1 numbers of
    the stream: k for the draws, and one for each draw but the first, which says whether it stays. The order is that of
    the draws. Rows whose attempt has failed wait for the next round, so that no row waits for its memory alone.
    """
    left, widest = rows.shape[0], 0
    for late in range(left):
        widest = max(widest, out_indptr[rows[late] + 1] - out_indptr[rows[late]])
    spread = bit_length(U64(_ROOM * widest))
    marks, attempt = np.zeros(1 << int64(spread), np.uint32), np.uint32(0)
    lows = ids.view(np.uint64)  # until the neighbours come
    waiting, again, number = rows, np.empty(left, np.int64), 0
    while left > 0:
        failed = 0
        for late in range(left + 2 * ROWS):
            if late < left:
                i = waiting[late]
                start, stop = out_indptr[i], out_indptr[i + 1]
                state = stream(key, ident[i]) + U64(number * (2 * (stop - start) - 1)) * GOLDEN
                ask(state, U64(begin[i]), U64(degree[i]), table, start, stop, pos, lows)
            at = late - ROWS
            if 0 <= at < left:
                i = waiting[at]
                start, stop, first = out_indptr[i], out_indptr[i + 1], U64(begin[i])
                bits = bit_length(U64(degree[i] - 1))
                state = stream(key, ident[i]) + U64(number * (2 * (stop - start) - 1) + stop - start) * GOLDEN
                least, part = 1 - top[i], top[i] * (1.0 / CLASSES)
                attempt += np.uint32(1)
                if attempt == 0:  # marks of former attempts must not be taken for those of this one
                    for h in range(marks.shape[0]):
                        marks[h] = 0
                    attempt += np.uint32(1)
                bad = False
                for w in range(start, stop):
                    p = U64(pos[U64(w)])
                    place, kind = edge_of(table[p], p - first, lows[U64(w)], bits)
                    p = first + place
                    prefetch(near, int64(p))
                    if w > start:
                        chance = float64(int64(mix(state) >> U64(11))) * UNIT
                        stays = chance * (1 - float64(int64(kind)) * part) < least
                        if not stays and chance * (1 - (float64(int64(kind)) + 1.02) * part) < least:
                            stays = chance * (1 - float64(weights[p]) / unit[i]) < least
                        bad |= not stays
                    state += GOLDEN
                    h = (place * GOLDEN) >> (U64(64) - spread)
                    if marks[h] == attempt:
                        for v in range(start, w):
                            bad |= U64(pos[U64(v)]) == p
                    marks[h] = attempt
                    pos[U64(w)] = int64(p)
                again[failed] = i
                failed += bad
            at = late - 2 * ROWS
            if 0 <= at < left:
                i = waiting[at]
                read_near(near, out_indptr[i], out_indptr[i + 1], pos, ids)
        if number == 0:
            waiting = np.empty(failed, np.int64)
        waiting, again, left, number = again, waiting, failed, number + 1
