"""Random walks with restarts: the nodes that the walks of a destination visit most.

This is the importance pooling of PinSage (Ying and others 2018, "Graph convolutional neural
networks for web-scale recommender systems"). All walks of a destination go in step, so that the
loads of all of them are under way at once.
"""

# What is not good yet: ``visited`` keeps the node of every step, which only ``most_visited``
# reads once; walks of one destination wait for each other at every step, though those of the next
# could fill the wait.

import numpy as np
from numba import int64

from nodeflow._kernels.arrays import reserve, step_past
from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.relabel import slot
from nodeflow._kernels.rng import GOLDEN, U64, bounded, stream, uniform

_AHEAD = 8  # destinations between the prefetch of an entry of indptr and its use


@inlined
def _row_of(indptr, left_out, v):
    """The first position of the row of a node, the number of its edges, and which of ``left_out``
    are in the row.
    """
    begin = indptr[v]
    end = indptr[v + 1]
    if left_out.shape[0] == 0:
        return begin, end - begin, 0, 0
    first = np.searchsorted(left_out, begin)
    last = np.searchsorted(left_out, end)
    return begin, end - begin - (last - first), first, last


@inlined
def _count_visit(table, u, seen, count, slots, distinct):
    """Count a visit of ``u``; return the number of distinct nodes."""
    mask = table.shape[0] - 1
    h = slot(u, U64(32)) & mask
    while table[h] != -1:
        if seen[table[h]] == u:
            count[table[h]] += 1
            return distinct
        h = (h + 1) & mask
    table[h] = distinct
    seen[distinct] = u
    count[distinct] = 1
    slots[distinct] = h
    return distinct + 1


@loop
def walk(indptr, indices, left_out, path, dst, key, num_walks, length, restart):
    """Return the nodes where the walks of each destination are after every step,
    ``[n, length, num_walks]``.

    Args:
        indptr, indices: the graph's rows.
        left_out: positions of edges that do not count, ascending.
        path: which rows a step passes, int64 ``[m, 3]``: with ``(first, start, count)`` the one of
            node v is ``first + (v - start) * count``. A step is an edge of each in turn, and visits
            where the last one leads.
        dst: the destinations, where walks begin. All walks of a destination go in step, on one
            stream.
        key: the key of this flow and batch.
        num_walks, length: number of walks per destination, and of steps per walk.
        restart: probability to go back to the start before a step other than the first.

    A walk that has come to a node without edges of the path's first row goes on from its start; at
    a start without them walks stay. One that finds no edge further on in a step is back at its
    start after it.
    """
    first_row, first_node, rows_each = path[0]
    visited = np.empty((dst.shape[0], length, num_walks), indices.dtype)
    current = np.empty(num_walks, np.int64)
    positions = np.empty(num_walks, np.int64)
    for i in range(dst.shape[0]):
        prefetch_at(indptr, dst, i + _AHEAD)
        start = dst[i]
        row = first_row + (start - first_node) * rows_each
        choices = _row_of(indptr, left_out, row)[1]
        if choices == 0:
            visited[i] = start
            continue
        state = stream(key, start)
        current[:] = start
        for step in range(length):
            # three passes over the walks, so that the loads of all of them are under way at once
            if step > 0:
                for w in range(num_walks):
                    state += GOLDEN
                    if uniform(state) < restart:
                        current[w] = start
                    prefetch(indptr, first_row + (current[w] - first_node) * rows_each)
            for j in range(path.shape[0]):
                for w in range(num_walks):
                    if j > 0 and positions[w] < 0:
                        continue
                    begin, degree, first, last = _row_of(
                        indptr, left_out, path[j, 0] + (current[w] - path[j, 1]) * path[j, 2]
                    )
                    if degree == 0:
                        if j > 0:
                            positions[w] = -1
                            current[w] = start
                            continue
                        begin, degree, first, last = _row_of(indptr, left_out, row)
                    pick, state = bounded(state, U64(degree))
                    positions[w] = begin + int64(pick)
                    if last > first:
                        positions[w] = step_past(left_out, first, last, positions[w])
                    prefetch(indices, positions[w])
                for w in range(num_walks):
                    if positions[w] >= 0:
                        current[w] = indices[positions[w]]
            for w in range(num_walks):
                visited[i, step, w] = current[w]
    return visited


@loop
def most_visited(visited, starts, most):
    """Return ``(indptr [n + 1], nodes [E], visits [E])``: the nodes that the walks of each start
    visited most.

    ``visited`` ``[n, length, walks]`` are the nodes where the walks were after every step, ``most``
    the number of nodes kept per start, -1 for all. Nodes come by descending number of visits, and
    among equals in order of the first visit. The start does not count as visited.
    """
    n = starts.shape[0]
    size = visited.shape[1] * visited.shape[2]
    limit = size if most < 0 else min(most, size)
    indptr = np.zeros(n + 1, np.int64)
    # the graph's integer type, until their number is known
    nodes = np.empty(n * min(limit, 16) + limit, visited.dtype)
    visits = np.empty(nodes.shape[0], np.int32)
    # ``table`` is a hash table, at most half in use, of indices of ``seen``, the distinct nodes by
    # first visit; ``slots`` are their places in the table, and ``rank`` is for sorting
    places = 16
    while places < 2 * size:
        places *= 2
    table = np.full(places, -1, np.int64)
    rank = np.zeros(size + 2, np.int64)
    seen = np.empty(size, np.int64)
    count = np.empty(size, np.int64)
    slots = np.empty(size, np.int64)
    for i in range(n):
        distinct = 0
        for step in range(visited.shape[1]):
            for w in range(visited.shape[2]):
                u = int64(visited[i, step, w])
                if u != starts[i]:
                    distinct = _count_visit(table, u, seen, count, slots, distinct)
        base = indptr[i]
        nodes = reserve(nodes, base, limit)
        visits = reserve(visits, base, limit)
        # a stable counting sort, by descending count; ``rank`` and ``table`` become empty again
        top = 0
        before = base
        for j in range(distinct):
            rank[count[j]] += 1
            top = max(top, count[j])
        for c in range(top, 0, -1):
            number = rank[c]
            rank[c] = before
            before += number
        indptr[i + 1] = base + min(distinct, limit)
        for j in range(distinct):
            place = rank[count[j]]
            rank[count[j]] += 1
            if place < indptr[i + 1]:
                nodes[place] = seen[j]
                visits[place] = count[j]
            table[slots[j]] = -1
        rank[: top + 1] = 0
    return indptr, nodes[: indptr[n]].astype(np.int64), visits[: indptr[n]].astype(np.int64)
