"""Rows that stay in memory when the batches that come next are known: those needed soonest, and
slots for them.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.rows.csr import csr_tensor
from nodeflow._core.rows.rows import Rows, move_rows, new_rows, put_rows, take_rows
from nodeflow.storage._memory import mean_bytes

# classes of heat for rows whose next use is not known
_UNKNOWN = 256


class ReadStep(NamedTuple):
    """What a plan says of a batch, int64 ``[k]`` each.

    Attributes:
        ids: the distinct ids of the batch.
        hit: the slot of the cache where each row lies, or -1 for a row to be read.
        kept: the slot that each row which was read is to be copied to, or -1.
    """

    ids: Ints
    hit: Ints
    kept: Ints


class ReadPlan:
    """A cache of ``room`` rows that serves batches in order, and knows the ids of a window of
    batches ahead.

    ``foresee`` makes one more batch known, and ``advance`` serves the next one. Of the rows in the
    cache and those of the batch it keeps the ``room`` whose next use is nearest. With all batches
    known no other choice reads less (Belady 1966). Rows that no known batch uses come after these,
    the hottest first.

    Args:
        num_nodes, room: numbers of rows, of all and of the cache.
        window: how many batches beyond the present one are known.
        heat: float64 by node, or None.
    """

    def __init__(self, num_nodes: int, room: int, window: int, heat: Floats | None) -> None:
        self.window = window
        self._cold = np.zeros(num_nodes, np.uint8)
        if heat is not None:
            # 256 classes of heat are enough to choose by, and take a byte per node.
            order = np.argsort(-heat, kind="stable")
            self._cold[order] = np.arange(num_nodes) * _UNKNOWN // max(num_nodes, 1)
        self._place = np.full(num_nodes, -1, np.int32)
        kind = np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64
        self._node = np.full(room, -1, kind)
        self._next = np.full(room, -1, np.int32)
        self._filled = 0  # slots in use
        self._counts = np.zeros(window + _UNKNOWN + 2, np.int64)
        self.forget()

    def empty(self) -> None:
        """Drop all rows of the cache, and all plans for coming batches."""
        self._place[:] = -1
        self._filled = 0
        self.forget()

    def forget(self) -> None:
        """Drop the plans for coming batches. The rows in the cache stay."""
        self._latest = np.full(len(self._place), -1)
        self._next[:] = -1
        self._known: deque[Array] = deque()
        # the next use of every use from ``_base`` on
        self._uses = np.empty(0, np.int32)
        self._base = self._served = self._end = 0
        # numbers of the next batch to serve, and of the next to become known
        self._now = self._last = 0

    @property
    def lacks_batches(self) -> bool:
        """Whether fewer batches are known than the window has."""
        return self._last <= self._now + self.window

    def advance(self) -> ReadStep | None:
        """Serve the next of the known batches, None where there is none.

        Rows must be copied out of the cache before others are copied in.
        """
        if not self._known:
            return None
        ids = self._known.popleft().astype(np.int64)
        # Of each id of the batch, the number of the batch that uses it next.
        uses = self._uses[self._served - self._base : self._served - self._base + len(ids)]
        hit = np.empty(len(ids), np.int64)
        kept = np.empty(len(ids), np.int64)
        self._filled = kernels.caching.keep_nearest(
            ids=ids,
            next_use=uses,
            now=self._now,
            window=self.window,
            cold=self._cold,
            place=self._place,
            slot_node=self._node,
            slot_next=self._next,
            filled=self._filled,
            counts=self._counts,
            hit=hit,
            kept=kept,
        )
        self._served += len(ids)
        self._now += 1
        return ReadStep(ids, hit, kept)

    def foresee(self, ids: Ints) -> None:
        """Make one more batch known, by its distinct ids."""
        # uses that are served make room at the front; twice what lives, so that this is rare
        if self._end - self._base + len(ids) > len(self._uses):
            live = self._uses[self._served - self._base : self._end - self._base]
            self._uses = np.empty(2 * (len(live) + len(ids)), np.int32)
            self._uses[: len(live)] = live
            self._base = self._served
        kernels.caching.foresee(
            ids=ids,
            begin=self._end,
            number=self._last,
            served=self._served,
            base=self._base,
            latest=self._latest,
            next_use=self._uses,
            place=self._place,
            slot_next=self._next,
        )
        self._known.append(ids.astype(self._node.dtype))
        self._end += len(ids)
        self._last += 1


class DensePool:
    """Slots for dense rows."""

    def __init__(self, rows: Tensor | Rows, room: int) -> None:
        self._slots = torch.empty((room, *rows.shape[1:]), dtype=rows.dtype)

    def serve(self, hit: Ints, kept: Ints, read: Tensor) -> Tensor:
        """Return the rows of a batch, and keep some of them.

        Args:
            hit: the slot where each row lies, int64 ``[k]``; -1 for those that were read.
            kept: the slot that each row is copied to, or -1.
            read: the rows that were read, in order.
        """
        old = np.flatnonzero(hit >= 0)
        new = np.flatnonzero(hit < 0)
        staying = np.flatnonzero(kept >= 0)
        out = new_rows(len(hit), tuple(read.shape[1:]), read.dtype)
        move_rows(self._slots, hit[old], out, old)
        move_rows(read, np.arange(len(new)), out, new)
        move_rows(out, staying, self._slots, kept[staying])
        return out


class SparsePool:
    """Slots for sparse rows: entries in two long arrays, compacted when these are full, enlarged
    where that fails.
    """

    def __init__(self, rows: Tensor | Rows, room: int) -> None:
        self._begin = np.zeros(room, np.int64)
        self._size = np.zeros(room, np.int64)
        entries = room * mean_bytes(rows) // (8 + rows.dtype.itemsize)
        self._indices = torch.empty(entries, dtype=torch.int64)
        self._values = torch.empty(entries, dtype=rows.dtype)
        self._end = 0

    def serve(self, hit: Ints, kept: Ints, read: Tensor) -> Tensor:
        """Return the rows of a batch, and keep some of them; see ``DensePool``."""
        old = np.flatnonzero(hit >= 0)
        new = np.flatnonzero(hit < 0)
        staying = np.flatnonzero(kept >= 0)
        slots = hit[old]
        width = read.shape[1]
        indptr = torch.from_numpy(np.concatenate([[0], np.cumsum(self._size[slots])]))
        places = self._entries(slots)
        rows = csr_tensor(indptr, self._indices[places], self._values[places], (len(slots), width))
        # Rows of the batch are put together before slots are written again: some of these hold
        # them.
        out = put_rows([(rows, old), (read, new)], len(hit))
        self._put(kept[staying], take_rows(out, torch.from_numpy(staying)))
        return out

    def _put(self, slots: Ints, rows: Tensor) -> None:
        indptr = rows.crow_indices().numpy()
        self._size[slots] = 0  # the old rows are overwritten
        if self._end + indptr[-1] > len(self._indices):
            self._compact(int(indptr[-1]))
        new = slice(self._end, self._end + int(indptr[-1]))
        self._indices[new] = rows.col_indices()
        self._values[new] = rows.values()
        self._begin[slots] = self._end + indptr[:-1]
        self._size[slots] = np.diff(indptr)
        self._end = new.stop

    def _compact(self, more: int) -> None:
        """Move the entries of all slots to the front of arrays that have room for as many more."""
        slots = np.flatnonzero(self._size)
        places = self._entries(slots)
        room = max(len(self._indices), len(places) + len(places) // 4 + more)
        indices = torch.empty(room, dtype=torch.int64)
        values = torch.empty(room, dtype=self._values.dtype)
        indices[: len(places)] = self._indices[places]
        values[: len(places)] = self._values[places]
        self._begin[slots] = np.cumsum(self._size[slots]) - self._size[slots]
        self._indices = indices
        self._values = values
        self._end = len(places)

    def _entries(self, slots: Ints) -> Tensor:
        sizes = self._size[slots]
        first = np.cumsum(sizes) - sizes
        places = np.repeat(self._begin[slots] - first, sizes)
        return torch.from_numpy(places + np.arange(len(places)))
