"""Subgraphs as GraphSAINT draws them (Zeng and others 2020), and all edges between given nodes.

Nodes are ends of random edges, or lie on walks. Edges are found by looking up all neighbours of the
nodes in a hash table. A slot of it has two numbers, a key (any int64 from 0) and its index; an
empty one has -1 as its key.
"""

# What is not good yet: ``induced`` takes time in proportion to the degrees of the nodes, so that
# one hub costs as much as all others; walks are not prefetched.

import numpy as np
from numba import int64

from nodeflow._kernels.arrays import reserve
from nodeflow._kernels.instructions import prefetch
from nodeflow._kernels.loops import loop
from nodeflow._kernels.relabel import shift_for, slot
from nodeflow._kernels.rng import U64, bounded, stream

_AHEAD = 12  # neighbours between the prefetch of a slot and its use


@loop
def edge_ends(indptr, indices, back_indptr, back_indices, joined, key, nodes):
    """Fill ``nodes`` with the two ends of random edges, end after end.

    A node is drawn uniformly among ``joined``, then an edge uniformly among its in- and out-edges.
    The probability of an edge is therefore proportional to 1 / degree of one end + 1 / degree of
    the other.
    """
    for j in range(nodes.shape[0] // 2):
        state = stream(key, j)
        number, state = bounded(state, U64(joined.shape[0]))
        node = int64(joined[int64(number)])
        first = indptr[node]
        back = back_indptr[node]
        degree = indptr[node + 1] - first
        number, state = bounded(state, U64(degree + back_indptr[node + 1] - back))
        pick = int64(number)
        nodes[2 * j] = node
        nodes[2 * j + 1] = (
            indices[first + pick] if pick < degree else back_indices[back + pick - degree]
        )


@loop
def walks(indptr, indices, length, key, nodes):
    """Fill ``nodes`` ``[roots * (length + 1)]`` with uniform roots and the nodes of a uniform walk
    from each.

    A walk that comes to a node without edges stays there.
    """
    num_nodes = indptr.shape[0] - 1
    steps = length + 1
    for j in range(nodes.shape[0] // steps):
        state = stream(key, j)
        number, state = bounded(state, U64(num_nodes))
        node = int64(number)
        nodes[j * steps] = node
        for k in range(1, steps):
            degree = indptr[node + 1] - indptr[node]
            if degree > 0:
                number, state = bounded(state, U64(degree))
                node = int64(indices[indptr[node] + int64(number)])
            nodes[j * steps + k] = node


@loop
def touch_rates(indptr, indices, degree):
    """Return, for every node, the sum of 1 / degree + 1 / degree over the edges at it, each edge
    once, float64.
    """
    total = np.zeros(indptr.shape[0] - 1, np.float64)
    for v in range(indptr.shape[0] - 1):
        for p in range(indptr[v], indptr[v + 1]):
            u = indices[p]
            rate = 1.0 / degree[u] + 1.0 / degree[v]
            total[v] += rate
            if u != v:
                total[u] += rate
    return total


@loop
def tabulate(keys):
    """Return ``(table, index of the first key that occurred before, or -1)``."""
    size = 2
    while size < 2 * keys.shape[0]:
        size *= 2
    table = np.full(2 * size, -1, np.int64)
    mask = size - 1
    shift = shift_for(size)
    repeated = -1
    for i in range(keys.shape[0]):
        h = slot(keys[i], shift)
        while table[2 * h] != -1 and table[2 * h] != keys[i]:
            h = (h + 1) & mask
        if table[2 * h] != -1:
            if repeated < 0:
                repeated = i
            continue
        table[2 * h] = keys[i]
        table[2 * h + 1] = i
    return table, repeated


@loop
def induced(indptr, indices, rows, keys, num_nodes, table):
    """Return ``(indptr [n + 1], src [E], positions [E])`` of the edges between the nodes of n
    ``keys``.

    A key is ``context * num_nodes + node``; edges join nodes of the same context only. ``rows``
    ``[n]`` are the rows of the nodes in ``indptr``, and ``src`` indices of keys. The edges of a
    destination come in the graph's order. The time is proportional to the sum of the nodes'
    degrees.
    """
    n = keys.shape[0]
    size = table.shape[0] // 2
    mask = size - 1
    shift = shift_for(size)
    out_indptr = np.zeros(n + 1, np.int64)
    start = max(1024, 4 * n)
    src = np.empty(start, np.int64)
    positions = np.empty(start, np.int64)
    w = 0
    for i in range(n):
        base = keys[i] - keys[i] % num_nodes
        first = indptr[rows[i]]
        end = indptr[rows[i] + 1]
        for p in range(first, min(first + _AHEAD, end)):
            prefetch(table, 2 * slot(base + indices[p], shift))
        for p in range(first, end):
            if p + _AHEAD < end:
                prefetch(table, 2 * slot(base + indices[p + _AHEAD], shift))
            key = base + indices[p]
            h = slot(key, shift)
            while table[2 * h] != key and table[2 * h] != -1:
                h = (h + 1) & mask
            if table[2 * h] == -1:
                continue
            if w == src.shape[0]:
                src = reserve(src, w, 1)
                positions = reserve(positions, w, 1)
            src[w] = table[2 * h + 1]
            positions[w] = p
            w += 1
        out_indptr[i + 1] = w
    return out_indptr, src[:w].copy(), positions[:w].copy()
