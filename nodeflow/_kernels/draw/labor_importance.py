"""Importance of sources for LABOR-i: what every destination needs, what that makes of the sources, and the draw.

The candidate edges of row i lie at ``begin[i]`` in ``near``, ``degree[i]`` of them; ``pi`` has an entry for all
that may be in ``near``, ``c`` one per row. A flow may look at most edges of a graph, so little is kept of each.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from nodeflow._kernels.draw.labor import is_renewed
from nodeflow._kernels.growing import longer, room
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, mix, stream

_AHEAD = 4
_FRACTION = 2.0**-53
_PIECE = 1024  # edges looked at in one go


@njit(nogil=True, cache=True)
def gather_local(begin, degree, near, table, local):
    """Write the local ids of all edges of the rows, as they first appear, into ``local``; returns the nodes they are.

    ``table`` has an int32 -1 for every node of the graph.
    """
    nodes = np.empty(min(local.shape[0], table.shape[0]), np.int64)
    size, w = 0, 0
    for i in range(begin.shape[0]):
        if i + _AHEAD < begin.shape[0]:
            prefetch(near, begin[i + _AHEAD])
        for p in range(begin[i], begin[i] + degree[i]):
            t = near[p]
            if table[t] < 0:
                table[t] = size
                nodes[size] = t
                size += 1
            local[w] = table[t]
            w += 1
    return longer(nodes, size, size)


@njit(nogil=True, cache=True)
def update(begin, degree, near, order, c, pi, seen):
    """Multiply every pi by the largest c of its destinations; returns the sum of the new pi.

    That sum is the expected number of distinct sources of the draw that the old pi and c belong to. ``order`` are the
    rows by falling c, so that the first to have a source is the one that counts. ``seen`` gets a 1 for every source.
    """
    for t in range(pi.shape[0]):
        seen[t] = 0
    total, fresh = 0.0, np.empty(_PIECE, np.int64)
    for q in range(order.shape[0]):
        if q + _AHEAD < order.shape[0]:
            prefetch(near, begin[order[q + _AHEAD]])
        i = order[q]
        end = begin[i] + degree[i]
        for start in range(begin[i], end, _PIECE):
            part, number = near[start : min(start + _PIECE, end)], 0
            for j in range(part.shape[0]):
                fresh[number] = j  # overwritten by the next edge unless this one counts: no branch to guess wrong
                number += seen[U64(part[j])] == 0
            for j in fresh[:number]:
                t = part[j]
                if seen[t] == 0:
                    seen[t] = 1
                    pi[t] *= c[i]
                    total += pi[t]
    return total


@njit(nogil=True, cache=True, error_model="numpy")  # which lets a division be done before it is known to be needed
def solve(begin, degree, near, fanout, pi, c, spare):
    """Write into ``c`` the solution of ``sum(1 / min(1, c pi)) == degree**2 / fanout`` for every row after an update.

    No c and no pi exceeds 1, which makes the equation linear in 1 / c. For pi begins at 1 and is multiplied by c; and
    with old pi and c a row has ``sum(1 / (c pi)) == degree**2 / fanout``, with every new pi at least c pi, so its new c
    is at most 1. Rows of at most ``fanout`` edges keep c = 1, and their sources pi = 1. ``spare`` is room for one
    number per source, or empty: that saves it, at the cost of a division per edge.
    """
    for t in range(spare.shape[0]):
        spare[t] = 1.0 / pi[t]
    inverse = np.empty(_PIECE, np.float64)
    for i in range(c.shape[0]):
        if i + _AHEAD < c.shape[0]:
            prefetch(near, begin[i + _AHEAD])
        d = degree[i]
        if 0 <= fanout < d:
            total = 0.0
            end = begin[i] + d
            for p in range(begin[i], end if spare.shape[0] else begin[i]):
                total += spare[U64(near[p])]
            for start in range(end if spare.shape[0] else begin[i], end, _PIECE):
                part = near[start : min(start + _PIECE, end)]
                for j in range(part.shape[0]):
                    inverse[j] = pi[U64(part[j])]
                for j in range(part.shape[0]):  # several at a time, which the next loop's order would not allow
                    inverse[j] = 1.0 / inverse[j]
                for j in range(part.shape[0]):
                    total += inverse[j]
            c[i] = total / (float(d) * d / fanout)


@njit(nogil=True, cache=True)
def _uniform(t, keys, early, copy):
    """The number of a source, in [0, 1) with 53 bits; ``copy`` tells several edges from it apart."""
    key = keys[1] if early > 0 and is_renewed(t, keys, early) else keys[0]
    return (mix(stream(key, t) + U64(copy + 1) * GOLDEN) >> U64(11)) * _FRACTION


@njit(nogil=True, cache=True)
def _least(t, nodes, keys, early, copy, pi):
    """Number / pi: the c from which a source is kept. ``nodes`` are the sources' ids, or empty: then t is one."""
    return _uniform(nodes[t] if nodes.shape[0] else np.int64(t), keys, early, copy) / pi[t]


@njit(inline="always")
def _code(x):
    """A byte that tells roughly how large ``x`` is: the codes of two numbers are never in the wrong order."""
    fraction, exponent = math.frexp(max(x, 1e-12))
    return min(max((exponent + 30) * 8 + int(fraction * 16.0) - 8, 0), 255)


