"""A cache of rows that keeps the rows with the nearest next use (Belady 1966)."""

import numpy as np

from nodeflow._kernels.loops import loop


@loop
def foresee(ids, begin, number, served, base, latest, next_use, place, slot_next):
    """Note that batch ``number`` uses ``ids``: uses are numbered in sequence, those of this batch
    from ``begin``.

    ``latest[v]`` is the latest known use of node v, or -1. ``next_use[u - base]`` is the number of
    the batch in which the node of use u is used next; -1 while none is known. Uses before
    ``served`` are past: for these the next use of the cached row, ``slot_next[place[v]]``, is noted
    instead.
    """
    for i in range(ids.shape[0]):
        v = ids[i]
        use = latest[v]
        if use >= served:
            next_use[use - base] = number
        else:
            slot = np.int64(place[v])
            if slot >= 0:
                slot_next[slot] = number
        latest[v] = begin + i
        next_use[begin + i - base] = -1


@loop
def _rank(next_batch, now, window, cold, v):
    """Distance to the batch that needs a row: 1, 2, ...; beyond ``window`` where it is not
    known.
    """
    if next_batch >= 0:
        return next_batch - now
    return window + 1 + np.int64(cold[v])


@loop
def keep_nearest(
    ids, next_use, now, window, cold, place, slot_node, slot_next, filled, counts, hit, kept
):
    """Serve a batch from a cache, and keep those rows, of the cached and the new ones, that are
    needed soonest.

    Args:
        ids, next_use: the distinct nodes of batch ``now``, and the batch in which each is used next
            (-1: not known).
        cold: uint8 by node; among rows of unknown next use those with a low number are kept.
        place: slot of a node in the cache, or -1. slot_node, slot_next: of a slot its node, and
            that node's next use. The first ``filled`` slots are in use. These are updated.
        counts: int64, of size ``window + 258``, for counting.
        hit: gets the slot of every id before the update, or -1.
        kept: gets the slot that the new row of an id is to be copied to, or -1. The rows of hits
            must be copied first.

    Returns the number of slots in use.
    """
    k = ids.shape[0]
    room = slot_node.shape[0]
    counts[:] = 0
    for i in range(k):
        v = ids[i]
        held = np.int64(place[v])
        hit[i] = held
        kept[i] = -1
        if held >= 0:
            slot_next[held] = next_use[i]
        else:
            counts[_rank(next_use[i], now, window, cold, v)] += 1
    misses = 0
    free = room - filled
    for rank in range(counts.shape[0]):
        misses += counts[rank]
    last = counts.shape[0]
    quota = 0
    cached_quota = 0
    # Counting sort by next use: rows ranked below ``last`` are kept; at ``last``, cached rows come
    # first, which saves copies.
    if misses > free:
        for slot in range(filled):
            counts[_rank(slot_next[slot], now, window, cold, slot_node[slot])] += 1
        last = 0
        left = room
        while counts[last] <= left:
            left -= counts[last]
            last += 1
        cached_at_last = 0
        for slot in range(filled):
            if _rank(slot_next[slot], now, window, cold, slot_node[slot]) == last:
                cached_at_last += 1
        cached_quota = min(cached_at_last, left)
        quota = left - cached_quota
    scanned = 0  # slots below it are already examined for eviction
    for i in range(k):
        if hit[i] >= 0:
            continue
        v = ids[i]
        rank = _rank(next_use[i], now, window, cold, v)
        if rank > last or (rank == last and quota == 0):
            continue
        if rank == last:
            quota -= 1
        if filled < room:
            slot = filled
            filled += 1
        else:
            while True:
                slot = scanned
                scanned += 1
                rank = _rank(slot_next[slot], now, window, cold, slot_node[slot])
                if rank > last:
                    break
                if rank == last:
                    if cached_quota == 0:
                        break
                    cached_quota -= 1
            place[slot_node[slot]] = -1
        place[v] = slot
        slot_node[slot] = v
        slot_next[slot] = next_use[i]
        kept[i] = slot
    return filled
