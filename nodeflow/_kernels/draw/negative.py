"""Negatives: draws of nodes to which a node has no edge, and look-ups of the edges between two nodes.

The weights of nodes are integers, given by their running sums: ``upto[v]`` of ``upto`` ``[num_nodes + 1]`` is the sum
of the weights of nodes 0 to v - 1. An empty ``upto`` means weight 1 for all. A draw is a random integer below a sum of
weights, so the probabilities are exact.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.rng import U64, bounded, stream


@njit(inline="always")
def _first_at_least(values, first, end, bound):
    """The first i from ``first`` to ``end`` with ``values[i] >= bound``; ``end`` where there is none."""
    while first < end:
        middle = (first + end) // 2
        if values[middle] < bound:
            first = middle + 1
        else:
            end = middle
    return first


@njit(nogil=True, cache=True)
def node_of(rank, first, end, known, before, upto):
    """The node that owns integer ``rank`` among the nodes outside ``known[first:end]`` (ascending).

    In the order of their ids, each of these nodes owns as many integers as its weight, from 0 on. ``before[i]`` is the
    sum of the weights of the known nodes before ``known[i]`` in its row.
    """
    even = upto.shape[0] == 0
    low, high = first, end  # search: how many known nodes lie below the node
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
def draw_any(key, limits, upto, drawn):
    """Fill ``drawn`` ``[rows, count]`` with nodes, in proportion to their weights; row i has stream i.

    Row i draws among nodes 0 to ``limits[i] - 1``. Returns -1, or the first row without a node of positive weight.
    """
    even = upto.shape[0] == 0
    for i in range(drawn.shape[0]):
        total = limits[i] if even else upto[limits[i]]
        if total <= 0:
            return i
        state = stream(key, i)
        for j in range(drawn.shape[1]):
            number, state = bounded(state, U64(total))
            rank = int64(number)
            drawn[i, j] = rank if even else _first_at_least(upto, 0, upto.shape[0], rank + 1) - 1
    return -1


@njit(nogil=True, cache=True)
def draw_unknown(key, limits, upto, ends, indptr, known, before, drawn):
    """Fill ``drawn`` like ``draw_any``, row i with nodes not known to node ``ends[i]`` (see ``known_rows``)."""
    even = upto.shape[0] == 0
    for i in range(drawn.shape[0]):
        first = indptr[ends[i]]
        end = _first_at_least(known, first, indptr[ends[i] + 1], limits[i])
        total = limits[i] if even else upto[limits[i]]
        if end > first:
            last = known[end - 1]
            total -= end - first if even else before[end - 1] + upto[last + 1] - upto[last]
        if total <= 0:
            return i
        state = stream(key, i)
        for j in range(drawn.shape[1]):
            number, state = bounded(state, U64(total))
            drawn[i, j] = node_of(int64(number), first, end, known, before, upto)
    return -1


@njit(nogil=True, cache=True)
def known_rows(indptr, indices, upto):
    """Return ``(indptr, known, before)``: the nodes known to every node are itself and its distinct out-neighbours.

    ``indices`` are the out-neighbours, ascending in every row, as ``known`` is. ``before`` is the sum of the weights of
    the known nodes before in the row; empty where ``upto`` is.
    """
    n = indptr.shape[0] - 1
    rows = np.empty(n + 1, np.int64)
    rows[0] = 0
    for u in range(n):
        size, last = 1, u
        for p in range(indptr[u], indptr[u + 1]):
            if indices[p] != last and indices[p] != u:
                size += 1
                last = indices[p]
        rows[u + 1] = rows[u] + size
    known = np.empty(rows[n], indices.dtype)
    before = np.empty(rows[n] if upto.shape[0] else 0, np.int64)
    for u in range(n):
        w, last, placed = rows[u], -1, False
        for p in range(indptr[u], indptr[u + 1]):
            if indices[p] == last or indices[p] == u:
                continue
            if indices[p] > u and not placed:
                known[w] = u
                w, placed = w + 1, True
            known[w] = indices[p]
            w, last = w + 1, indices[p]
        if not placed:
            known[w] = u
        if upto.shape[0]:
            total = int64(0)
            for p in range(rows[u], rows[u + 1]):
                before[p] = total
                total += upto[known[p] + 1] - upto[known[p]]
    return rows, known, before


@njit(nogil=True, cache=True)
def edges_between(indptr, indices, eid, u, v):
    """Return the ids of all edges between ``u[i]`` and ``v[i]`` in either direction, pair by pair.

    ``indices`` are the out-neighbours, ascending in every row, and ``eid`` the edge ids.
    """
    n = u.shape[0]
    begin, end = np.empty((n, 2), np.int64), np.empty((n, 2), np.int64)
    total = 0
    for i in range(n):
        for turned in range(2):
            a, b = (v[i], u[i]) if turned else (u[i], v[i])
            p = _first_at_least(indices, indptr[a], indptr[a + 1], b)
            begin[i, turned] = p
            while p < indptr[a + 1] and indices[p] == b:
                p += 1
            end[i, turned] = p
            total += p - begin[i, turned]
    between = np.empty(total, np.int64)
    w = 0
    for i in range(n):
        for turned in range(2):
            for p in range(begin[i, turned], end[i, turned]):
                between[w] = eid[p]
                w += 1
    return between
