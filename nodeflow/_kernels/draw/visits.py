"""Visits of random walks: the row of a node where a walk is, visits counted, and the nodes that were visited most."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.relabel import slot
from nodeflow._kernels.rng import U64


@njit(inline="always")
def table_size(size):
    """The number of slots of a table that counts ``size`` visits: a power of two, at most half of it in use."""
    slots = 16
    while slots < 2 * size:
        slots *= 2
    return slots


@njit(inline="always")
def row_of(indptr, patched, patch_indptr, v):
    """The first position and the length of the row of a node, and whether it is in the second structure."""
    if patched.shape[0] > 0:
        r = np.searchsorted(patched, v)
        if r < patched.shape[0] and patched[r] == v:
            return patch_indptr[r], patch_indptr[r + 1] - patch_indptr[r], True
    return indptr[v], indptr[v + 1] - indptr[v], False


@njit(inline="always")
def count_visit(table, u, seen, count, slots, distinct):
    """Count a visit of ``u``; return the number of distinct nodes. The table holds indices of ``seen``."""
    mask = table.shape[0] - 1
    h = slot(u, U64(32)) & mask
    while table[h] != -1:
        if seen[table[h]] == u:
            count[table[h]] += 1
            return distinct
        h = (h + 1) & mask
    table[h], seen[distinct], count[distinct], slots[distinct] = distinct, u, 1, h
    return distinct + 1


@njit(nogil=True, cache=True)
def most_visited(seen, count, distinct, rank, limit, nodes, visits):
    """Write the ``limit`` most visited nodes, by descending count (a stable sort); return their number.

    ``rank`` holds zeros before and after.
    """
    top = 0
    for j in range(distinct):
        rank[count[j]] += 1
        top = max(top, count[j])
    before = 0
    for c in range(top, 0, -1):
        number, rank[c] = rank[c], before
        before += number
    for j in range(distinct):
        r = rank[count[j]]
        rank[count[j]] += 1
        if r < limit:
            nodes[r], visits[r] = seen[j], count[j]
    rank[: top + 1] = 0
    return min(distinct, limit)
