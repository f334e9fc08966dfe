"""Random walks whose steps other processes answer: ``walk.count_visits`` in pieces, between which questions travel.

The process that asked for the walks keeps ``states``, the random states of its n starts, and ``current``
``[n, walks]``, where their walks are. The processes that hold edges answer ``degrees`` and ``neighbors``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.draw.visits import count_visit, most_visited, row_of, table_size
from nodeflow._kernels.growing import reserve
from nodeflow._kernels.rng import GOLDEN, U64, bounded, stream, uniform


@njit(nogil=True, cache=True)
def first_states(key, starts):
    """Return the random states of walks from ``starts`` before their first step, uint64 ``[n]``."""
    states = np.empty(starts.shape[0], np.uint64)
    for i in range(starts.shape[0]):
        states[i] = stream(key, starts[i])
    return states


@njit(nogil=True, cache=True)
def restart_some(states, starts, current, restart):
    """Put every walk back to its start with probability ``restart``, changing ``states`` and ``current``."""
    for i in range(starts.shape[0]):
        for w in range(current.shape[1]):
            states[i] += GOLDEN
            if uniform(states[i]) < restart:
                current[i, w] = starts[i]


@njit(nogil=True, cache=True)
def pick_edges(states, starts, choices, current, degree):
    """Return which edge every walk takes, int64 ``[n, walks]``: a number below the degree of the node where it is.

    ``choices`` ``[n]`` are the degrees of the starts, above 0, and ``degree`` ``[n, walks]`` those of ``current``.
    Walks at a node of degree 0 go on from their start. Changes ``states`` and ``current``.
    """
    picks = np.empty(current.shape, np.int64)
    for i in range(starts.shape[0]):
        state = states[i]
        for w in range(current.shape[1]):
            bound = degree[i, w]
            if bound == 0:
                current[i, w], bound = starts[i], choices[i]
            pick, state = bounded(state, U64(bound))
            picks[i, w] = np.int64(pick)
        states[i] = state
    return picks


@njit(nogil=True, cache=True)
def degrees(indptr, patched, patch_indptr, rows):
    """Return the lengths of ``rows``, int64 ``[k]``; for ``patched`` and ``patch_indptr`` see ``walk.count_visits``."""
    lengths = np.empty(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        _, lengths[i], _ = row_of(indptr, patched, patch_indptr, rows[i])
    return lengths


@njit(nogil=True, cache=True)
def neighbors(indptr, indices, patched, patch_indptr, patch_indices, rows, picks):
    """Return the node to which edge ``picks[i]`` of row ``rows[i]`` leads, ``[k]``."""
    nodes = np.empty(rows.shape[0], indices.dtype)
    for i in range(rows.shape[0]):
        begin, _, inside = row_of(indptr, patched, patch_indptr, rows[i])
        position = begin + picks[i]
        nodes[i] = patch_indices[position] if inside else indices[position]
    return nodes


@njit(nogil=True, cache=True)
def most_visited_of(visited, starts, most):
    """Return ``(indptr [n + 1], nodes [E], visits [E])``, as ``walk.count_visits`` does, of walks that have been made.

    ``visited`` ``[n, length, walks]`` are the nodes where the walks were after every step, ``most`` the number of nodes
    kept per start, -1 for all.
    """
    n, size = starts.shape[0], visited.shape[1] * visited.shape[2]
    limit = size if most < 0 else min(most, size)
    indptr = np.zeros(n + 1, np.int64)
    nodes = np.empty(n * min(limit, 16) + limit, np.int64)
    visits = np.empty(nodes.shape[0], np.int64)
    seen, count = np.empty(size, np.int64), np.empty(size, np.int64)
    slots, rank = np.empty(size, np.int64), np.zeros(size + 2, np.int64)
    table = np.full(table_size(size), -1, np.int64)
    for i in range(n):
        distinct = 0
        for step in range(visited.shape[1]):
            for w in range(visited.shape[2]):
                u = visited[i, step, w]
                if u != starts[i]:
                    distinct = count_visit(table, u, seen, count, slots, distinct)
        base = indptr[i]
        nodes, visits = reserve(nodes, base, limit), reserve(visits, base, limit)
        indptr[i + 1] = base + most_visited(seen, count, distinct, rank, limit, nodes[base:], visits[base:])
        for j in range(distinct):
            table[slots[j]] = -1
    return indptr, nodes[: indptr[n]].copy(), visits[: indptr[n]].copy()
