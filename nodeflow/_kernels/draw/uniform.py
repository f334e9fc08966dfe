"""Uniform draws of edges, row by row, with and without replacement: of all edges, or of past ones.

Without replacement by Floyd's method (Bentley and Floyd 1987, "A sample of brilliance"), bounded
integers as in ``rng.bounded``. Most of the time is the wait for ``indices``: positions are drawn
for some rows before their sources are read.
"""

# What is not good yet: a row of more than 64 edges looks for repeats one after another up to 32
# picks, and the rules of ``plan`` and ``plan_past`` for how many edges a row draws are the same
# lines twice.

import numpy as np
from numba import int64

from nodeflow._kernels.arrays import first_above, first_at_least, step_past
from nodeflow._kernels.instructions import prefetch, prefetch_at
from nodeflow._kernels.loops import inlined, loop
from nodeflow._kernels.relabel import slot
from nodeflow._kernels.rng import U64, bounded, stream

_AHEAD = 16  # rows between the prefetch of an entry of indptr and its use
_SOON = 8  # rows between the prefetch of a stamp and its use
_LAG = 64  # edges between the prefetch of a source and its use
_SCAN = 32  # up to this many picks, a search through all of them is faster than a hash set


@loop
def plan(indptr, rows, fanouts, kind, replace, left_out):
    """Return ``(indptr of the draw [n + 1], first position [n], degree [n])`` of n ``rows``.

    ``fanouts`` has one number per kind of rows (-1: all); the kind of row i is ``kind[i]``, which
    is not read where there is one. The edges at the positions ``left_out`` (ascending) do not count
    in the degrees. A draw then gives ranks among the other edges, which ``step_over`` turns into
    positions.
    """
    n = rows.shape[0]
    kinds = fanouts.shape[0]
    out_indptr = np.zeros(n + 1, np.int64)
    begin = np.empty(n, np.int64)
    degree = np.empty(n, np.int64)
    for i in range(n):
        prefetch_at(indptr, rows, i + _AHEAD)
        begin[i] = indptr[U64(rows[i])]
        degree[i] = indptr[U64(rows[i] + 1)] - begin[i]
        if left_out.shape[0] > 0:
            first = np.searchsorted(left_out, begin[i])
            if first < left_out.shape[0] and left_out[first] < begin[i] + degree[i]:
                degree[i] -= np.searchsorted(left_out, begin[i] + degree[i]) - first
        number = degree[i]
        fanout = fanouts[0] if kinds == 1 else fanouts[U64(kind[U64(i)])]
        if fanout >= 0 and (number > fanout or (replace and number > 0)):
            number = fanout
        out_indptr[i + 1] = out_indptr[i] + number
    return out_indptr, begin, degree


@loop
def plan_past(
    indptr, stamps, rows, limits, starts, lowest, context, fanouts, kind, replace, strict
):
    """Return ``(indptr of the draw [n + 1], first position [n], number of past edges [n])`` of n
    rows.

    The past edges of row ``rows[i]`` have a stamp of at most ``limits[context[i]]``, with
    ``strict`` a smaller one, and of at least ``starts[context[i]]``, unless ``starts`` is empty, or
    all stamps of the row are ``lowest``, which stands for no time. ``stamps`` ascend within a row.
    ``fanouts`` and ``kind`` say how many of them a row draws, as in ``plan``.
    """
    n = rows.shape[0]
    kinds = fanouts.shape[0]
    out_indptr = np.zeros(n + 1, np.int64)
    begin = np.empty(n, np.int64)
    past = np.empty(n, np.int64)
    for i in range(n):
        prefetch_at(indptr, rows, i + _AHEAD)
        if i + _SOON < n:  # where the search begins
            prefetch(stamps, (indptr[rows[i + _SOON]] + indptr[rows[i + _SOON] + 1]) >> 1)
        limit = limits[context[i]]
        begin[i] = indptr[rows[i]]
        end = indptr[rows[i] + 1]
        if len(starts) and end > begin[i] and stamps[end - 1] > lowest:
            begin[i] = first_at_least(stamps, begin[i], end, starts[context[i]])
        now = (
            first_at_least(stamps, begin[i], end, limit)
            if strict
            else first_above(stamps, begin[i], end, limit)
        )
        past[i] = now - begin[i]
        number = past[i]
        fanout = fanouts[0] if kinds == 1 else fanouts[kind[i]]
        if fanout >= 0 and (number > fanout or (replace and number > 0)):
            number = fanout
        out_indptr[i + 1] = out_indptr[i] + number
    return out_indptr, begin, past


