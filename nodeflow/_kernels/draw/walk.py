"""Random walks with restarts, and the visits they make: one table of counts per destination."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.growing import longer
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64, bounded, mix, stream

_AHEAD = 8  # destinations whose row of indptr is asked for early
_UNIT = 2.0**-53


@njit(nogil=True, cache=True)
def count_visits(indptr, near, patched, patch_indptr, patch_near, dst, key, num_walks, length, restart, most):
    """Return ``(indptr [n + 1], nodes [E], visits [E])``: what the walks of every destination visited most.

    Args:
        indptr, near: the graph's rows.
        patched, patch_indptr, patch_near: nodes (ascending) that have the rows of another CSR structure instead.
        dst: where walks begin; all walks of a destination go in step, on one stream of random numbers.
        key: of this flow and batch.
        num_walks, length: walks per destination, and steps of each.
        restart: probability to go back to the start before a step other than the first.
        most: number of nodes kept for a destination, -1 for all.

    Nodes come by falling number of visits, among equals the one visited first; the start is no neighbour of itself. A
    walk at a node without edges goes on from its start; a start without edges has no visits.
    """
    n, size = dst.shape[0], num_walks * length
    limit = size if most < 0 else min(most, size)
    out = np.empty(n + 1, np.int64)
    out[0] = 0
    nodes = np.empty(n * min(limit, 16) + limit, near.dtype)  # narrow until their number is known
    visits = np.empty(nodes.shape[0], np.int32)
    at, pos = np.empty(num_walks, np.int64), np.empty(num_walks, np.int64)
    seen, count = np.empty(size, np.int64), np.empty(size, np.int64)  # distinct nodes in order of first visit
    slots, rank = np.empty(size, np.int64), np.zeros(size + 2, np.int64)
    room = 16
    while room < 2 * size:
        room *= 2
    table = np.full(room, -1, np.int64)
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(indptr, dst[i + _AHEAD])
        start, base = dst[i], out[i]
        out[i + 1] = base
        first, choices, first_inside = _row(indptr, patched, patch_indptr, start)
        if choices == 0:
            continue
        state, distinct = stream(key, start), 0
        at[:] = start
        for step in range(length):
            # three passes over the walks, so that the loads of all of them are under way at once
            if step > 0:
                for w in range(num_walks):
                    state += GOLDEN
                    if (mix(state) >> U64(11)) * _UNIT < restart:
                        at[w] = start
                    prefetch(indptr, at[w])
            for w in range(num_walks):
                begin, degree, inside = _row(indptr, patched, patch_indptr, at[w])
                if degree == 0:
                    begin, degree, inside = first, choices, first_inside
                pick, state = bounded(state, U64(degree))
                place = begin + int64(pick)
                if inside:
                    pos[w] = ~place
                else:
                    pos[w] = place
                    prefetch(near, place)
            for w in range(num_walks):
                u = int64(near[pos[w]]) if pos[w] >= 0 else int64(patch_near[~pos[w]])
                at[w] = u
                if u != start:
                    distinct = _count(table, u, seen, count, slots, distinct)
        if base + limit > nodes.shape[0]:
            more = max(2 * nodes.shape[0], base + limit)
            nodes, visits = longer(nodes, base, more), longer(visits, base, more)
        out[i + 1] = base + _most_visited(seen, count, distinct, rank, limit, nodes[base:], visits[base:])
        for j in range(distinct):
            table[slots[j]] = -1
    return out, _wide(nodes, out[n]), _wide(visits, out[n])


@njit(nogil=True, cache=True)
def _wide(array, size):
    out = np.empty(size, np.int64)
    for i in range(size):
        out[i] = array[i]
    return out


@njit(inline="always")
def _row(indptr, patched, patch_indptr, v):
    """First position and length of the row of a node, and whether it is one of the other structure."""
    if patched.shape[0] > 0:
        r = np.searchsorted(patched, v)
        if r < patched.shape[0] and patched[r] == v:
            return patch_indptr[r], patch_indptr[r + 1] - patch_indptr[r], True
    return indptr[v], indptr[v + 1] - indptr[v], False


@njit(inline="always")
def _count(table, u, seen, count, slots, distinct):
    """Count a visit of ``u`` in an open-addressing table of places in ``seen``; returns how many are seen."""
    mask = table.shape[0] - 1
    h = int64((U64(u) * GOLDEN) >> U64(32)) & mask
    while table[h] != -1:
        if seen[table[h]] == u:
            count[table[h]] += 1
            return distinct
        h = (h + 1) & mask
    table[h], seen[distinct], count[distinct], slots[distinct] = distinct, u, 1, h
    return distinct + 1


@njit(nogil=True, cache=True)
def _most_visited(seen, count, distinct, rank, limit, nodes, visits):
    """Sort by falling count, equal ones in their order, and write the first ``limit``; returns how many these are.

    ``rank`` holds zeros before and after.
    """
    top = 0
    for j in range(distinct):
        rank[count[j]] += 1
        top = max(top, count[j])
    place = 0
    for c in range(top, 0, -1):
        number, rank[c] = rank[c], place
        place += number
    for j in range(distinct):
        r = rank[count[j]]
        rank[count[j]] += 1
        if r < limit:
            nodes[r], visits[r] = seen[j], count[j]
    rank[: top + 1] = 0
    return min(distinct, limit)