@njit(nogil=True, cache=True)
def _fill(nodes, keys, early, pi, codes, spare):
    """Write the code of number / pi over every 1: bytes stay in the cache, and tell most edges that are not kept.

    The numbers themselves go into ``spare``, if there is one.
    """
    for t in range(pi.shape[0]):
        if codes[t]:
            least = _least(t, nodes, keys, early, 0, pi)
            codes[t] = _code(least)
            if spare.shape[0]:
                spare[t] = least


@njit(nogil=True, cache=True)
def keep_poisson(begin, degree, near, nodes, fanout, keys, early, pi, codes, spare, kept, inverse, c):
    """Keep the edges whose source's number is below ``c pi``.

    Writes the kept places in ``near`` into ``kept`` and 1 / probability of each into ``inverse``; returns their indptr.
    ``codes`` are what ``update`` left in ``seen``, ``spare`` is as in ``solve``.
    """
    _fill(nodes, keys, early, pi, codes, spare)
    n, w = c.shape[0], 0
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    likely = np.empty(_PIECE, np.int64)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(near, begin[i + _AHEAD])
        end = begin[i] + degree[i]
        every, bound = fanout < 0 or degree[i] <= fanout, _code(c[i])
        for first in range(begin[i], end, _PIECE):
            number = 0
            for p in range(first, min(first + _PIECE, end)):
                likely[number] = p  # overwritten by the next edge unless this one counts: no branch to guess wrong
                number += every or codes[U64(near[p])] <= bound
            for q in range(number):
                kept[w] = likely[q]
                t = near[likely[q]]
                w += every or (spare[t] if spare.shape[0] else _least(t, nodes, keys, early, 0, pi)) < c[i]
        indptr[i + 1] = w
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            inverse[q] = 1.0 / min(1.0, c[i] * pi[near[kept[q]]])
    return indptr


@njit(inline="always")
def _above(keys, places, i, j):
    return keys[i] > keys[j] or (keys[i] == keys[j] and places[i] > places[j])


@njit(nogil=True, cache=True)
def _keep_smaller(keys, places, size, most, key, place):
    """Add an entry to a heap of the ``most`` smallest ones, largest first; returns its new size.

    Entries are ordered by key, and by place where keys are equal.
    """
    if size < most:
        at = size
        keys[at], places[at] = key, place
        while at > 0:
            up = (at - 1) >> 1
            if not _above(keys, places, at, up):
                break
            keys[at], keys[up] = keys[up], keys[at]
            places[at], places[up] = places[up], places[at]
            at = up
        return size + 1
    if key > keys[0] or (key == keys[0] and place > places[0]):
        return size
    keys[0], places[0] = key, place
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            return size
        if down + 1 < size and _above(keys, places, down + 1, down):
            down += 1
        if not _above(keys, places, down, at):
            return size
        keys[at], keys[down] = keys[down], keys[at]
        places[at], places[down] = places[down], places[at]
        at = down


@njit(nogil=True, cache=True)
def keep_smallest(begin, degree, near, nodes, fanout, keys, early, pi, codes, spare, kept, inverse):
    """Keep the ``fanout`` edges of each row with the smallest number / pi; the rest is as in ``keep_poisson``.

    The inverse is 1 / min(1, pi tau), where tau is the smallest number / pi that was not kept.
    """
    n = begin.shape[0]
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    most = 1
    for i in range(n):
        indptr[i + 1] = indptr[i] + (degree[i] if fanout < 0 else min(degree[i], fanout))
        most = max(most, indptr[i + 1] - indptr[i] + 1)
    heap, places = np.empty(most, np.float64), np.empty(most, np.int64)
    _fill(nodes, keys, early, pi, codes, spare)
    # the last row that had a source once, or ~m for entry m of those it had repeatedly, which are few
    mark = np.full(pi.shape[0], -1, np.int32)
    repeated, copies = np.empty(16, np.int64), np.empty(16, np.int64)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(near, begin[i + _AHEAD])
        first, end, w, k = begin[i], begin[i] + degree[i], indptr[i], indptr[i + 1] - indptr[i]
        if k == degree[i]:
            for j in range(k):
                kept[w + j], inverse[w + j] = first + j, 1.0
            continue
        found, number, bound = 0, 0, 255
        for p in range(first, end):
            t, copy = np.int64(near[p]), 0
            m = int(mark[t])
            if m == i or (m < 0 and ~m < number and repeated[~m] == t):
                # an edge from the same source again: with one number for both, neither law would hold
                if m == i:
                    m = ~number
                    mark[t] = m
                    repeated, copies = room(repeated, number, 1), room(copies, number, 1)
                    repeated[number], copies[number] = t, 0
                    number += 1
                copies[~m] += 1
                copy = int(copies[~m])
            else:
                mark[t] = i
                if found > k and codes[t] > bound:
                    continue
            found = _keep_smaller(heap, places, found, k + 1, _least(t, nodes, keys, early, copy, pi), p)
            bound = _code(heap[0])
        tau, last = heap[0], places[0]
        for p in np.sort(places[: k + 1]):
            if p != last:
                kept[w] = p
                inverse[w] = 1.0 / min(1.0, pi[near[p]] * tau)
                w += 1
    return indptr
