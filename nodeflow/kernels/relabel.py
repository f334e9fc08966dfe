"""Local ids: parent ids numbered in order of first appearance, through a hash table of packed 64-bit entries.

An entry is ``id << 32 | local``, and -1 is an empty one, so parent ids must be below 2**31.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from nodeflow.kernels.prefetch import prefetch
from nodeflow.kernels.random import GOLDEN, U64

_AHEAD = 24  # edges whose table slot is asked for early, and whose source as long before that
MAX_ID = 2**31 - 1


@njit(inline="always")
def _shift(table):  # type: ignore[no-untyped-def]
    bits = 0
    while (1 << bits) < table.shape[0]:
        bits += 1
    return U64(64 - bits)


@njit(inline="always")
def _slot(v, shift):  # type: ignore[no-untyped-def]
    return int64((U64(v) * GOLDEN) >> shift)


@njit(nogil=True, cache=True)
def insert(table, ids):  # type: ignore[no-untyped-def]
    """Number the distinct ``ids`` 0, 1, 2, ... in an empty table."""
    mask, shift = table.shape[0] - 1, _shift(table)
    for i in range(ids.shape[0]):
        v = int64(ids[i])
        h = _slot(v, shift)
        while table[h] != -1:
            h = (h + 1) & mask
        table[h] = (v << 32) | i


@njit(nogil=True, cache=True)
def relabel(table, source, pos, nodes, n):  # type: ignore[no-untyped-def]
    """Number ``source[pos]``: ids in the table keep their number, new ones follow from ``n`` and are put in ``nodes``.

    Returns ``(local ids [len(pos)], number of nodes now)``.
    """
    mask, shift = table.shape[0] - 1, _shift(table)
    size = pos.shape[0]
    local = np.empty(size, np.int64)
    for i in range(min(_AHEAD, size)):
        local[i] = source[pos[i]]
        prefetch(table, _slot(local[i], shift))
    for i in range(size):
        if i + 2 * _AHEAD < size:
            prefetch(source, pos[i + 2 * _AHEAD])
        if i + _AHEAD < size:
            local[i + _AHEAD] = source[pos[i + _AHEAD]]
            prefetch(table, _slot(local[i + _AHEAD], shift))
        v = int64(local[i])
        h = _slot(v, shift)
        while True:
            entry = table[h]
            if entry == -1:
                table[h] = (v << 32) | n
                nodes[n] = v
                local[i] = n
                n += 1
                break
            if entry >> 32 == v:
                local[i] = entry & 0xFFFFFFFF
                break
            h = (h + 1) & mask
    return local, n
