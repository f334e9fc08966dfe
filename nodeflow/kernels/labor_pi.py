"""Importance of sources for LABOR-i: what every destination needs, what that makes of the sources, and the draw.

Arrays of all candidate edges of a flow: row i holds entries ``offsets[i]`` to ``offsets[i + 1]`` of ``local``, which
are local ids of the sources; ``pi`` has one entry per local id, ``c`` one per row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow.kernels.labor import is_renewed
from nodeflow.kernels.prefetch import prefetch
from nodeflow.kernels.random import GOLDEN, U64, mix, stream
from nodeflow.kernels.room import room

_AHEAD = 4
_FRACTION = 2.0**-53


@njit(nogil=True, cache=True)
def gather(begin, degree, near):  # type: ignore[no-untyped-def]
    """Return ``(offsets, sources)`` of all edges of the rows."""
    offsets = np.empty(begin.shape[0] + 1, np.int64)
    offsets[0] = 0
    for i in range(begin.shape[0]):
        offsets[i + 1] = offsets[i] + degree[i]
    src = np.empty(offsets[-1], np.int64)
    for i in range(begin.shape[0]):
        if i + _AHEAD < begin.shape[0]:
            prefetch(near, begin[i + _AHEAD])
        for j in range(degree[i]):
            src[offsets[i] + j] = near[begin[i] + j]
    return offsets, src


@njit(nogil=True, cache=True)
def gather_local(begin, degree, near, table):  # type: ignore[no-untyped-def]
    """Return ``(offsets, local ids, nodes)`` of all edges of the rows; ids are numbered as they first appear.

    ``table`` has an int32 -1 for every node of the graph.
    """
    offsets = np.empty(begin.shape[0] + 1, np.int64)
    offsets[0] = 0
    for i in range(begin.shape[0]):
        offsets[i + 1] = offsets[i] + degree[i]
    local = np.empty(offsets[-1], np.int32)
    nodes = np.empty(min(offsets[-1], table.shape[0]), np.int64)
    size = 0
    for i in range(begin.shape[0]):
        if i + _AHEAD < begin.shape[0]:
            prefetch(near, begin[i + _AHEAD])
        for j in range(degree[i]):
            t = near[begin[i] + j]
            if table[t] < 0:
                table[t] = size
                nodes[size] = t
                size += 1
            local[offsets[i] + j] = table[t]
    return offsets, local, nodes[:size].copy()


@njit(nogil=True, cache=True)
def first_needs(offsets, fanout):  # type: ignore[no-untyped-def]
    """Return c of every row for pi = 1: ``min(1, fanout / degree)``."""
    c = np.ones(offsets.shape[0] - 1, np.float64)
    for i in range(c.shape[0]):
        d = offsets[i + 1] - offsets[i]
        if 0 <= fanout < d:
            c[i] = fanout / d
    return c


@njit(nogil=True, cache=True)
def update(offsets, local, c, pi):  # type: ignore[no-untyped-def]
    """Multiply every pi by the largest c of its destinations; returns the sum of the new pi.

    That sum is the expected number of distinct sources of the draw that the old pi and c belong to.
    """
    largest = np.zeros(pi.shape[0], np.float64)
    for i in range(c.shape[0]):
        for e in range(offsets[i], offsets[i + 1]):
            largest[local[e]] = max(largest[local[e]], c[i])
    total = 0.0
    for t in range(pi.shape[0]):
        pi[t] *= largest[t]
        total += pi[t]
    return total


@njit(nogil=True, cache=True)
def solve(offsets, local, fanout, pi, c):  # type: ignore[no-untyped-def]
    """Write into ``c`` the solution of ``sum(1 / min(1, c pi)) == degree**2 / fanout`` for every row after an update.

    No c and no pi exceeds 1, which makes the equation linear in 1 / c. For pi begins at 1 and is multiplied by c; and
    with old pi and c a row has ``sum(1 / (c pi)) == degree**2 / fanout``, with every new pi at least c pi, so its new c
    is at most 1. Rows of at most ``fanout`` edges keep c = 1, and their sources pi = 1.
    """
    inverse = 1.0 / pi
    for i in range(c.shape[0]):
        d = offsets[i + 1] - offsets[i]
        if 0 <= fanout < d:
            total = 0.0
            for e in range(offsets[i], offsets[i + 1]):
                total += inverse[local[e]]
            c[i] = total / (float(d) * d / fanout)


@njit(nogil=True, cache=True)
def _uniform(t, keys, early, copy):  # type: ignore[no-untyped-def]
    """The number of a source, in [0, 1) with 53 bits; ``copy`` tells several edges from it apart."""
    key = keys[1] if early > 0 and is_renewed(t, keys, early) else keys[0]
    return (mix(stream(key, t) + U64(copy + 1) * GOLDEN) >> U64(11)) * _FRACTION


@njit(nogil=True, cache=True)
def keep_poisson(offsets, local, nodes, fanout, keys, early, pi, c):  # type: ignore[no-untyped-def]
    """Keep the edges whose source's number is below ``c pi``.

    Returns ``(indptr, entries, inverse)``: the kept entries of ``local``, and 1 / probability of each.
    """
    least = np.empty(nodes.shape[0], np.float64)  # the c from which a source is kept
    for t in range(nodes.shape[0]):
        least[t] = _uniform(nodes[t], keys, early, 0) / pi[t]
    n = c.shape[0]
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    entries = np.empty(1024 + 16 * n, np.int64)
    w = 0
    for i in range(n):
        first, end = offsets[i], offsets[i + 1]
        entries = room(entries, w, end - first)
        every = fanout < 0 or end - first <= fanout
        for e in range(first, end):
            entries[w] = e
            w += every or least[local[e]] < c[i]
        indptr[i + 1] = w
    entries = entries[:w].copy()
    inverse = np.empty(w, np.float64)
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            inverse[q] = 1.0 / min(1.0, c[i] * pi[local[entries[q]]])
    return indptr, entries, inverse


@njit(inline="always")
def _above(keys, places, i, j):  # type: ignore[no-untyped-def]
    return keys[i] > keys[j] or (keys[i] == keys[j] and places[i] > places[j])


@njit(nogil=True, cache=True)
def _keep_smaller(keys, places, size, most, key, place):  # type: ignore[no-untyped-def]
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
def keep_smallest(offsets, local, nodes, fanout, keys, early, pi):  # type: ignore[no-untyped-def]
    """Keep the ``fanout`` edges of each row with the smallest number / pi; returns what ``keep_poisson`` returns.

    The inverse is 1 / min(1, pi tau), where tau is the smallest number / pi that was not kept.
    """
    n = offsets.shape[0] - 1
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    most = 1
    for i in range(n):
        d = offsets[i + 1] - offsets[i]
        indptr[i + 1] = indptr[i] + (d if fanout < 0 else min(d, fanout))
        most = max(most, indptr[i + 1] - indptr[i] + 1)
    entries, inverse = np.empty(indptr[-1], np.int64), np.ones(indptr[-1], np.float64)
    heap, places = np.empty(most, np.float64), np.empty(most, np.int64)
    number = np.empty(nodes.shape[0], np.float64)
    for t in range(nodes.shape[0]):
        number[t] = _uniform(nodes[t], keys, early, 0)
    row, copies = np.full(nodes.shape[0], -1, np.int64), np.zeros(nodes.shape[0], np.int64)
    for i in range(n):
        first, end, w, k = offsets[i], offsets[i + 1], indptr[i], indptr[i + 1] - indptr[i]
        if k == end - first:
            for j in range(k):
                entries[w + j] = first + j
            continue
        found = 0
        for e in range(first, end):
            t = local[e]
            own = number[t]
            if row[t] == i:  # an edge from the same source again: with one number for both, neither law would hold
                copies[t] += 1
                own = _uniform(nodes[t], keys, early, copies[t])
            else:
                row[t] = i
                copies[t] = 0
            found = _keep_smaller(heap, places, found, k + 1, own / pi[t], e)
        tau, last = heap[0], places[0]
        kept = np.sort(places[: k + 1])
        for e in kept:
            if e != last:
                entries[w] = e
                inverse[w] = 1.0 / min(1.0, pi[local[e]] * tau)
                w += 1
    return indptr, entries, inverse
