"""Loops of the layer-wise samplers: one pass over the edges of all destinations of a flow.

``column`` is the weight of the edges in the order of the positions, empty where every edge has 1. ``out`` are positions
that are left out, ascending. A norm is a sum of squared weights.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.csr import step_past
from nodeflow._kernels.draw.pps import find, uniform
from nodeflow._kernels.growing import room
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, bounded, stream

_AHEAD = 8  # destinations whose row is asked for early
_PIECE = 1024  # edges for which there is room before they are looked at


@njit(inline="always")
def _contains(ascending, value):
    low, high = 0, ascending.shape[0]
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < ascending.shape[0] and ascending[low] == value


@njit(nogil=True, cache=True)
def near_norms(near, column, num_nodes):
    """Norm of every node over the edges in which it is the neighbour, float64 ``[num_nodes]``."""
    out = np.zeros(num_nodes, np.float64)
    if column.shape[0] == 0:
        for p in range(near.shape[0]):
            out[near[p]] += 1.0
    else:
        for p in range(near.shape[0]):
            a = float(column[p])
            out[near[p]] += a * a
    return out


@njit(nogil=True, cache=True)
def row_norms(indptr, rows, column, out):
    """Norm of every one of ``rows``, float64 ``[len(rows)]``; edges are added in their order."""
    found = np.zeros(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        total = 0.0
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if out.shape[0] == 0 or not _contains(out, p):
                a = float(column[p])
                total += a * a
        found[i] = total
    return found


@njit(nogil=True, cache=True)
def row_sums(indptr, rows, column, out):
    """Sum of the weights of every one of ``rows``, float64 ``[len(rows)]``."""
    found = np.zeros(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if out.shape[0] == 0 or not _contains(out, p):
                found[i] += 1.0 if column.shape[0] == 0 else float(column[p])
    return found


@njit(nogil=True, cache=True)
def add_norms(local, positions, column, out):
    """Add the squared weight of every edge to ``out[local[e]]``, where its source is numbered."""
    for e in range(local.shape[0]):
        a = 1.0 if column.shape[0] == 0 else float(column[positions[e]])
        out[local[e]] += a * a


@njit(nogil=True, cache=True)
def draw_edges(indptr, near, rows, out, size, key):
    """Draw ``size`` edges of ``rows`` uniformly with replacement; return their neighbours (none without edges)."""
    n = rows.shape[0]
    ends, total = np.empty(n, np.int64), 0
    for i in range(n):
        begin, end = indptr[rows[i]], indptr[rows[i] + 1]
        total += end - begin - (np.searchsorted(out, end) - np.searchsorted(out, begin) if out.shape[0] else 0)
        ends[i] = total
    found = np.empty(size if total else 0, np.int64)
    state = stream(key, 0)
    for j in range(found.shape[0]):
        number, state = bounded(state, U64(total))
        x = int64(number)
        i = find(ends, x)
        p = indptr[rows[i]] + x - (ends[i - 1] if i else 0)
        if out.shape[0]:  # edge number x of those that are left: step over the ones left out, ascending
            first, last = np.searchsorted(out, indptr[rows[i]]), np.searchsorted(out, indptr[rows[i] + 1])
            p = step_past(out, first, last, p)
        found[j] = near[p]
    return found


@njit(nogil=True, cache=True)
def draw_edges_weighted(indptr, near, rows, norms, column, out, size, key):
    """Draw ``size`` edges of ``rows`` with replacement, in proportion to their squared weights; return the neighbours.

    ``norms`` are the rows' norms. The points on the line of all squared weights are sorted first, so that each row is
    run through once at most. None where all weights are 0.
    """
    total = 0.0
    for i in range(rows.shape[0]):
        total += norms[i]
    points = np.empty(size if total > 0 else 0, np.float64)
    state = stream(key, 0)
    for j in range(points.shape[0]):
        state += GOLDEN
        points[j] = uniform(state) * total
    points.sort()
    found = np.empty(points.shape[0], np.int64)
    j, start = 0, 0.0
    for i in range(rows.shape[0]):
        if i + 2 * _AHEAD < rows.shape[0]:
            prefetch(indptr, rows[i + 2 * _AHEAD])
        if i + _AHEAD < rows.shape[0]:
            prefetch(column, indptr[rows[i + _AHEAD]])
        end = start + norms[i]
        if j < points.shape[0] and points[j] < end:
            running, last = start, -1
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                a = float(column[p])
                if a * a > 0 and not (out.shape[0] and _contains(out, p)):
                    running += a * a
                    last = p
                    while j < points.shape[0] and points[j] < running:
                        found[j] = p
                        j += 1
                    if j == points.shape[0] or points[j] >= end:
                        break
            while j < points.shape[0] and points[j] < end:  # beyond the row's sum by rounding
                found[j] = last
                j += 1
        start = end
    for j in range(found.shape[0]):
        found[j] = near[found[j]]
    return found


@njit(nogil=True, cache=True)
def edges_from(indptr, near, rows, nodes, column, out):
    """Find the edges of ``rows`` whose neighbours are among the distinct ``nodes``.

    Returns ``(indptr [rows + 1], positions [E], place in nodes [E], norm of every node over these edges)``. A bitmap
    of the nodes' last bits, which fits the fastest cache, turns nearly all edges away; a hash table tells the rest.
    """
    n, size, bits = nodes.shape[0], 1 << 4, 1 << 12
    while size < 4 * n:
        size *= 2
    while bits < 512 * n and bits < 1 << 23:
        bits *= 2
    table, there = np.full(size, -1, np.int64), np.zeros(bits >> 3, np.uint8)
    for k in range(n):
        bit = nodes[k] & (bits - 1)
        there[bit >> 3] |= np.uint8(1 << (bit & 7))
        h = int64((U64(nodes[k]) * GOLDEN) >> U64(32)) & (size - 1)
        while table[h] != -1:
            h = (h + 1) & (size - 1)
        table[h] = k
    ends, norms, likely = np.zeros(rows.shape[0] + 1, np.int64), np.zeros(n, np.float64), np.empty(_PIECE, np.int64)
    places, which, w = np.empty(4 * _PIECE, np.int64), np.empty(4 * _PIECE, np.int64), 0
    for i in range(rows.shape[0]):
        if i + 2 * _AHEAD < rows.shape[0]:
            prefetch(indptr, rows[i + 2 * _AHEAD])
        if i + _AHEAD < rows.shape[0]:
            first = indptr[rows[i + _AHEAD]]
            prefetch(near, first)
            prefetch(near, first + 16)
        end = indptr[rows[i] + 1]
        for begin in range(indptr[rows[i]], end, _PIECE):
            if w + _PIECE > places.shape[0]:
                places, which = room(places, w, _PIECE), room(which, w, _PIECE)
            number = _scan(near[begin : min(begin + _PIECE, end)], there, likely)
            w = _sure(near, begin, likely[:number], nodes, table, column, out, norms, places, which, w)
        ends[i + 1] = w
    return ends, places[:w].copy(), which[:w].copy(), norms


@njit(nogil=True, cache=True)
def _scan(row, there, likely):
    w, last = U64(0), U64(8 * there.shape[0] - 1)  # unsigned indices: no look whether they count from the end
    for j in range(row.shape[0]):
        bit = U64(row[j]) & last
        likely[w] = j  # overwritten by the next edge unless this one counts: no branch to guess wrong
        w += U64((there[bit >> U64(3)] >> (bit & U64(7))) & U64(1))
    return int64(w)


@njit(nogil=True, cache=True)
def _sure(near, begin, likely, nodes, table, column, out, norms, places, which, w):
    mask = table.shape[0] - 1
    for j in likely:
        p = begin + j
        u = int64(near[p])
        h = int64((U64(u) * GOLDEN) >> U64(32)) & mask
        while table[h] != -1 and nodes[table[h]] != u:
            h = (h + 1) & mask
        k = table[h]
        if k == -1 or (out.shape[0] and _contains(out, p)):
            continue
        places[w], which[w] = p, k
        w += 1
        a = 1.0 if column.shape[0] == 0 else float(column[p])
        norms[k] += a * a
    return w


@njit(nogil=True, cache=True)
def edges_by_chance(indptr, near, rows, prob, out, key):
    """Find the edges of ``rows`` whose neighbour is drawn: each node on its own, with its probability ``prob[node]``.

    Returns ``(indptr [rows + 1], positions [E])``.
    """
    ends = np.zeros(rows.shape[0] + 1, np.int64)
    places, w = np.empty(4 * _PIECE, np.int64), 0
    for i in range(rows.shape[0]):
        end = indptr[rows[i] + 1]
        for begin in range(indptr[rows[i]], end, _PIECE):
            places = room(places, w, _PIECE)
            w = _flip(near, begin, min(begin + _PIECE, end), prob, key, places, w)
        ends[i + 1] = w
    if out.shape[0]:
        read, w = 0, 0
        for i in range(rows.shape[0]):
            end = ends[i + 1]
            for q in range(read, end):
                if not _contains(out, places[q]):
                    places[w] = places[q]
                    w += 1
            read, ends[i + 1] = end, w
    return ends, places[:w].copy()


@njit(nogil=True, cache=True)
def _flip(near, begin, end, prob, key, places, w):
    w = U64(w)
    for p in range(begin, end):
        u = U64(near[p])
        places[w] = p
        w += U64(uniform(stream(key, u) + GOLDEN) < prob[u])
    return int64(w)
