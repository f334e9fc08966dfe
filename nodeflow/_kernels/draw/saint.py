"""GraphSAINT: draws of the nodes of a subgraph, as ends of random edges or on random walks."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.rng import U64, bounded, stream


@njit(nogil=True, cache=True)
def edge_ends(indptr, indices, back_indptr, back_indices, joined, key, nodes):
    """Fill ``nodes`` with the two ends of random edges, end after end.

    A node is drawn uniformly among ``joined``, then an edge uniformly among its in- and out-edges. The probability of
    an edge is therefore proportional to 1 / degree of one end + 1 / degree of the other.
    """
    for j in range(nodes.shape[0] // 2):
        state = stream(key, j)
        number, state = bounded(state, U64(joined.shape[0]))
        node = int64(joined[int64(number)])
        first, back = indptr[node], back_indptr[node]
        degree = indptr[node + 1] - first
        number, state = bounded(state, U64(degree + back_indptr[node + 1] - back))
        pick = int64(number)
        nodes[2 * j] = node
        nodes[2 * j + 1] = indices[first + pick] if pick < degree else back_indices[back + pick - degree]


@njit(nogil=True, cache=True)
def walks(indptr, indices, length, key, nodes):
    """Fill ``nodes`` ``[roots * (length + 1)]`` with uniform roots and the nodes of a uniform walk from each.

    A walk that comes to a node without edges stays there.
    """
    num_nodes, steps = indptr.shape[0] - 1, length + 1
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


@njit(nogil=True, cache=True)
def touch_rates(indptr, indices, degree):
    """Return, for every node, the sum of 1 / degree + 1 / degree over the edges at it, each edge once, float64."""
    total = np.zeros(indptr.shape[0] - 1, np.float64)
    for v in range(indptr.shape[0] - 1):
        for p in range(indptr[v], indptr[v + 1]):
            u = indices[p]
            rate = 1.0 / degree[u] + 1.0 / degree[v]
            total[v] += rate
            if u != v:
                total[u] += rate
    return total
