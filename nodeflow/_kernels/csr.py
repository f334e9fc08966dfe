"""Row slices and transposition of CSR structures."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import U64

Ints = NDArray[np.int64]

_SOON = 16  # entries before it is needed that a place is asked for


@njit(nogil=True, cache=True)
def csr_rows(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return the indptr of the chosen rows and the positions of their entries, rows in the order given."""
    chosen = np.empty(rows.shape[0] + 1, np.int64)
    chosen[0] = 0
    for i in range(rows.shape[0]):
        chosen[i + 1] = chosen[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    position = np.empty(chosen[-1], np.int64)
    w = 0
    for i in range(rows.shape[0]):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            position[w] = p
            w += 1
    return chosen, position


@njit(inline="always")
def step_past(left_out, first, last, p):
    """Return position p moved on past those of ``left_out[first:last]`` (ascending) that lie before it, then or now."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if left_out[middle] - (middle - first) <= p:
            low = middle + 1
        else:
            high = middle
    return p + low - first


@njit(nogil=True, cache=True)
def transpose_into(indptr, indices, count, rows, position):
    """Transpose as ``transpose`` does into given arrays.

    ``count`` ``[columns + 2]`` becomes the indptr of the columns and a number more, ``rows`` and ``position``
    ``[entries]`` the row of each of their entries and its place in the structure.
    """
    size = indices.shape[0]
    # the entries of column c are counted two places on: after the sums, place c + 1 says where its next entry goes, and
    # in the end where those of column c + 1 begin
    count[:] = 0
    for e in range(size):
        if e + _SOON < size:
            prefetch(count, indices[U64(e + _SOON)] + 2)
        count[U64(indices[U64(e)] + 2)] += 1
    for c in range(1, count.shape[0] - 1):
        count[U64(c + 1)] += count[U64(c)]
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[U64(row)], indptr[U64(row + 1)]):
            if e + 2 * _SOON < size:
                prefetch(count, indices[U64(e + 2 * _SOON)] + 1)
            if e + _SOON < size:
                at = count[U64(indices[U64(e + _SOON)] + 1)]
                prefetch(rows, at)
                prefetch(position, at)
            column = indices[U64(e)] + 1
            at = count[U64(column)]
            count[U64(column)] = at + 1
            rows[U64(at)] = row
            position[U64(at)] = e


@njit(nogil=True, cache=True)
def transpose(indptr, indices, num_columns):
    """Transpose a CSR structure by counting sort: ``(indptr, rows, positions)`` of the columns, stable."""
    count = np.empty(num_columns + 2, np.int64)
    rows = np.empty(indices.shape[0], np.int64)
    position = np.empty(indices.shape[0], np.int64)
    transpose_into(indptr, indices, count, rows, position)
    return count[: num_columns + 1], rows, position


@njit(nogil=True, cache=True)
def sort_by_destination(dst, num_nodes):
    """Return ``(indptr, order)``: edge numbers grouped by destination, input order kept inside each group."""
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
