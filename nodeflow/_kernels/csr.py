"""Row slices and transposition of CSR structures."""

from __future__ import annotations

import numpy as np

from nodeflow._kernels.instructions import prefetch
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64

_AHEAD = 16  # entries between the prefetch of a memory address and its use
_BLOCK = 2048  # entries that stay in the first-level cache
_FEW = 32  # ranges of which comparing with all of them, in vectors, is faster than a search


@loop
def csr_rows(indptr, rows):
    """Return ``(indptr, positions)`` of the entries of some rows, in the order in which the rows
    are given.
    """
    chosen_indptr = np.zeros(rows.shape[0] + 1, np.int64)
    for i in range(rows.shape[0]):
        chosen_indptr[i + 1] = chosen_indptr[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    positions = np.empty(chosen_indptr[-1], np.int64)
    w = 0
    for i in range(rows.shape[0]):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            positions[w] = p
            w += 1
    return chosen_indptr, positions


@loop
def _transpose_into(indptr, indices, count, rows, positions):
    """Do what ``transpose`` does, into arrays of the caller.

    The first ``columns + 1`` entries of ``count`` ``[columns + 2]`` become the indptr of the
    columns. ``rows`` and ``positions`` ``[entries]`` become the row of every entry and its position
    in the original structure.
    """
    size = indices.shape[0]
    # the entries of column c are counted in count[c + 2]: after the sums, count[c + 1] is where its
    # next entry goes, and in the end where the entries of column c + 1 begin
    count[:] = 0
    for e in range(size):
        if e + _AHEAD < size:
            prefetch(count, indices[U64(e + _AHEAD)] + 2)
        count[U64(indices[U64(e)] + 2)] += 1
    for c in range(1, count.shape[0] - 1):
        count[U64(c + 1)] += count[U64(c)]
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[U64(row)], indptr[U64(row + 1)]):
            if e + 2 * _AHEAD < size:
                prefetch(count, indices[U64(e + 2 * _AHEAD)] + 1)
            if e + _AHEAD < size:
                slot = count[U64(indices[U64(e + _AHEAD)] + 1)]
                prefetch(rows, slot)
                prefetch(positions, slot)
            column = indices[U64(e)] + 1
            slot = count[U64(column)]
            count[U64(column)] = slot + 1
            rows[U64(slot)] = row
            positions[U64(slot)] = e


def transpose(indptr, indices, num_columns):
    """Transpose a CSR structure by counting sort: ``(indptr, rows, positions)`` of the columns,
    stable.
    """
    # arrays of numpy, which asks for large pages where it can: random access to small ones takes
    # twice the time
    count, rows, positions = (
        np.empty(size, np.int64) for size in (num_columns + 2, len(indices), len(indices))
    )
    _transpose_into(indptr, indices, count, rows, positions)
    return count[:-1], rows, positions


@loop
def sort_by_destination(dst, num_nodes):
    """Return ``(indptr, order)``: edge numbers grouped by destination, input order kept inside each
    group.
    """
    indptr = np.zeros(num_nodes + 1, np.int64)
    for e in range(dst.shape[0]):
        indptr[dst[e] + 1] += 1
    for v in range(num_nodes):
        indptr[v + 1] += indptr[v]
    head = indptr[:-1].copy()
    order = np.empty(dst.shape[0], np.int64)
    for e in range(dst.shape[0]):
        order[head[dst[e]]] = e
        head[dst[e]] += 1
    return indptr, order


@loop
def add_to_rows(indptr, entries, values):
    """Add ``values[i]`` to all entries of row i."""
    for i in range(values.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            entries[U64(p)] += values[i]


def by_kind(kinds, num_kinds):
    """Return ``(order, first [num_kinds + 1])`` of edges grouped by kind, without those of kind -1.

    The edges of kind k, ascending, are ``order[first[k] : first[k + 1]]``.
    """
    first, order = sort_by_destination(kinds + 1, num_kinds + 1)
    return order[first[1] :], first[1:] - first[1]


@loop
def indptr_among(indptr, edges):
    """Return where, among some edges, ascending, those of each row begin ``[n + 1]``; ``indptr`` is
    that of all.
    """
    ends = np.zeros(indptr.shape[0], np.int64)
    at = 0
    for i in range(1, indptr.shape[0]):
        while at < edges.shape[0] and edges[at] < indptr[i]:
            at += 1
        ends[i] = at
    return ends


@loop
def ranges_of(ids, starts):
    """Return the number of the last range that begins at or before each of ``ids``; ``starts``
    ascend from 0.
    """
    if starts.shape[0] > _FEW:
        return np.searchsorted(starts, ids, side="right") - 1
    ranges = np.empty(ids.shape[0], np.int64)
    # loops without branches, which the compiler turns into vectors
    for first in range(0, ids.shape[0], _BLOCK):
        part = ids[first : first + _BLOCK]
        numbers = ranges[first : first + _BLOCK]
        numbers[:] = -1
        for start in starts:
            for i in range(part.shape[0]):
                numbers[i] += np.int64(part[i] >= start)
    return ranges


@loop
def rows_of_nodes(nodes, ends, begins, first_kind, kinds):
    """Return the rows of ``nodes``, node by node, the kind of each, and where the rows of each node
    begin.

    Range r of nodes ends before ``ends[r]``; its rows begin at ``begins[r]``, and each of its nodes
    has rows of the kinds ``kinds[first_kind[r] : first_kind[r + 1]]``.
    """
    n = nodes.shape[0]
    starts = np.zeros(ends.shape[0], np.int64)
    starts[1:] = ends[:-1]
    parts = ranges_of(nodes, starts)
    indptr = np.zeros(n + 1, np.int64)
    # counted first: room for as many rows as a node of another type has could be all memory
    for i in range(n):
        indptr[i + 1] = indptr[i] + first_kind[parts[i] + 1] - first_kind[parts[i]]
    rows = np.empty(indptr[n], np.int64)
    of = np.empty(indptr[n], np.int64)
    for i in range(n):
        v = nodes[i]
        part = parts[i]
        w = indptr[i]
        first = first_kind[part]
        count = first_kind[part + 1] - first_kind[part]
        row = begins[part] + (v - starts[part]) * count
        for k in range(count):
            rows[U64(w + k)] = row + k
            of[U64(w + k)] = kinds[U64(first + k)]
    return rows, of, indptr
