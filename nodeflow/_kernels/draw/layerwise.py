"""Layer-wise samplers: passes over the edges of all destinations of a flow.

They serve FastGCN (Chen, Ma, Xiao 2018), which draws nodes, and LADIES (Zou and others 2019), which
draws them in proportion to norms of columns over the destinations of a layer.

``column`` are the weights of the edges in the order of the positions; empty: every edge has weight
1. ``left_out`` are the positions of edges that do not count, ascending. A norm is a sum of squared
weights.
"""

# What is not good yet: ``edges_from`` looks at every in-edge of the layer to find the few from
# drawn nodes; edges that are left out are searched for one by one.

import numpy as np
from numba import int64

from nodeflow._kernels.arrays import first_above, first_at_least, reserve, step_past
from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.relabel import slot
from nodeflow._kernels.rng import GOLDEN, U64, bounded, stream, uniform

_AHEAD = 8  # rows between the prefetch of their first entries and their use
_PIECE = 1024  # edges per block


@inlined
def _contains(ascending, value):
    at = first_at_least(ascending, 0, ascending.shape[0], value)
    return at < ascending.shape[0] and ascending[at] == value


@inlined
def _weight(column, p):
    return 1.0 if column.shape[0] == 0 else np.float64(column[p])


@loop
def row_sums(indptr, rows, column, left_out, squared):
    """Return the sum of the weights of every row, or with ``squared`` its norm, float64
    ``[len(rows)]``.

    Edges are added in their order.
    """
    sums = np.empty(rows.shape[0], np.float64)
    for i in range(rows.shape[0]):
        total = 0.0
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if not _contains(left_out, p):
                a = _weight(column, p)
                total += a * a if squared else a
        sums[i] = total
    return sums


@loop
def draw_edges(indptr, indices, rows, left_out, size, key):
    """Draw ``size`` edges of ``rows`` uniformly with replacement.

    Returns ``(sources of the drawn edges, number of all edges)``; no sources without edges.
    """
    n = rows.shape[0]
    ends = np.empty(n, np.int64)
    total = 0
    for i in range(n):
        begin = indptr[rows[i]]
        end = indptr[rows[i] + 1]
        total += end - begin
        if left_out.shape[0]:
            total -= np.searchsorted(left_out, end) - np.searchsorted(left_out, begin)
        ends[i] = total
    src = np.empty(size if total else 0, np.int64)
    state = stream(key, 0)
    for j in range(src.shape[0]):
        number, state = bounded(state, U64(total))
        x = int64(number)
        i = first_above(ends, 0, n - 1, x)
        p = indptr[rows[i]] + x - (ends[i - 1] if i else 0)
        if left_out.shape[0]:
            first = np.searchsorted(left_out, indptr[rows[i]])
            last = np.searchsorted(left_out, indptr[rows[i] + 1])
            p = step_past(left_out, first, last, p)
        src[j] = indices[p]
    return src, total


@loop
def draw_edges_weighted(indptr, indices, rows, norms, column, left_out, size, key):
    """Draw ``size`` edges of ``rows`` with replacement, in proportion to their squared weights.

    Returns ``(sources of the drawn edges, sum of the norms)``; no sources where all weights are 0.
    ``norms`` are the norms of the rows. The squared weights lie side by side on a line. The points
    drawn on this line are sorted first, so that one pass over a row finds all its edges.
    """
    total = 0.0
    for i in range(rows.shape[0]):
        total += norms[i]
    points = np.empty(size if total > 0 else 0, np.float64)
    state = stream(key, 0)
    for j in range(points.shape[0]):
        state += GOLDEN
        points[j] = uniform(state) * total
    points.sort()
    # The points are met in ascending order, so a row without a point is stepped over by its norm
    # alone.
    positions = np.empty(points.shape[0], np.int64)
    j = 0
    start = 0.0
    for i in range(rows.shape[0]):
        prefetch_at(indptr, rows, i + 2 * _AHEAD)
        if i + _AHEAD < rows.shape[0]:
            prefetch(column, indptr[rows[i + _AHEAD]])
        end = start + norms[i]
        if j < points.shape[0] and points[j] < end:
            running = start
            last = -1
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                # numba keeps float32 as it is in float(), whose squares overflow
                a = np.float64(column[p])
                if a * a > 0 and not _contains(left_out, p):
                    running += a * a
                    last = p
                    while j < points.shape[0] and points[j] < running:
                        positions[j] = p
                        j += 1
                    if j == points.shape[0] or points[j] >= end:
                        break
            # rounding has put it beyond the last edge
            while j < points.shape[0] and points[j] < end:
                positions[j] = last
                j += 1
        start = end
    src = positions
    for j in range(positions.shape[0]):
        src[j] = indices[positions[j]]
    return src, total


