"""Local ids: parent ids numbered in order of first appearance, through a hash table of packed 64-bit entries.

An entry is ``id << 32 | local``, and -1 is an empty one, so parent ids must be below 2**31.
"""

from __future__ import annotations

from numba import int64, njit

from nodeflow.kernels.prefetch import prefetch
from nodeflow.kernels.random import GOLDEN, U64

_AHEAD = 24  # ids whose slot is asked for early
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
def relabel(table, ids, start, nodes, n):  # type: ignore[no-untyped-def]
    """Replace ``ids[start:]`` by their numbers: ids in the table keep theirs, new ones follow from ``n``.

    New ids are put in ``nodes``. Returns ``(ids done, number of nodes now)``; stops early, to be called again with a
    larger table, when this one is about 70 % full.
    """
    mask, shift, most = table.shape[0] - 1, _shift(table), table.shape[0] * 7 // 10
    size = ids.shape[0]
    for i in range(start, min(start + _AHEAD, size)):
        prefetch(table, _slot(ids[i], shift))
    for i in range(start, size):
        if i + _AHEAD < size:
            prefetch(table, _slot(ids[i + _AHEAD], shift))
        v = ids[i]
        h = _slot(v, shift)
        while True:
            entry = table[h]
            if entry == -1:
                if n >= most:
                    return i, n
                table[h] = (v << 32) | n
                nodes[n] = v
                ids[i] = n
                n += 1
                break
            if entry >> 32 == v:
                ids[i] = entry & 0xFFFFFFFF
                break
            h = (h + 1) & mask
    return size, n
