"""Induced subgraphs: all edges among some nodes, found by looking up every neighbour of theirs in a hash table.

A table has two numbers per slot, a key and its row, and -1 where a slot is empty; keys may be any int64 from 0.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow._kernels.growing import room
from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import GOLDEN, U64

_AHEAD = 12  # neighbours whose slot is asked for early


@njit(inline="always")
def _slot(key, shift):
    return int64((U64(key) * GOLDEN) >> shift)


@njit(inline="always")
def _shift(table):
    bits = 0
    while (2 << bits) < table.shape[0]:
        bits += 1
    return U64(64 - bits)


@njit(nogil=True, cache=True)
def tabulate(keys):
    """Return ``(table of keys and their rows, first row whose key came before or -1)``."""
    size = 2
    while size < 2 * keys.shape[0]:
        size *= 2
    table = np.full(2 * size, -1, np.int64)
    mask, shift, repeated = size - 1, _shift(table), -1
    for i in range(keys.shape[0]):
        h = _slot(keys[i], shift)
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
def induced(indptr, near, keys, num_nodes, table):
    """Return ``(indptr [n + 1], source rows [E], positions [E])`` of the edges among the nodes of n ``keys``.

    A key is ``context * num_nodes + node``; only nodes of one context are joined. The edges of a destination come in
    the graph's order. Time: the sum of the nodes' degrees.
    """
    n = keys.shape[0]
    mask, shift = table.shape[0] // 2 - 1, _shift(table)
    out = np.empty(n + 1, np.int64)
    out[0] = 0
    start = max(1024, 4 * n)
    src, positions = np.empty(start, np.int64), np.empty(start, np.int64)
    w = 0
    for i in range(n):
        node = keys[i] % num_nodes
        base = keys[i] - node
        first, end = indptr[node], indptr[node + 1]
        for p in range(first, min(first + _AHEAD, end)):
            prefetch(table, 2 * _slot(base + near[p], shift))
        for p in range(first, end):
            if p + _AHEAD < end:
                prefetch(table, 2 * _slot(base + near[p + _AHEAD], shift))
            key = base + near[p]
            h = _slot(key, shift)
            while table[2 * h] != key and table[2 * h] != -1:
                h = (h + 1) & mask
            if table[2 * h] == -1:
                continue
            if w == src.shape[0]:
                src, positions = room(src, w, 1), room(positions, w, 1)
            src[w] = table[2 * h + 1]
            positions[w] = p
            w += 1
        out[i + 1] = w
    return out, src[:w].copy(), positions[:w].copy()
