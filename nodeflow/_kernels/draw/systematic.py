"""Deville's systematic method (1998; Chauvet 2012), for rows whose edges are gone through: one edge per stratum.

Edges whose probability min(1, c w) is 1 are set aside. The others lie one after another on a line that is cut into
equal strata, all of which are longer than an edge. The edge that crosses the border between two strata has the parts a
before it and b after it, in units of a stratum. If the stratum before drew it, this one draws a point in the rest of
the stratum. If not, this one takes it with probability b / (1 - a), else draws in the rest. Here a point of the whole
stratum is drawn first (which hits the edge with probability b), and the edge takes the place of another with
probability a b / ((1 - a) (1 - b)): the same law, and where all edges are short the one at the border seldom needs to
be looked at. Points hit half-open intervals, so that an edge of weight 0 is never hit.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, njit

from nodeflow._kernels.draw.alias import ROWS, read_near
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

UNIT = 2.0**-53
_BLOCK = 8  # edges in which a point is looked for at once
TWICE = U64((2 * int(GOLDEN)) % 2**64)
_CLEAR = 1 + 1e-6  # an exchange is ruled out only where rounding cannot matter
_LINE, _LINES = 16, 32  # entries per prefetch, and so many prefetches per row: then the processor sees what comes


@njit(nogil=True, cache=True)
def draw_systematic(rows, begin, degree, weights, near, ident, key, unit, top, out_indptr, pos, ids):
    """Fill ``pos`` with a subset for each of the rows with the numbers ``rows``; ``ids`` receives the neighbours.

    Certain edges come first, then the others, each in ascending order. ``unit`` ``[n]`` has W / k, and receives the
    weight from which on edges are certain: the sum of the others over the number of them that is drawn. ``top``
    ``[n]`` is the largest weight, in units of W / k.
    """
    n, widest = rows.shape[0], 0
    for late in range(n):
        widest = max(widest, degree[rows[late]])
    ends = np.empty(widest + _BLOCK, np.float64)
    for late in range(n + 2 * ROWS):
        if late < n:
            i = rows[late]
            for line in range(min((degree[i] - 1) // _LINE + 1, _LINES)):
                prefetch(weights, begin[i] + line * _LINE)
        at = late - ROWS
        if 0 <= at < n:
            i = rows[at]
            start, stop, first, size = out_indptr[i], out_indptr[i + 1], U64(begin[i]), U64(degree[i])
            count, sure, longest = stop - start, 0, top[i] * unit[i]
            while True:  # every round finds more certain edges, or ends
                found = lay_out(weights, first, size, unit[i], ends)
                if found == sure or found >= count:
                    break
                sure, longest = found, unit[i]
                unit[i] = min(unit[i], ends[size - U64(1)] / (count - sure))
            w = start
            if found > 0:
                for p in range(first, first + size):
                    if weights[p] >= unit[i] and w < stop:  # rounding aside, there are never more of them
                        pos[U64(w)] = p
                        w += 1
            if w < stop:
                strata(weights, ends, first, size, longest, stream(key, ident[i]), pos, start, w, stop)
            for v in range(start, stop):
                prefetch(near, pos[U64(v)])
        at = late - 2 * ROWS
        if 0 <= at < n:
            i = rows[at]
            read_near(near, out_indptr[i], out_indptr[i + 1], pos, ids)


@njit(no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def lay_out(weights, first, size, unit, ends):
    """Lay the edges below ``unit`` on a line, the others with length 0; return how many others there are.

    ``ends`` receives where each edge ends, and infinity up to the end of a block. Sums are made four by four, since
    each addition would otherwise wait for the one before. They never descend, and an edge of length 0 adds nothing.
    """
    sure, base, o = 0, 0.0, U64(0)
    while o + U64(4) <= size:
        w0, w1 = float64(weights[first + o]), float64(weights[first + o + U64(1)])
        w2, w3 = float64(weights[first + o + U64(2)]), float64(weights[first + o + U64(3)])
        sure += (w0 >= unit) + (w1 >= unit) + (w2 >= unit) + (w3 >= unit)
        w0, w1 = w0 if w0 < unit else 0.0, w1 if w1 < unit else 0.0
        w2, w3 = w2 if w2 < unit else 0.0, w3 if w3 < unit else 0.0
        two = w0 + w1
        ends[o], ends[o + U64(1)] = base + w0, base + two
        ends[o + U64(2)] = base + (two + w2)
        base += two + (w2 + w3)
        ends[o + U64(3)] = base
        o += U64(4)
    part = 0.0
    while o < size:
        w0 = float64(weights[first + o])
        sure += w0 >= unit
        part += w0 if w0 < unit else 0.0
        ends[o] = base + part
        o += U64(1)
    while o < (size & ~U64(_BLOCK - 1)) + U64(_BLOCK):
        ends[o] = np.inf
        o += U64(1)
    return sure


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def strata(weights, ends, first, size, most, state, pos, start, begin, stop):
    """Draw an edge from each of the strata of a line, into ``pos[begin:stop]``; ``pos[start:begin]`` are certain ones.

    ``most`` is at least the longest edge. A stratum takes two numbers of the stream: for its point, and for whether the
    edge at its lower border is taken.
    """
    count = stop - begin
    total = ends[size - U64(1)]
    step = total / count
    part = most / step
    limit = (part / (2 - part)) ** 2 * _CLEAR if part < 1 else 2.0  # of the probability above: where a = b
    last, upto, border = U64(0), 0.0, 0.0  # the edge drawn last, and where it ends
    block = U64(0)  # where to look: moved on in loops only, so that strata need not wait for one another
    for j in range(count):
        next_border = step * (j + 1) if j + 1 < count else total
        share = float64(int64(mix(state + GOLDEN) >> U64(11))) * UNIT
        chance = float64(int64(mix(state + TWICE) >> U64(11))) * UNIT
        state += TWICE
        before, point = block, border + share * (next_border - border)
        while ends[block + U64(_BLOCK - 1)] <= point:
            block += U64(_BLOCK)
        o = block + _below(ends, block, point)
        if upto > border:
            block, point = before, max(upto, upto + share * (next_border - upto))
            while ends[block + U64(_BLOCK - 1)] <= point:
                block += U64(_BLOCK)
            o = block + _below(ends, block, point)
        elif chance < limit and j > 0 and ends[o - U64(1)] >= border:
            while ends[before + U64(_BLOCK - 1)] <= border:
                before += U64(_BLOCK)
            q = before + _below(ends, before, border)
            a, b = (border - ends[q - U64(1)]) / step, (ends[q] - border) / step
            if q < o and chance * (1 - a) * (1 - b) < a * b:
                o = q
        upto, border = ends[o], next_border
        if o == size or (j > 0 and o <= last):  # only where rounding has used up the line
            o, upto = left_over(weights, first, size, pos, start, begin + j), total
        last = max(o, last)
        pos[U64(begin + j)] = first + o


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _below(ends, block, point):
    """How many ends of a block are at most ``point``, without a branch, which could be guessed wrong."""
    below = U64(0)
    for t in range(U64(_BLOCK)):
        below += U64(ends[block + t] <= point)
    return below


@njit(no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def left_over(weights, first, size, pos, start, stop):
    """The place of the last non-zero edge of a row that is not in ``pos[start:stop]``."""
    o = size
    while o > U64(1):
        o -= U64(1)
        free = weights[first + o] > 0
        for w in range(start, stop):
            free = free and U64(pos[U64(w)]) != first + o
        if free:
            return o
    return U64(0)
