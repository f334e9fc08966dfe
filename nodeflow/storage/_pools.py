"""Slots in memory for rows that coming batches read, dense or sparse."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._rows.csr import csr_tensor
from nodeflow._rows.rows import Rows, as_words, is_sparse, new_rows, put_rows, row_bytes, take_rows
from nodeflow.storage._fitting import mean_bytes, sparse_bytes


def pool_of(rows: Rows, room: int) -> DensePool | SparsePool:
    """Return ``room`` slots for rows of a column."""
    return SparsePool(rows, room) if is_sparse(rows) else DensePool(rows, room)


def stored_bytes(rows: Tensor) -> int:
    """Return how many bytes some rows take."""
    return int(sparse_bytes(rows).sum()) if is_sparse(rows) else rows.nbytes


class DensePool:
    """Slots for dense rows."""

    def __init__(self, rows: Rows, room: int) -> None:
        self._slots = torch.empty((room, *rows.shape[1:]), dtype=rows.dtype)

    def serve(self, hit: Ints, kept: Ints, read: Tensor) -> Tensor:
        """Return the rows of a batch, and keep some of them.

        Args:
            hit: the slot where each row lies, int64 ``[k]``; -1 for those that were read.
            kept: the slot that each row is copied to, or -1.
            read: the rows that were read, in order.
        """
        known, new, staying = np.flatnonzero(hit >= 0), np.flatnonzero(hit < 0), np.flatnonzero(kept >= 0)
        out = new_rows(len(hit), tuple(read.shape[1:]), read.dtype)
        _copy(self._slots, hit[known], out, known)
        _copy(read, np.arange(len(new)), out, new)
        _copy(out, staying, self._slots, kept[staying])
        return out


class SparsePool:
    """Slots for sparse rows: entries in two long arrays, compacted when these are full, enlarged where that fails."""

    def __init__(self, rows: Rows, room: int) -> None:
        self._begin, self._size = np.zeros(room, np.int64), np.zeros(room, np.int64)
        entries = room * mean_bytes(rows) // (8 + rows.dtype.itemsize)
        self._indices, self._values = torch.empty(entries, dtype=torch.int64), torch.empty(entries, dtype=rows.dtype)
        self._end = 0

    def serve(self, hit: Ints, kept: Ints, read: Tensor) -> Tensor:
        """Return the rows of a batch, and keep some of them; see ``DensePool``."""
        known, new, staying = np.flatnonzero(hit >= 0), np.flatnonzero(hit < 0), np.flatnonzero(kept >= 0)
        slots, width = hit[known], read.shape[1]
        indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(self._size[slots])]))
        at = self._entries(slots)
        rows = csr_tensor(indptr, self._indices[at], self._values[at], (len(slots), width))
        out = put_rows([(rows, known), (read, new)], len(hit))
        self._put(kept[staying], take_rows(out, torch.from_numpy(staying)))
        return out

    def _put(self, slots: Ints, rows: Tensor) -> None:
        indptr = rows.crow_indices().numpy()
        self._size[slots] = 0  # what lay there is gone
        if self._end + indptr[-1] > len(self._indices):
            self._compact(int(indptr[-1]))
        new = slice(self._end, self._end + int(indptr[-1]))
        self._indices[new], self._values[new] = rows.col_indices(), rows.values()
        self._begin[slots], self._size[slots] = self._end + indptr[:-1], np.diff(indptr)
        self._end = new.stop

    def _compact(self, more: int) -> None:
        """Move the entries of all slots to the front of arrays that have room for as many more."""
        slots = np.flatnonzero(self._size)
        at = self._entries(slots)
        room = max(len(self._indices), len(at) + len(at) // 4 + more)
        indices, values = torch.empty(room, dtype=torch.int64), torch.empty(room, dtype=self._values.dtype)
        indices[: len(at)], values[: len(at)] = self._indices[at], self._values[at]
        self._begin[slots] = np.cumsum(self._size[slots]) - self._size[slots]
        self._indices, self._values, self._end = indices, values, len(at)

    def _entries(self, slots: Ints) -> Tensor:
        """The positions of the entries of slots."""
        sizes = self._size[slots]
        first = np.cumsum(sizes) - sizes
        return torch.from_numpy(np.repeat(self._begin[slots] - first, sizes) + np.arange(int(sizes.sum())))


def _copy(source: Tensor, at: Ints, target: Tensor, to: Ints) -> None:
    """Copy rows ``at`` of ``source`` to the rows ``to`` of ``target``."""
    row = row_bytes(source)
    if len(at) and row:
        words, width, out = as_words(source, row, target)
        kernels.copying.copy_rows(words, width, at, out, to)
