"""Negatives: draws of nodes to which a node has no edge, and look-ups of edges between two nodes.

The weights of nodes are integers, given by their running sums: ``upto[v]`` of ``upto``
``[num_nodes + 1]`` is the sum of the weights of nodes 0 to v - 1. An empty ``upto`` means weight 1
for all. A draw is a random integer below a sum of weights, so the probabilities are exact: nothing
is drawn again because it has an edge.
"""

# What is not good yet: rows must be sorted, and a draw searches by halves in memory that is not
# asked for ahead; both ways of ``node_of``, with weights and without, are written out.

import numpy as np
from numba import int64

from nodeflow._kernels.arrays import first_at_least, reserve
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64, bounded, stream


@loop
def node_of(rank, first, end, known, before, upto):
    """The node that owns integer ``rank`` among the nodes outside ``known[first:end]`` (ascending).

    In the order of their ids, each of these nodes owns as many integers as its weight, from 0 on.
    ``before[i]`` is the sum of the weights of the known nodes before ``known[i]`` in its row.
    """
    even = upto.shape[0] == 0
    # search: how many known nodes lie below the node
    low = first
    high = end
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
    return first_at_least(upto, 0, upto.shape[0], rank + 1) - 1


@loop
def unknown_below(node, row, upto, indptr, known, before):
    """The sum of the weights of the nodes below ``node`` that are not known in a row (see
    ``known_rows``).
    """
    first = indptr[row]
    count = first_at_least(known, first, indptr[row + 1], node) - first
    if upto.shape[0] == 0:
        return node - count
    if count == 0:
        return upto[node]
    last = known[first + count - 1]
    return upto[node] - before[first + count - 1] - (upto[last + 1] - upto[last])


@loop
def totals(starts, limits, upto, rows, indptr, known, before):
    """The sums of the weights of the nodes among which each row of ``draw_unknown`` draws,
    int64.
    """
    sums = np.empty(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        below = unknown_below(starts[i], rows[i], upto, indptr, known, before)
        sums[i] = unknown_below(limits[i], rows[i], upto, indptr, known, before) - below
    return sums


@loop
def draw_unknown(key, starts, limits, upto, rows, indptr, known, before, drawn):
    """Fill ``drawn`` ``[rows, count]`` with nodes, in proportion to their weights; row i has stream
    i.

    Row i draws among the nodes ``starts[i]`` to ``limits[i] - 1`` that are not known in row
    ``rows[i]`` (see ``known_rows``). Returns -1, or the first row without such a node of positive
    weight.
    """
    even = upto.shape[0] == 0
    for i in range(drawn.shape[0]):
        first = indptr[rows[i]]
        end = indptr[rows[i] + 1]
        below = unknown_below(starts[i], rows[i], upto, indptr, known, before)
        total = unknown_below(limits[i], rows[i], upto, indptr, known, before) - below
        if total <= 0:
            return i
        state = stream(key, i)
        for j in range(drawn.shape[1]):
            number, state = bounded(state, U64(total))
            rank = below + int64(number)
            if first < end:
                drawn[i, j] = node_of(rank, first, end, known, before, upto)
            else:
                drawn[i, j] = rank if even else first_at_least(upto, 0, upto.shape[0], rank + 1) - 1
    return -1


@loop
def known_rows(own, indptr, indices, upto):
    """Return ``(indptr, known, before)``: the nodes known in row i are ``own[i]`` and the distinct
    ones of its row.

    ``indices`` are ascending in every row, as ``known`` is. ``before`` is the sum of the weights of
    the known nodes before in the row; empty where ``upto`` is.
    """
    n = indptr.shape[0] - 1
    rows = np.zeros(n + 1, np.int64)
    known = np.empty(indices.shape[0] + n, indices.dtype)
    before = np.empty(known.shape[0] if upto.shape[0] else 0, np.int64)
    w = 0
    for i in range(n):
        u = own[i]
        p = indptr[i]
        last = -1
        total = int64(0)
        placed = False
        while p < indptr[i + 1] or not placed:
            if not placed and (p == indptr[i + 1] or indices[p] >= u):
                v = u
                placed = True
            else:
                v = int64(indices[p])
                p += 1
            if v == last:
                continue
            known[w] = v
            if upto.shape[0]:
                before[w] = total
                total += upto[v + 1] - upto[v]
            w += 1
            last = v
        rows[i + 1] = w
    return rows, known[:w], before[:w]


@loop
def known_among(rows, indptr, known, nodes, size, num_nodes):
    """Return whether ``nodes[i // size, j]`` is in row ``rows[i]`` of ``known``, bool; see
    ``known_rows``.
    """
    marks = np.empty((rows.shape[0], nodes.shape[1]), np.bool_)
    if num_nodes <= marks.size:  # a table of all nodes costs less than the searches
        last = np.full(num_nodes, -1, np.int64)  # the last row that knows a node
        for i in range(rows.shape[0]):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                last[known[p]] = i
            for j in range(nodes.shape[1]):
                marks[i, j] = last[nodes[i // size, j]] == i
        return marks
    for i in range(rows.shape[0]):
        end = indptr[rows[i] + 1]
        for j in range(nodes.shape[1]):
            node = nodes[i // size, j]
            p = first_at_least(known, indptr[rows[i]], end, node)
            marks[i, j] = p < end and known[p] == node
    return marks


@loop
def edges_between(indptr, indices, eid, u, v):
    """Return the ids of all edges between ``u[i]`` and ``v[i]`` in either direction, pair by pair.

    ``indices`` are the out-neighbours, ascending in every row, and ``eid`` the edge ids.
    """
    between = np.empty(2 * u.shape[0], np.int64)
    w = 0
    for i in range(u.shape[0]):
        for a, b in ((u[i], v[i]), (v[i], u[i])):
            p = first_at_least(indices, indptr[a], indptr[a + 1], b)
            while p < indptr[a + 1] and indices[p] == b:
                between = reserve(between, w, 1)
                between[w] = eid[p]
                p += 1
                w += 1
    return between[:w].copy()