@loop
def edges_from(indptr, indices, rows, nodes, column, left_out):
    """Find the edges of ``rows`` whose sources are among the distinct ``nodes``.

    Returns
    ``(indptr [rows + 1], positions [E], index of the source in nodes [E], norm of every node over these edges)``.
    A bitmap of the last bits of the ids, which fits the fastest cache, rules out nearly all other
    edges; a hash table decides about the rest.
    """
    n = nodes.shape[0]
    size = 1 << 4
    bits = 1 << 12
    while size < 4 * n:
        size *= 2
    while bits < 512 * n and bits < 1 << 23:
        bits *= 2
    table = np.full(size, -1, np.int64)
    bitmap = np.zeros(bits >> 3, np.uint8)
    # Every node sets its bit of the bitmap, and has an entry in the hash table.
    for k in range(n):
        bit = nodes[k] & (bits - 1)
        bitmap[bit >> 3] |= np.uint8(1 << (bit & 7))
        h = slot(nodes[k], U64(32)) & (size - 1)
        while table[h] != -1:
            h = (h + 1) & (size - 1)
        table[h] = k
    ends = np.zeros(rows.shape[0] + 1, np.int64)
    norms = np.zeros(n, np.float64)
    likely = np.empty(_PIECE, np.int64)
    positions = np.empty(4 * _PIECE, np.int64)
    local = np.empty(4 * _PIECE, np.int64)
    w = 0
    for i in range(rows.shape[0]):
        prefetch_at(indptr, rows, i + 2 * _AHEAD)
        if i + _AHEAD < rows.shape[0]:
            first = indptr[rows[i + _AHEAD]]
            prefetch(indices, first)
            prefetch(indices, first + 16)
        end = indptr[rows[i] + 1]
        for begin in range(indptr[rows[i]], end, _PIECE):
            if w + _PIECE > positions.shape[0]:
                positions = reserve(positions, w, _PIECE)
                local = reserve(local, w, _PIECE)
            number = _scan(indices[begin : min(begin + _PIECE, end)], bitmap, likely)
            w = _sure(
                indices,
                begin,
                likely[:number],
                nodes,
                table,
                column,
                left_out,
                norms,
                positions,
                local,
                w,
            )
        ends[i + 1] = w
    return ends, positions[:w].copy(), local[:w].copy(), norms


@loop
def _scan(row, bitmap, likely):
    # unsigned, so that no index is checked for being negative
    w = U64(0)
    last = U64(8 * bitmap.shape[0] - 1)
    for j in range(row.shape[0]):
        bit = U64(row[j]) & last
        likely[w] = j  # the next edge overwrites it unless this one counts: without a branch
        w += U64((bitmap[bit >> U64(3)] >> (bit & U64(7))) & U64(1))
    return int64(w)


@loop
def _sure(indices, begin, likely, nodes, table, column, left_out, norms, positions, local, w):
    mask = table.shape[0] - 1
    for j in likely:
        p = begin + j
        u = int64(indices[p])
        h = slot(u, U64(32)) & mask
        while table[h] != -1 and nodes[table[h]] != u:
            h = (h + 1) & mask
        k = table[h]
        if k == -1 or _contains(left_out, p):
            continue
        positions[w] = p
        local[w] = k
        w += 1
        a = _weight(column, p)
        norms[k] += a * a
    return w


@loop
def edges_by_chance(indptr, indices, rows, prob, key):
    """Find the edges of ``rows`` whose source is drawn; node u is drawn independently with
    probability ``prob[u]``.

    Returns ``(indptr [rows + 1], positions [E])``.
    """
    ends = np.zeros(rows.shape[0] + 1, np.int64)
    positions = np.empty(4 * _PIECE, np.int64)
    w = 0
    for i in range(rows.shape[0]):
        end = indptr[rows[i] + 1]
        for begin in range(indptr[rows[i]], end, _PIECE):
            positions = reserve(positions, w, _PIECE)
            w = _flip(indices, begin, min(begin + _PIECE, end), prob, key, positions, w)
        ends[i + 1] = w
    return ends, positions[:w].copy()


@loop
def _flip(indices, begin, end, prob, key, positions, w):
    w = U64(w)
    for p in range(begin, end):
        u = U64(indices[p])
        positions[w] = p
        w += U64(uniform(stream(key, u) + GOLDEN) < prob[u])
    return int64(w)
