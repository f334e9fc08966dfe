"""Draws of nodes that a node has no edge to, and look-ups of the edges between two nodes.

Weights of nodes are whole numbers, given as ``upto`` ``[num_nodes + 1]``: the sum of the weights of all nodes before.
An empty ``upto`` stands for weight 1. So a draw is a whole number below a sum of weights, and its law is exact.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.rng import U64, bounded, stream


@njit(inline="always")
def _first_at_least(values, first, end, bound):
    """The first place from ``first`` to ``end`` whose value is at least ``bound``; ``end`` where there is none."""
    while first < end:
        middle = (first + end) // 2
        if values[middle] < bound:
            first = middle + 1
        else:
            end = middle
    return first


@njit(nogil=True, cache=True)
def node_of(rank, first, end, known, before, upto):
    """The node that owns number ``rank`` when the nodes outside ``known[first:end]`` (ascending) are laid side by side.

    Each takes as many numbers as its weight. ``before`` are the weights of the known ones before in the row.
    """
    even = upto.shape[0] == 0
    low, high = first, end  # how many known nodes lie below: those up to which the others have at most rank numbers
    while low < high:
        middle = (low + high) // 2
        if even:
            below = int64(known[middle]) - (middle - first)
        else:
            below = upto[known[middle]] - before[middle]
        if below <= rank:
            low = middle + 1
        else:
            high = middle
    if even:
        return rank + low - first
    if low > first:
        last = low - 1
        rank += before[last] + upto[known[last] + 1] - upto[known[last]]
    return _first_at_least(upto, 0, upto.shape[0], rank + 1) - 1


@njit(nogil=True, cache=True)
def draw_any(key, limits, upto, out):
    """Fill ``out`` ``[rows, count]`` with nodes drawn in proportion to their weights; row i has stream i.

    Row i draws among nodes 0 to ``limits[i] - 1``. Returns -1, or the first row without a node of positive weight.
    """
    even = upto.shape[0] == 0
    for i in range(out.shape[0]):
        total = limits[i] if even else upto[limits[i]]
        if total <= 0:
            return i
        state = stream(key, i)
        for j in range(out.shape[1]):
            number, state = bounded(state, U64(total))
            rank = int64(number)
            out[i, j] = rank if even else _first_at_least(upto, 0, upto.shape[0], rank + 1) - 1
    return -1


@njit(nogil=True, cache=True)
def draw_unknown(key, limits, upto, ends, indptr, known, before, out):
    """Like ``draw_any`` among the nodes that are not known to node ``ends[i]`` of the row (see ``known_rows``)."""
    even = upto.shape[0] == 0
    for i in range(out.shape[0]):
        first = indptr[ends[i]]
        end = _first_at_least(known, first, indptr[ends[i] + 1], limits[i])
        total = limits[i] if even else upto[limits[i]]
        if end > first:
            last = known[end - 1]
            total -= end - first if even else before[end - 1] + upto[last + 1] - upto[last]
        if total <= 0:
            return i
        state = stream(key, i)
        for j in range(out.shape[1]):
            number, state = bounded(state, U64(total))
            out[i, j] = node_of(int64(number), first, end, known, before, upto)
    return -1


@njit(nogil=True, cache=True)
def known_rows(indptr, dst, upto):
    """Return ``(indptr, known, before)``: for every node itself and its distinct out-neighbours, ascending.

    ``dst`` are the out-neighbours in ascending order in every row. ``before`` (empty where ``upto`` is) are the weights
    of the nodes before in the row.
    """
    n = indptr.shape[0] - 1
    rows = np.empty(n + 1, np.int64)
    rows[0] = 0
    for u in range(n):
        size, last = 1, u
        for p in range(indptr[u], indptr[u + 1]):
            if dst[p] != last and dst[p] != u:
                size += 1
                last = dst[p]
        rows[u + 1] = rows[u] + size
    known = np.empty(rows[n], dst.dtype)
    before = np.empty(rows[n] if upto.shape[0] else 0, np.int64)
    for u in range(n):
        w, last, placed = rows[u], -1, False
        for p in range(indptr[u], indptr[u + 1]):
            if dst[p] == last or dst[p] == u:
                continue
            if dst[p] > u and not placed:
                known[w] = u
                w, placed = w + 1, True
            known[w] = dst[p]
            w, last = w + 1, dst[p]
        if not placed:
            known[w] = u
        if upto.shape[0]:
            total = int64(0)
            for p in range(rows[u], rows[u + 1]):
                before[p] = total
                total += upto[known[p] + 1] - upto[known[p]]
    return rows, known, before


@njit(nogil=True, cache=True)
def edges_between(indptr, dst, eid, u, v):
    """Return the ids of all edges between ``u[i]`` and ``v[i]`` in either direction, pair by pair.

    ``dst`` and ``eid`` are out-neighbours and edge ids, the neighbours in ascending order in every row.
    """
    n = u.shape[0]
    begin, end = np.empty((n, 2), np.int64), np.empty((n, 2), np.int64)
    total = 0
    for i in range(n):
        for turned in range(2):
            a, b = (v[i], u[i]) if turned else (u[i], v[i])
            at = _first_at_least(dst, indptr[a], indptr[a + 1], b)
            begin[i, turned] = at
            while at < indptr[a + 1] and dst[at] == b:
                at += 1
            end[i, turned] = at
            total += at - begin[i, turned]
    found = np.empty(total, np.int64)
    w = 0
    for i in range(n):
        for turned in range(2):
            for p in range(begin[i, turned], end[i, turned]):
                found[w] = eid[p]
                w += 1
    return found
