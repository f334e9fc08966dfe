"""Induced subgraphs: all edges between given nodes, found by looking up all their neighbours in a hash table.

A slot of the table has two numbers, a key (any int64 from 0) and its index. An empty slot has -1 as its key.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.growing import reserve
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.relabel import shift_for, slot

_AHEAD = 12  # neighbours between the prefetch of a slot and its use


@njit(nogil=True, cache=True)
def tabulate(keys):
    """Return ``(table, index of the first key that occurred before, or -1)``."""
    size = 2
    while size < 2 * keys.shape[0]:
        size *= 2
    table = np.full(2 * size, -1, np.int64)
    mask, shift, repeated = size - 1, shift_for(size), -1
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


@njit(nogil=True, cache=True)
def induced(indptr, indices, rows, keys, num_nodes, table):
    """Return ``(indptr [n + 1], src [E], positions [E])`` of the edges between the nodes of n ``keys``.

    A key is ``context * num_nodes + node``; edges join nodes of the same context only. ``rows`` ``[n]`` are the rows of
    the nodes in ``indptr``, and ``src`` indices of keys. The edges of a destination come in the graph's order. The time
    is proportional to the sum of the nodes' degrees.
    """
    n = keys.shape[0]
    size = table.shape[0] // 2
    mask, shift = size - 1, shift_for(size)
    out_indptr = np.zeros(n + 1, np.int64)
    start = max(1024, 4 * n)
    src, positions = np.empty(start, np.int64), np.empty(start, np.int64)
    w = 0
    for i in range(n):
        base = keys[i] - keys[i] % num_nodes
        first, end = indptr[rows[i]], indptr[rows[i] + 1]
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
                src, positions = reserve(src, w, 1), reserve(positions, w, 1)
            src[w] = table[2 * h + 1]
            positions[w] = p
            w += 1
        out_indptr[i + 1] = w
    return out_indptr, src[:w].copy(), positions[:w].copy()
