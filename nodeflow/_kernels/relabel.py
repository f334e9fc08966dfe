"""Local ids: parent ids numbered in order of first appearance, through a table of the ids so far.

A *direct* table has an entry for each id that there is: its local id, or -1. Where that would be
too large, a hash table has packed 64-bit entries, ``id << 32 | local``, and -1 is an empty one; so
parent ids must be below 2**31.
"""

from numba import int64

from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.rng import GOLDEN, U64

_AHEAD = 24  # ids between the prefetch of a slot and its use
MAX_ID = 2**31 - 1


@inlined
def shift_for(num_slots):
    """The shift with which ``slot`` goes from 0 to ``num_slots - 1``, a power of two."""
    bits = 0
    while (1 << bits) < num_slots:
        bits += 1
    return U64(64 - bits)


@inlined
def slot(v, shift):
    """The slot of a hash table at which to begin to look for number ``v``."""
    return int64((U64(v) * GOLDEN) >> shift)


@loop
def direct(table, ids, nodes, n):
    """Do what ``relabel`` does with a direct table, int32, which is never full."""
    size = ids.shape[0]
    for i in range(size):
        prefetch_at(table, ids, i + _AHEAD)
        v = U64(ids[i])
        # the same stores for new and known ids: a branch would often be predicted wrong
        local = int64(table[v])
        new = int64(local == -1)
        local = n if new else local
        table[v] = local
        nodes[U64(n)] = v
        ids[i] = local
        n += new
    return size, n


@loop
def insert(table, ids):
    """Number the distinct ``ids`` 0, 1, 2, ... in an empty hash table."""
    mask = table.shape[0] - 1
    shift = shift_for(table.shape[0])
    for i in range(ids.shape[0]):
        v = int64(ids[i])
        h = slot(v, shift)
        while table[h] != -1:
            h = (h + 1) & mask
        table[h] = (v << 32) | i


@loop
def relabel(table, ids, nodes, n):
    """Replace ``ids`` by their numbers: ids in the hash table keep theirs, new ones follow from
    ``n``.

    New ids are appended to ``nodes``, which must be long enough for all of them and one more.
    Returns ``(number of ids done, number of nodes)``. When the table is 40 % full the loop stops
    early; the caller goes on with the rest in a larger table. (Collisions in a fuller table cost
    more than cache misses in a larger one.)
    """
    mask = U64(table.shape[0] - 1)
    shift = shift_for(table.shape[0])
    most = table.shape[0] * 2 // 5
    size = ids.shape[0]
    done = 0
    for i in range(min(_AHEAD, size)):
        prefetch(table, slot(ids[i], shift))
    while done < size and n < most:
        stop = min(size, done + most - n)  # until then the table can't be full
        for i in range(done, stop):
            if i + _AHEAD < size:
                prefetch(table, slot(ids[U64(i + _AHEAD)], shift))
            v = ids[U64(i)]
            h = U64(slot(v, shift))
            entry = table[h]
            while (entry != -1) & (entry >> 32 != v):
                h = (h + U64(1)) & mask
                entry = table[h]
            new = int64(entry == -1)
            entry = (v << 32) | n if new else entry
            table[h] = entry
            nodes[U64(n)] = v
            ids[U64(i)] = entry & 0xFFFFFFFF
            n += new
        done = stop
    return done, n
