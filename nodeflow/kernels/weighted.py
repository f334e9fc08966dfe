"""Draws of neighbours in proportion to edge weights, by search in prefix sums kept at the end of every 16 positions.

Block b holds the positions 16 b to 16 b + 15. The sum of the weights of row r up to the end of block b is at place
b + r, which no other row and block have: where two rows share a block, r tells them apart. A sum runs over its row edge
by edge, so that going through a block again gives the very same numbers, and what is drawn does not depend on blocks.
Points hit half-open intervals, so that an edge of weight 0 is never hit.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, njit

from nodeflow.kernels.prefetch import prefetch
from nodeflow.kernels.random import GOLDEN, U64, mix, stream

_AHEAD = 16  # rows whose numbers are asked for early
_ROWS = 8  # rows between asking for sums, looking in them for a row's blocks, and going through these blocks
_LAG = 64  # edges between asking for a neighbour's id and reading it
_CLEAR = 1 + 1e-6  # an edge is called shorter than a stratum only where rounding cannot make it longer

KEEP, BLOCKS, SURE = 0, 1, 2  # how a row draws: all non-zero edges; through its blocks; some edges may be certain
UNIT, TOTAL, MOST = 0, 1, 2  # columns of the numbers of a row: see ``plan_weighted``


@njit(nogil=True, cache=True)
def block_sums(indptr, weights):  # type: ignore[no-untyped-def]
    """Return the prefix sums at the ends of blocks, and the largest weight of every row ``[num_rows]``."""
    rows = indptr.shape[0] - 1
    sums = np.zeros((indptr[rows] >> 4) + rows, np.float64)
    most = np.zeros(rows, weights.dtype)
    for r in range(rows):
        total, largest = 0.0, 0.0
        for p in range(indptr[r], indptr[r + 1]):
            total += weights[p]
            largest = max(largest, float64(weights[p]))
            sums[(p >> 4) + r] = total
        most[r] = largest
    return sums, most


@njit(nogil=True, cache=True)
def plan_weighted(indptr, sums, most, weights, rows, ident, fanouts, replace):  # type: ignore[no-untyped-def]
    """Return ``(indptr of the draw [n + 1], first position, degree, way [n], numbers [n, 3])`` for n ``rows``.

    The numbers are: the weight that is drawn once in the mean, so that 1 / probability is this one over the edge's, or
    1 where that is less (without replacement) and where it is 0; the sum of the weights; and the largest. ``fanouts``
    is as in ``draw.plan``.
    """
    n, kinds = rows.shape[0], fanouts.shape[0]
    out, begin, degree = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    way, numbers = np.zeros(n, np.uint8), np.zeros((n, 3), np.float64)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, rows[i + _AHEAD])
        begin[i] = indptr[rows[i]]
        degree[i] = indptr[rows[i] + 1] - begin[i]
    out[0] = 0
    for i in range(n):
        if i + _AHEAD < n:
            j = i + _AHEAD
            prefetch(sums, ((begin[j] + degree[j] - 1) >> 4) + rows[j])
            prefetch(most, rows[j])
            prefetch(weights, begin[j])
        fanout = fanouts[0] if kinds == 1 else fanouts[ident[i] % kinds]
        total = sums[((begin[i] + degree[i] - 1) >> 4) + rows[i]] if degree[i] > 0 else 0.0
        number = 0
        if total > 0 and fanout != 0:
            largest = float64(most[rows[i]])
            numbers[i, TOTAL], numbers[i, MOST] = total, largest
            if fanout > 0 and (replace or (fanout < degree[i] and fanout * largest * _CLEAR < total)):
                number, way[i], numbers[i, UNIT] = fanout, BLOCKS, total / fanout
            else:
                for p in range(begin[i], begin[i] + degree[i]):
                    number += weights[p] > 0
                if 0 < fanout < number:
                    number, way[i] = fanout, SURE
                    numbers[i, UNIT] = _level(weights, begin[i], begin[i] + degree[i], fanout, total / fanout)
        out[i + 1] = out[i] + number
    return out, begin, degree, way, numbers


@njit(nogil=True, cache=True)
def draw_proportional(begin, degree, near, weights, sums, rows, ident, key, way, numbers, out_indptr, pos, ids):  # type: ignore[no-untyped-def]
    """Fill ``pos`` with independent draws, each in proportion to the weights; ``ids`` receives the neighbours."""
    n, read = rows.shape[0], 0
    points = ids.view(np.float64)  # until the neighbours come
    for late in range(n + 2 * _ROWS):
        if late < n:
            prefetch(weights, begin[late])
            if way[late] == BLOCKS:
                first, end, total = begin[late], begin[late] + degree[late], numbers[late, TOTAL]
                scale, state = degree[late] / total, stream(key, ident[late])
                for w in range(out_indptr[late], out_indptr[late + 1]):
                    state += GOLDEN
                    points[w] = _unit(state) * total
                    pos[w] = _guess(first, end, scale, points[w])
                    prefetch(sums, pos[w] + rows[late])
        i = late - _ROWS
        if 0 <= i < n and way[i] == BLOCKS:
            start, stop = out_indptr[i], out_indptr[i + 1]
            _hint(weights, sums, rows[i], begin[i], begin[i] + degree[i], points, pos, start, stop)
        i = late - 2 * _ROWS
        if i < 0:
            continue
        first, end, start, stop = begin[i], begin[i] + degree[i], out_indptr[i], out_indptr[i + 1]
        if way[i] == KEEP:
            _keep(weights, first, end, near, pos, start, stop)
        else:
            for w in range(start, stop):
                pos[w] = _scan(weights, sums, rows[i], first, end, pos[w], points[w])[0]
                prefetch(near, pos[w])
        read = _gather(near, pos, ids, read, start - _LAG)
    _gather(near, pos, ids, read, pos.shape[0])


@njit(nogil=True, cache=True)
def draw_systematic(begin, degree, near, weights, sums, rows, ident, key, way, numbers, out_indptr, pos, ids):  # type: ignore[no-untyped-def]
    """Fill ``pos`` with subsets of fixed size in which each edge is with a probability that its weight decides.

    See ``_strata``. Edges that are certain come first, then the others, each in ascending order. ``ids`` receives the
    neighbours.
    """
    n, read, widest = rows.shape[0], 0, 0
    points = ids.view(np.float64)  # until the neighbours come
    for i in range(n):
        if way[i] == SURE:
            widest = max(widest, degree[i])
    own, place = np.empty(widest, weights.dtype), np.empty(widest, np.int64)
    parts = np.empty((widest >> 4) + 1, np.float64)
    for late in range(n + 2 * _ROWS):
        if late < n:
            prefetch(weights, begin[late])
            if way[late] == BLOCKS:
                first, end, total = begin[late], begin[late] + degree[late], numbers[late, TOTAL]
                start, stop, state = out_indptr[late], out_indptr[late + 1], stream(key, ident[late])
                _points(sums, rows[late], first, end, total, state, points, pos, start, stop)
        i = late - _ROWS
        if 0 <= i < n and way[i] == BLOCKS:
            start, stop = out_indptr[i], out_indptr[i + 1]
            _hint(weights, sums, rows[i], begin[i], begin[i] + degree[i], points, pos, start, stop)
        i = late - 2 * _ROWS
        if i < 0:
            continue
        first, end, start, stop = begin[i], begin[i] + degree[i], out_indptr[i], out_indptr[i + 1]
        if way[i] == KEEP:
            _keep(weights, first, end, near, pos, start, stop)
        elif way[i] == BLOCKS:
            total, most, state = numbers[i, TOTAL], numbers[i, MOST], stream(key, ident[i])
            _strata(weights, sums, rows[i], first, end, total, most, state, points, pos, start, stop)
            for w in range(start, stop):
                prefetch(near, pos[w])
        else:
            w, size, total, most = start, 0, 0.0, 0.0
            for p in range(first, end):
                if weights[p] >= numbers[i, UNIT]:
                    if w < stop:  # rounding aside, there are never more of them
                        pos[w] = p
                        w += 1
                elif weights[p] > 0:
                    own[size], place[size] = weights[p], p
                    total += weights[p]
                    most = max(most, float64(weights[p]))
                    parts[size >> 4] = total
                    size += 1
            if w < stop:
                state = stream(key, ident[i])
                _points(parts, 0, 0, size, total, state, points, pos, w, stop)
                _hint(own, parts, 0, 0, size, points, pos, w, stop)
                _strata(own, parts, 0, 0, size, total, most, state, points, pos, w, stop)
            for v in range(start, stop):
                if v >= w:
                    pos[v] = place[pos[v]]
                prefetch(near, pos[v])
        read = _gather(near, pos, ids, read, start - _LAG)
    _gather(near, pos, ids, read, pos.shape[0])


@njit(nogil=True, cache=True)
def inverse_probability(weights, positions, out_indptr, numbers, replace):  # type: ignore[no-untyped-def]
    """Return 1 / probability of every drawn edge (see ``plan_weighted``)."""
    found = np.empty(positions.shape[0], np.float64)
    for i in range(numbers.shape[0]):
        unit = numbers[i, UNIT]
        for w in range(out_indptr[i], out_indptr[i + 1]):
            found[w] = unit / weights[positions[w]]
            if unit == 0 or (not replace and found[w] < 1):
                found[w] = 1
    return found


@njit
def _keep(weights, first, end, near, pos, start, stop):  # type: ignore[no-untyped-def]
    """Fill ``pos[start:stop]`` with the non-zero edges of a row."""
    w, p = start, first
    while w < stop and p < end:
        if weights[p] > 0:
            pos[w] = p
            prefetch(near, p)
            w += 1
        p += 1


@njit
def _level(weights, first, end, count, unit):  # type: ignore[no-untyped-def]
    """The weight from which on edges are certain, when the others draw what is left of ``count`` in proportion.

    Every round finds more certain edges, or ends; the sum of the others is made anew, since a difference would not be
    exact.
    """
    sure = 0
    while True:
        found, rest = 0, 0.0
        for p in range(first, end):
            if weights[p] >= unit:
                found += 1
            else:
                rest += weights[p]
        if found <= sure or found >= count:
            return unit
        sure, unit = found, rest / (count - found)


@njit
def _strata(weights, sums, row, first, end, total, most, state, points, pos, start, stop):  # type: ignore[no-untyped-def]
    """Deville's systematic method (1998; Chauvet 2012): one edge from each of several equal strata.

    The edges of the row lie one after another on a line that is cut into strata; all are shorter than a stratum, the
    longest is ``most``. The edge that crosses the border between two strata has the parts a before it and b after it,
    in units of a stratum. If the stratum before drew it, this one draws a point in the rest of the stratum. If not,
    this one takes it with probability b / (1 - a), else draws in the rest. Here a point of the whole stratum is drawn
    first (which hits the edge with probability b), and the edge takes the place of another with probability
    a b / ((1 - a) (1 - b)): the same law, and where all edges are short the one at the border seldom needs to be looked
    for. ``points`` and ``pos`` hold the points of the strata and their blocks; ``pos`` receives positions, ascending.
    """
    count = stop - start
    step, scale = total / count, (end - first) / total
    part = most / step
    limit = (part / (2 - part)) ** 2 * _CLEAR if part < 1 else 2.0  # of the last probability above: where a = b
    last, upto, border = first - 1, 0.0, 0.0  # position and end of the edge drawn last
    for j in range(count):
        next_border = step * (j + 1) if j + 1 < count else total
        state += GOLDEN
        if upto > border:
            point = max(upto, upto + _unit(state) * (next_border - upto))
            p, low, high = _find(weights, sums, row, first, end, scale, point)
            state += GOLDEN
        else:
            p, low, high = _scan(weights, sums, row, first, end, pos[start + j], points[start + j])
            state += GOLDEN
            chance = _unit(state)
            if chance < limit and low >= border and j > 0:
                q, left, right = _find(weights, sums, row, first, end, scale, border)
                a, b = (border - left) / step, (right - border) / step
                if chance * (1 - a) * (1 - b) < a * b:
                    p, high = q, right
        if p <= last:  # only where rounding has used up the line
            p, high = _left_over(weights, first, end, pos, start, start + j), total
        pos[start + j] = p
        last, upto, border = max(p, last), high, next_border


@njit
def _points(sums, row, first, end, total, state, points, pos, start, stop):  # type: ignore[no-untyped-def]
    """Draw a point in each of the strata, guess its block from how far it is along the line, and ask for its sum."""
    count = stop - start
    step, scale, border = total / count, (end - first) / total, 0.0
    for j in range(count):
        next_border = step * (j + 1) if j + 1 < count else total
        state += GOLDEN
        point = border + _unit(state) * (next_border - border)
        state += GOLDEN
        points[start + j], pos[start + j] = point, _guess(first, end, scale, point)
        prefetch(sums, pos[start + j] + row)
        border = next_border


@njit
def _hint(weights, sums, row, first, end, points, pos, start, stop):  # type: ignore[no-untyped-def]
    """Replace guesses of blocks in ``pos[start:stop]`` by the blocks of the points, and ask for these."""
    for w in range(start, stop):
        pos[w] = _block(sums, row, first, end, pos[w], points[w])
        prefetch(weights, 16 * pos[w])
        prefetch(weights, 16 * pos[w] + 15)  # arrays need not begin where a line of the cache does


@njit
def _find(weights, sums, row, first, end, scale, point):  # type: ignore[no-untyped-def]
    """As ``_scan``, but the block is looked for."""
    block = _block(sums, row, first, end, _guess(first, end, scale, point), point)
    return _scan(weights, sums, row, first, end, block, point)


@njit
def _guess(first, end, scale, point):  # type: ignore[no-untyped-def]
    """The block that ``point`` would be in if all edges weighed the same; ``scale`` is edges per weight."""
    return min(first + int64(point * scale), end - 1) >> 4


@njit
def _block(sums, row, first, end, guess, point):  # type: ignore[no-untyped-def]
    """The first block of a row whose sum is above the point, or the last one; looked for around a guess."""
    low, high, step = first >> 4, (end - 1) >> 4, 1
    if sums[U64(guess + row)] <= point:
        low = min(guess + 1, high)
        while low + step <= high and sums[U64(low + step - 1 + row)] <= point:
            low += step
            step *= 2
        high = min(low + step - 1, high)
    else:
        high = guess
        while high - step >= low and sums[U64(high - step + row)] > point:
            high -= step
            step *= 2
        low = max(high - step + 1, low)
    while low < high:
        middle = (low + high) >> 1
        if sums[U64(middle + row)] <= point:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _scan(weights, sums, row, first, end, block, point):  # type: ignore[no-untyped-def]
    """Return the edge of a block that ``point`` hits, and its interval: ``(position, from, to)``.

    A point that rounding has put at the very end of the row hits its last non-zero edge. The loop has no branch that
    could be guessed wrong.
    """
    p, stop = max(first, 16 * block), min(16 * block + 16, end)
    low = sums[U64(block - 1 + row)] if p > first else 0.0
    upto, at, passed = low, U64(p), U64(0)  # an index that may be negative costs time
    for q in range(U64(stop - p)):
        upto += weights[at + q]
        if upto <= point:
            passed += U64(1)
            low = upto
    p += int64(passed)
    if p == stop:
        p -= 1
        while p > first and weights[p] == 0:
            p -= 1
        return p, low, low
    return p, low, low + weights[U64(p)]


@njit
def _left_over(weights, first, end, pos, start, stop):  # type: ignore[no-untyped-def]
    """The last non-zero edge of a row that is not in ``pos[start:stop]``."""
    for p in range(end - 1, first - 1, -1):
        if weights[p] > 0 and not np.any(pos[start:stop] == p):
            return p
    return end - 1


@njit(inline="always")
def _unit(state):  # type: ignore[no-untyped-def]
    """A number uniform in [0, 1), with 53 random bits."""
    return float64(mix(state) >> U64(11)) * 2.0**-53


@njit(inline="always")
def _gather(near, pos, ids, start, stop):  # type: ignore[no-untyped-def]
    for w in range(start, stop):
        ids[w] = near[U64(pos[w])]
    return max(start, stop)