@loop
def draw_with(begin, degree, indices, ident, key, fanouts, kind, out_indptr, positions, src):
    """Fill ``positions`` and ``src`` with uniform draws with replacement, as many per row as
    ``out_indptr`` says.

    Row i draws from the stream of ``ident[i]``. A row whose fanout is -1 keeps all its edges once.
    ``kind`` as in ``plan``.
    """
    read = 0
    kinds = fanouts.shape[0]
    for i in range(ident.shape[0]):
        if kinds > 1 and fanouts[U64(kind[U64(i)])] < 0:
            for w in range(out_indptr[i], out_indptr[i + 1]):
                positions[w] = begin[i] + w - out_indptr[i]
            continue
        state = stream(key, ident[i])
        for w in range(out_indptr[i], out_indptr[i + 1]):
            pick, state = bounded(state, U64(degree[i]))
            positions[U64(w)] = begin[i] + int64(pick)
            prefetch(indices, begin[i] + int64(pick))
        read = read_sources(indices, read, out_indptr[i + 1] - _LAG, positions, src)
    read_sources(indices, read, positions.shape[0], positions, src)


@loop
def draw_without(begin, degree, indices, ident, key, out_indptr, positions, src):
    """Fill ``positions`` and ``src`` with uniform subsets of the rows, by Floyd's method (Bentley
    and Floyd 1987).

    Step j picks one of the first ``last + 1`` edges; if that was picked before, it takes edge
    ``last`` instead. A row whose count equals its degree keeps all its edges in the graph's order.
    """
    read = 0
    most = 0
    for i in range(ident.shape[0]):
        if out_indptr[i + 1] - out_indptr[i] < degree[i]:
            most = max(most, out_indptr[i + 1] - out_indptr[i])
    size = 1
    while size < 2 * most:
        size *= 2
    seen = np.empty(size if most > _SCAN else 1, np.int64)
    for i in range(ident.shape[0]):
        first = begin[i]
        start = out_indptr[i]
        count = out_indptr[i + 1] - out_indptr[i]
        read = read_sources(indices, read, start - _LAG, positions, src)
        if count == degree[i]:
            for j in range(count):
                positions[U64(start + j)] = first + j
                prefetch(indices, first + j)
            continue
        state = stream(key, ident[i])
        if degree[i] <= 64:  # a bit per edge says whether it was picked: without a branch
            picked = U64(0)
            for j in range(count):
                last = degree[i] - count + j
                pick, state = bounded(state, U64(last + 1))
                before = (picked >> pick) & U64(1)
                pick = pick + before * (U64(last) - pick)
                picked |= U64(1) << pick
                positions[U64(start + j)] = first + int64(pick)
                prefetch(indices, first + int64(pick))
            continue
        hashed = count > _SCAN
        if hashed:
            seen[:] = -1
        # a bit per remainder modulo 64: not set, no pick has it and no search is needed
        maybe = U64(0)
        for j in range(count):
            last = degree[i] - count + j
            pick, state = bounded(state, U64(last + 1))
            t = first + int64(pick)
            if hashed:
                if not _add(seen, t):
                    t = first + last
                    _add(seen, t)
            elif (maybe >> (pick & U64(63))) & U64(1):
                for q in range(start, start + j):
                    if positions[U64(q)] == t:
                        t = first + last
                        break
            maybe |= U64(1) << (U64(t - first) & U64(63))
            positions[U64(start + j)] = t
            prefetch(indices, t)
    read_sources(indices, read, positions.shape[0], positions, src)


@loop
def step_over(indptr, rows, left_out, indices, out_indptr, positions, src):
    """Turn ranks among the edges that are not left out (see ``plan``) into positions, and read
    their sources.
    """
    for i in range(rows.shape[0]):
        first = np.searchsorted(left_out, indptr[rows[i]])
        if first == left_out.shape[0] or left_out[first] >= indptr[rows[i] + 1]:
            continue
        last = np.searchsorted(left_out, indptr[rows[i] + 1])
        for w in range(out_indptr[i], out_indptr[i + 1]):
            p = step_past(left_out, first, last, int64(positions[w]))
            positions[w] = p
            src[w] = indices[p]


@inlined
def read_sources(indices, start, stop, positions, src):
    """Copy the sources at ``positions[start:stop]`` into ``src``; return where to go on."""
    for w in range(start, stop):
        # unsigned, so that no index is checked for being negative
        src[U64(w)] = indices[U64(positions[U64(w)])]
    return max(start, stop)


@inlined
def _add(seen, value):
    """Add a number to an open-addressing set; return False if the set has it already."""
    mask = seen.shape[0] - 1
    h = slot(value, U64(32)) & mask
    while seen[h] != -1:
        if seen[h] == value:
            return False
        h = (h + 1) & mask
    seen[h] = value
    return True
