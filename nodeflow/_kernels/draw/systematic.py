"""Deville's systematic method (1998; Chauvet 2012): a pass over all edges of a row draws one edge
per stratum.

Edges whose probability min(1, c w) is 1 are certain and set aside. The others lie side by side on a
line that is cut into equal strata, which are longer than any of these edges. The edge that crosses
the border between two strata has length a before the border and b after it, in units of a stratum.
If the earlier stratum drew it, the later one draws a point in the rest of the stratum. If not, the
later one takes it with probability b / (1 - a), else draws in the rest.

Here a point of the whole stratum is drawn first, which hits the edge at the border with probability
b. Then that edge replaces another one with probability a b / ((1 - a) (1 - b)). The distribution is
the same, and where all edges are short the edge at the border is seldom read. Intervals are
half-open, so an edge of weight 0 is never hit.
"""

# What is not good yet: a row is passed over once per round of certain edges, all of it; and the
# functions that are kept apart, so that less is compiled, take ten arguments.

import numpy as np
from numba import float64, njit

from nodeflow._kernels.draw.alias import ROWS
from nodeflow._kernels.draw.uniform import read_sources
from nodeflow._kernels.instructions import prefetch
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import GOLDEN, U64, stream, uniform

_BLOCK = 8  # edges compared with a point at a time
TWICE = U64((2 * int(GOLDEN)) % 2**64)
_CLEAR = 1 + 1e-6  # an exchange is ruled out only by a margin larger than rounding errors
_LINE = 16  # entries per prefetch
_LINES = 32  # prefetches per row; the processor foresees the rest of a row


