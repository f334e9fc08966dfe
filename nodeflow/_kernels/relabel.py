"""Local ids: parent ids numbered in order of first appearance, through a hash table of packed 64-bit entries.

An entry is ``id << 32 | local``, and -1 is an empty one, so parent ids must be below 2**31.
"""

from numba import int64, njit

from nodeflow._kernels.instructions import prefetch
from nodeflow._kernels.rng import GOLDEN, U64

_AHEAD = 24  # ids between the prefetch of a slot and its use
MAX_ID = 2**31 - 1


@njit(inline="always")
def shift_for(num_slots):
    """The shift with which ``slot`` goes from 0 to ``num_slots - 1``, a power of two."""
    bits = 0
    while (1 << bits) < num_slots:
        bits += 1
    return U64(64 - bits)


@njit(inline="always")
def slot(v, shift):
    """The slot of a hash table at which to begin to look for number ``v``."""
    return int64((U64(v) * GOLDEN) >> shift)


@njit(nogil=True, cache=True)
def insert(table, ids):
    """Number the distinct ``ids`` 0, 1, 2, ... in an empty table."""
    mask, shift = table.shape[0] - 1, shift_for(table.shape[0])
    for i in range(ids.shape[0]):
        v = int64(ids[i])
        h = slot(v, shift)
        while table[h] != -1:
            h = (h + 1) & mask
        table[h] = (v << 32) | i


@njit(nogil=True, cache=True)
def relabel(table, ids, nodes, n):
    """Replace ``ids`` by their numbers: ids in the table keep theirs, new ones follow from ``n``.

    New ids are appended to ``nodes``, which must be long enough for all of them and one more. Returns ``(number of ids
    done, number of nodes)``. When the table is 40 % full the loop stops early; the caller goes on with the rest in a
    larger table. (Collisions in a fuller table cost more than cache misses in a larger one.)
    """
    mask, shift, most = table.shape[0] - 1, shift_for(table.shape[0]), table.shape[0] * 2 // 5
    size = ids.shape[0]
    for i in range(min(_AHEAD, size)):
        prefetch(table, slot(ids[i], shift))
    for i in range(size):  # from 0, so that the compiler knows that no index is negative
        if i + _AHEAD < size:
            prefetch(table, slot(ids[i + _AHEAD], shift))
        if n >= most:
            return i, n
        v = ids[i]
        h = slot(v, shift)
        entry = table[h]
        while (entry != -1) & (entry >> 32 != v):
            h = (h + 1) & mask
            entry = table[h]
        # the same stores for new and known ids: a branch would often be predicted wrong
        new = int64(entry == -1)
        entry = (v << 32) | n if new else entry
        table[h] = entry
        nodes[n] = v
        ids[i] = entry & 0xFFFFFFFF
        n += new
    return size, n
