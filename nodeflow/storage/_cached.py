"""Rows above other rows: the hot ones in memory."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_length, check_type
from nodeflow._base.types import NumbersLike
from nodeflow._rows.base import RowsBase, summary
from nodeflow._rows.rows import Rows, fetch_rows, gather_into, is_collective, is_sparse, layout_of, move_rows, put_rows
from nodeflow.storage._heat import hottest
from nodeflow.storage._memory import copied, fitting


class Cached(RowsBase):
    """Rows of a column, with the hottest in memory. The others are fetched from the column.

    It follows the protocol ``Rows``, so it can be a column of a graph. Beside the cached rows it keeps 4 bytes per row
    of the column, for their places, unless it caches them all.

    Args:
        rows: a column: a tensor, such as one that maps a file, or an object that follows ``Rows``; dense or sparse.
        heat: a number per row; those with the largest are kept, of equal ones those with the lowest ids. See
            ``presample``, ``reach_heat`` and ``degree_heat``.
        memory: how much is kept, in bytes: an integer, or text such as "2 GB"; 0 keeps nothing.

    Attributes:
        shape, dtype, layout: of the whole column.
        ids: int64, the rows that are kept, by falling heat.
        hits, misses: how many rows of ``fetch`` so far were kept, and how many were not. ``hit_rate`` is their share.

    Raises ValueError for a ``heat`` of another length or with a NaN, and for a ``memory`` that no row fits into.

    >>> rows = Cached(torch.arange(8.0).view(4, 2), heat=[1, 5, 0, 2], memory="16 B")
    >>> rows.fetch(torch.tensor([3, 2])).tolist(), rows.ids.tolist(), rows.hit_rate
    ([[6.0, 7.0], [4.0, 5.0]], [1, 3], 0.5)
    """

    def __init__(self, rows: Tensor | Rows, heat: NumbersLike, memory: int | str) -> None:
        check_type(rows, "rows", Tensor | Rows, "a tensor, or an object with shape, dtype and fetch(ids, out=None)")
        self.rows, self.shape, self.dtype = rows, tuple(rows.shape), rows.dtype
        self.layout, self.collective = layout_of(rows), is_collective(rows)
        order = hottest(heat)
        check_length(order, "heat", self.shape[0], "row")
        count = fitting(rows, order, memory)
        self.ids = order[:count]
        kept = self.ids.sort().values  # files are read in order
        self._hot = copied(rows, kept)
        self._place = None  # a whole column keeps its own order
        if count < self.shape[0]:
            self._place = np.full(self.shape[0], -1, np.int32)
            self._place[kept.numpy()] = np.arange(count)
        self.hits = self.misses = 0

    @property
    def hit_rate(self) -> float:
        """Share of the rows of ``fetch`` so far that were kept; NaN before the first."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else math.nan

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        if self._place is None:
            self.hits += len(ids)
            if out is None:
                return fetch_rows(self._hot, torch.from_numpy(ids))
            return torch.index_select(self._hot, 0, torch.from_numpy(ids), out=out)
        at, cold = np.empty((2, len(ids)), np.int64)
        count = int(kernels.copying.find_places(self._place, ids, at, cold))
        self.hits, self.misses = self.hits + len(ids) - count, self.misses + count
        if count == len(ids):
            return fetch_rows(self.rows, torch.from_numpy(ids)).cpu()
        missing = None
        if count or self.collective:
            missing = fetch_rows(self.rows, torch.from_numpy(ids[cold[:count]])).cpu()
        if is_sparse(self):
            hot = np.flatnonzero(at >= 0)
            parts = [(fetch_rows(self._hot, torch.from_numpy(at[hot])), hot)]
            return put_rows(parts if missing is None else [*parts, (missing, cold[:count])], len(ids))
        out = self._room(len(ids), out)
        gather_into(self._hot, at, out)
        if missing is not None:
            move_rows(missing, np.arange(count), out, cold[:count])
        return out

    def _details(self) -> str:
        return f"{len(self.ids)} rows in memory, of {summary(self.rows)}"
