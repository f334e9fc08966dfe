"""Rows above other rows: the hot ones in memory, chosen once by heat or anew with every use."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_count, as_ids, check_type
from nodeflow._base.sizes import as_bytes
from nodeflow._base.types import NumbersLike
from nodeflow._rows.rows import Rows, as_words, fetch_rows, is_collective
from nodeflow.storage._files import room_for
from nodeflow.storage._heat import hottest
from nodeflow.storage._sparse_files import SparseFileRows

_WORDS = tuple(np.dtype(kind) for kind in (np.uint64, np.uint32, np.uint16, np.uint8))


def row_bytes(rows: Tensor | Rows) -> int:
    """Return how many bytes a row of a dense column takes; raises TypeError for a sparse one."""
    if isinstance(rows, SparseFileRows) or (isinstance(rows, Tensor) and rows.layout != torch.strided):
        raise TypeError("rows must be dense: a sparse column has no rows of one size")
    return math.prod(rows.shape[1:]) * rows.dtype.itemsize


def rows_in(memory: int | str, row: int, most: int, name: str = "memory") -> int:
    """Return how many rows of ``row`` bytes a size allows, at most ``most``.

    The size is a number of bytes in words ("2 GB"), or of rows (an int). Raises ValueError where not a single row fits.
    """
    if not isinstance(memory, str):
        return min(as_count(memory, name), most)
    size = as_bytes(memory, name)
    if size < row:
        raise ValueError(f"{name} is {memory!r}, but a row takes {row:,} bytes: nothing would fit")
    return min(size // max(row, 1), most)


class Cached:
    """Rows of a column, of which the hottest lie in memory. The others are fetched from where they lie.

    It follows the protocol ``Rows``, so it can be a column of a graph. Beside the cached rows it keeps 4 bytes per row
    of the column, for their places, unless it caches them all.

    Args:
        rows: a dense column: a tensor, such as one that maps a file, or an object that follows ``Rows``.
        heat: a number per row; those with the largest are kept, of equal ones those with the lowest ids. See
            ``presample``, ``reach_heat`` and ``degree_heat``.
        memory: how much is kept: text such as "2 GB" is a number of bytes, an int a number of rows.

    Attributes:
        shape, dtype: of the whole column.
        ids: int64, the rows that are kept, by falling heat.
        hits, misses: how many rows of ``fetch`` so far were kept, and how many were not. ``hit_rate`` is their share.

    Raises ValueError for a ``heat`` of another length or with a NaN, and for a ``memory`` that no row fits into;
    TypeError for a sparse column.

    >>> rows = Cached(torch.arange(8.0).view(4, 2), heat=[1, 5, 0, 2], memory=2)
    >>> rows.fetch(torch.tensor([3, 2])).tolist(), rows.ids.tolist(), rows.hit_rate
    ([[6.0, 7.0], [4.0, 5.0]], [1, 3], 0.5)
    """

    def __init__(self, rows: Tensor | Rows, heat: NumbersLike, memory: int | str) -> None:
        check_type(rows, "rows", Tensor | Rows, "a tensor, or an object with shape, dtype and fetch(ids, out=None)")
        self.rows = rows
        self.shape, self.dtype, self.collective = tuple(rows.shape), rows.dtype, is_collective(rows)
        count = rows_in(memory, row_bytes(rows), self.shape[0])
        order = hottest(heat)
        if len(order) != self.shape[0]:
            raise ValueError(f"heat must have a number per row ({self.shape[0]}), got {len(order)}")
        self.ids = order[:count]
        self._row = row_bytes(rows)
        self._hot = torch.empty((count, *self.shape[1:]), dtype=self.dtype)
        step = max(1, 2**24 // max(self._row, 1))
        by_place = self.ids.sort().values  # files are read in order
        for begin in range(0, count, step):
            self._hot[begin : begin + step] = fetch_rows(rows, by_place[begin : begin + step])
        self._place = None  # a whole column lies in its own order
        if count < self.shape[0]:
            self._place = np.full(self.shape[0], -1, np.int32)
            self._place[by_place.numpy()] = np.arange(count)
        self.hits = self.misses = 0

    @property
    def hit_rate(self) -> float:
        """Share of the rows of ``fetch`` so far that were kept; NaN before the first."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else math.nan

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as a tensor ``[k, ...]``; with ``out`` they are written there.

        Raises IndexError for an id that is no row, TypeError or ValueError for an ``out`` of another type or shape.
        """
        wanted = as_ids(ids, "ids", self.shape[0], "row")
        if self._place is None and out is None:
            self.hits += len(wanted)
            return fetch_rows(self._hot, torch.from_numpy(wanted))
        out = room_for(len(wanted), self, out)
        if self._place is None:
            self.hits += len(wanted)
            return torch.index_select(self._hot, 0, torch.from_numpy(wanted), out=out)
        at, cold = np.empty((2, len(wanted)), np.int64)
        count = int(kernels.caching.find_places(self._place, wanted, at, cold))
        self.hits, self.misses = self.hits + len(wanted) - count, self.misses + count
        if count == len(wanted):
            return out.copy_(fetch_rows(self.rows, torch.from_numpy(wanted)))
        hot, width, target = as_words(self._hot, self._row, out)
        kernels.caching.gather_at(hot, width, at, target)
        if count or self.collective:
            found = fetch_rows(self.rows, torch.from_numpy(wanted[cold[:count]])).cpu()
            source, width, target = as_words(found, self._row, out)
            kernels.caching.copy_rows(source, width, np.arange(count), target, cold[:count])
        return out

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Cached({len(self.ids)} of {self.shape[0]} rows, {self.rows!r})"


class RecentlyUsed:
    """Rows of a column, of which those that were fetched last lie in memory: a cache with the rule LRU.

    Sampled training uses most rows once per epoch, where this rule keeps little that is used again. It is here to
    compare with: ``Cached`` and ``Lookahead`` need fewer reads.

    Args:
        rows: a dense column, as for ``Cached``.
        memory: how much is kept, as for ``Cached``.

    Attributes are those of ``Cached``, without ``ids``.

    >>> rows = RecentlyUsed(torch.arange(8.0).view(4, 2), memory=2)
    >>> for ids in ([0, 1], [1, 2], [0]):
    ...     _ = rows.fetch(torch.tensor(ids))
    >>> rows.hits, rows.misses
    (1, 4)
    """

    def __init__(self, rows: Tensor | Rows, memory: int | str) -> None:
        check_type(rows, "rows", Tensor | Rows, "a tensor, or an object with shape, dtype and fetch(ids, out=None)")
        self.rows = rows
        self.shape, self.dtype, self.collective = tuple(rows.shape), rows.dtype, is_collective(rows)
        count = rows_in(memory, row_bytes(rows), self.shape[0])
        self._row, self._kept = row_bytes(rows), torch.empty((count, *self.shape[1:]), dtype=self.dtype)
        self._place = np.full(self.shape[0], -1, np.int32)
        self._node, self._used, self._now = np.full(count, -1), np.full(count, -1), 0
        self.hits = self.misses = 0
        self._lock = threading.Lock()  # every fetch changes what is kept, and workers of a loader fetch together

    hit_rate = Cached.hit_rate

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as a tensor ``[k, ...]``; raises as ``Cached.fetch``."""
        wanted = as_ids(ids, "ids", self.shape[0], "row")
        out = room_for(len(wanted), self, out)
        with self._lock:
            self._serve(wanted, out)
        return out

    def _serve(self, wanted: Ints, out: Tensor) -> None:
        place = self._place[wanted]
        cold = np.flatnonzero(place < 0)
        hot = place >= 0
        out[torch.from_numpy(hot)] = self._kept[torch.from_numpy(place[hot].astype(np.int64))]
        self._used[place[hot]] = self._now
        if len(cold) or self.collective:
            found = fetch_rows(self.rows, torch.from_numpy(wanted[cold])).cpu()
            out[torch.from_numpy(cold)] = found
            self._keep(wanted[cold], found)
        self.hits, self.misses = self.hits + int(hot.sum()), self.misses + len(cold)
        self._now += 1

    def _keep(self, ids: np.ndarray, found: Tensor) -> None:
        new, first = np.unique(ids, return_index=True)
        replaceable = np.flatnonzero(self._used < self._now)
        oldest = replaceable[np.argsort(self._used[replaceable], kind="stable")][: len(new)]
        new, first = new[: len(oldest)], first[: len(oldest)]
        gone = self._node[oldest]
        self._place[gone[gone >= 0]] = -1
        self._place[new], self._node[oldest], self._used[oldest] = oldest, new, self._now
        self._kept[torch.from_numpy(oldest)] = found[torch.from_numpy(first)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"RecentlyUsed({len(self._node)} of {self.shape[0]} rows, {self.rows!r})"