@loop
def draw_systematic(
    rows, begin, degree, weights, indices, ident, key, unit, top, out_indptr, positions, src
):
    """Fill ``positions`` and ``src`` with a subset for each of the rows number ``rows`` of the
    draw.

    Certain edges come first, then the others, both in ascending order. ``unit`` ``[n]`` holds W / k
    and receives the smallest weight that is certain: (sum of the other weights) / (number of the
    other draws). ``top`` ``[n]`` is the largest weight, in units of W / k.
    """
    n = rows.shape[0]
    widest = 0
    for step in range(n):
        widest = max(widest, degree[rows[step]])
    ends = np.empty(widest + _BLOCK, np.float64)
    # Three rows are under way at a time: the weights of row ``step`` are prefetched, the row
    # ``ROWS`` before it draws, and the one before that reads its sources.
    for step in range(n + 2 * ROWS):
        if step < n:
            i = rows[step]
            for line in range(min((degree[i] - 1) // _LINE + 1, _LINES)):
                prefetch(weights, begin[i] + line * _LINE)
        lagged = step - ROWS
        if 0 <= lagged < n:
            i = rows[lagged]
            start = out_indptr[i]
            stop = out_indptr[i + 1]
            first = U64(begin[i])
            size = U64(degree[i])
            count = stop - start
            before = 0
            longest = top[i] * unit[i]
            # An edge is certain whose weight is at least W / k. The others then share what is left
            # of W and k, by which more may be certain: every round but the last finds further ones.
            while True:
                certain = lay_out(weights, first, size, unit[i], ends)
                if certain == before or certain >= count:
                    break
                before = certain
                longest = unit[i]
                unit[i] = min(unit[i], ends[size - U64(1)] / (count - before))
            w = start
            if certain > 0:
                for p in range(first, first + size):
                    if weights[p] >= unit[i] and w < stop:  # by rounding there may be one too many
                        positions[U64(w)] = p
                        w += 1
            if w < stop:
                strata(
                    weights,
                    ends,
                    first,
                    size,
                    longest,
                    stream(key, ident[i]),
                    positions,
                    start,
                    w,
                    stop,
                )
            for v in range(start, stop):
                prefetch(indices, positions[U64(v)])
        lagged = step - 2 * ROWS
        if 0 <= lagged < n:
            i = rows[lagged]
            read_sources(indices, out_indptr[i], out_indptr[i + 1], positions, src)


@njit(no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def lay_out(weights, first, size, unit, ends):
    """Lay the edges side by side on a line, those of at least ``unit`` with length 0; return the
    number of these.

    ``ends`` receives the end of each edge, and infinity up to the end of a block. Four edges are
    added at a time, because every addition would otherwise wait for the one before. The ends never
    descend.
    """
    certain = 0
    base = 0.0
    o = U64(0)
    while o + U64(4) <= size:
        w0 = float64(weights[first + o])
        w1 = float64(weights[first + o + U64(1)])
        w2 = float64(weights[first + o + U64(2)])
        w3 = float64(weights[first + o + U64(3)])
        certain += (w0 >= unit) + (w1 >= unit) + (w2 >= unit) + (w3 >= unit)
        w0 = w0 if w0 < unit else 0.0
        w1 = w1 if w1 < unit else 0.0
        w2 = w2 if w2 < unit else 0.0
        w3 = w3 if w3 < unit else 0.0
        two = w0 + w1
        ends[o] = base + w0
        ends[o + U64(1)] = base + two
        ends[o + U64(2)] = base + (two + w2)
        base += two + (w2 + w3)
        ends[o + U64(3)] = base
        o += U64(4)
    part = 0.0
    while o < size:
        w0 = float64(weights[first + o])
        certain += w0 >= unit
        part += w0 if w0 < unit else 0.0
        ends[o] = base + part
        o += U64(1)
    while o < (size & ~U64(_BLOCK - 1)) + U64(_BLOCK):
        ends[o] = np.inf
        o += U64(1)
    return certain


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def strata(weights, ends, first, size, most, state, positions, start, begin, stop):
    """Draw an edge from each stratum of a line into ``positions[begin:stop]``.

    ``positions[start:begin]`` are the certain edges. ``most`` is at least the longest edge. A
    stratum takes two numbers of the stream: for its point, and for whether it takes the edge at its
    lower border.
    """
    count = stop - begin
    total = ends[size - U64(1)]
    step = total / count
    part = most / step
    # the largest a b / ((1 - a) (1 - b)) is reached at a = b
    limit = (part / (2 - part)) ** 2 * _CLEAR if part < 1 else 2.0
    # ``last`` is the edge drawn last, which ends at ``upto``; a stratum goes from ``border`` to
    # ``next_border``.
    last = U64(0)
    upto = 0.0
    border = 0.0
    block = U64(0)  # where the search begins
    for j in range(count):
        next_border = step * (j + 1) if j + 1 < count else total
        share = uniform(state + GOLDEN)
        chance = uniform(state + TWICE)
        state += TWICE
        before = block
        point = border + share * (next_border - border)
        block, o = _edge_at(ends, block, point)
        if upto > border:
            # The edge drawn last crosses the border: the point is drawn again in the rest of the
            # stratum.
            block = before
            point = max(upto, upto + share * (next_border - upto))
            block, o = _edge_at(ends, block, point)
        elif chance < limit and j > 0 and ends[o - U64(1)] >= border:
            # The edge at the border was not drawn: it replaces this one with probability a b / ((1
            # - a) (1 - b)).
            q = _edge_at(ends, before, border)[1]
            a = (border - ends[q - U64(1)]) / step
            b = (ends[q] - border) / step
            if q < o and chance * (1 - a) * (1 - b) < a * b:
                o = q
        upto = ends[o]
        border = next_border
        if o == size or (j > 0 and o <= last):  # only by rounding
            o = left_over(weights, first, size, positions, start, begin + j)
            upto = total
        last = max(o, last)
        positions[U64(begin + j)] = first + o


@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def _edge_at(ends, block, point):
    """The block, from ``block`` on, and the edge in which a point lies: the first one that ends
    above it.
    """
    while ends[block + U64(_BLOCK - 1)] <= point:
        block += U64(_BLOCK)
    edge = block
    for t in range(U64(_BLOCK)):  # counted without a branch
        edge += U64(ends[block + t] <= point)
    return block, edge


@njit(no_cfunc_wrapper=True)  # type: ignore[call-overload]  # less to compile
def left_over(weights, first, size, positions, start, stop):
    """The offset of the last non-zero edge of a row that is not in ``positions[start:stop]``."""
    o = size
    while o > U64(1):
        o -= U64(1)
        free = weights[first + o] > 0
        for w in range(start, stop):
            free = free and U64(positions[U64(w)]) != first + o
        if free:
            return o
    return U64(0)
