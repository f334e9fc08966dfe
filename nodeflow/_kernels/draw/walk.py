"""Random walks with restarts: the nodes that the walks of a destination visit most."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.draw.visits import count_visit, most_visited, row_of, table_size
from nodeflow._kernels.growing import reserve
from nodeflow._kernels.prefetch import prefetch, prefetch_at
from nodeflow._kernels.rng import GOLDEN, U64, bounded, stream, uniform

_AHEAD = 8  # destinations between the prefetch of an entry of indptr and its use


@njit(nogil=True, cache=True)
def count_visits(indptr, indices, patched, patch_indptr, patch_indices, dst, key, num_walks, length, restart, most):
    """Return ``(indptr [n + 1], nodes [E], visits [E])``: the nodes that each destination's walks visited most.

    Args:
        indptr, indices: the graph's rows.
        patched, patch_indptr, patch_indices: nodes (ascending) whose rows are those of this second CSR structure.
        dst: the destinations, where walks begin. All walks of a destination go in step, on one stream.
        key: the key of this flow and batch.
        num_walks, length: number of walks per destination, and of steps per walk.
        restart: probability to go back to the start before a step other than the first.
        most: number of nodes kept per destination, -1 for all.

    Nodes come by descending number of visits, and among equals in order of the first visit. The start does not count
    as visited. A walk that has come to a node without edges goes on from its start; a start without edges has no
    visits.
    """
    n, size = dst.shape[0], num_walks * length
    limit = size if most < 0 else min(most, size)
    out_indptr = np.zeros(n + 1, np.int64)
    nodes = np.empty(n * min(limit, 16) + limit, indices.dtype)  # the graph's integer type, until their number is known
    visits = np.empty(nodes.shape[0], np.int32)
    current, positions = np.empty(num_walks, np.int64), np.empty(num_walks, np.int64)
    seen, count = np.empty(size, np.int64), np.empty(size, np.int64)  # distinct nodes in order of first visit
    slots, rank = np.empty(size, np.int64), np.zeros(size + 2, np.int64)
    table = np.full(table_size(size), -1, np.int64)
    for i in range(n):
        prefetch_at(indptr, dst, i + _AHEAD)
        start, base = dst[i], out_indptr[i]
        out_indptr[i + 1] = base
        first, choices, first_inside = row_of(indptr, patched, patch_indptr, start)
        if choices == 0:
            continue
        state, distinct = stream(key, start), 0
        current[:] = start
        for step in range(length):
            # three passes over the walks, so that the loads of all of them are under way at once
            if step > 0:
                for w in range(num_walks):
                    state += GOLDEN
                    if uniform(state) < restart:
                        current[w] = start
                    prefetch(indptr, current[w])
            for w in range(num_walks):
                begin, degree, inside = row_of(indptr, patched, patch_indptr, current[w])
                if degree == 0:
                    begin, degree, inside = first, choices, first_inside
                pick, state = bounded(state, U64(degree))
                position = begin + int64(pick)
                if inside:
                    positions[w] = ~position
                else:
                    positions[w] = position
                    prefetch(indices, position)
            for w in range(num_walks):
                u = int64(indices[positions[w]]) if positions[w] >= 0 else int64(patch_indices[~positions[w]])
                current[w] = u
                if u != start:
                    distinct = count_visit(table, u, seen, count, slots, distinct)
        nodes, visits = reserve(nodes, base, limit), reserve(visits, base, limit)
        out_indptr[i + 1] = base + most_visited(seen, count, distinct, rank, limit, nodes[base:], visits[base:])
        for j in range(distinct):
            table[slots[j]] = -1
    return out_indptr, nodes[: out_indptr[n]].astype(np.int64), visits[: out_indptr[n]].astype(np.int64)
