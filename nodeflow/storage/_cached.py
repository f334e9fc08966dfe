"""Rows above other rows: the hot ones in memory."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_type
from nodeflow._base.types import NumbersLike
from nodeflow._rows.base import RowsBase, summary
from nodeflow._rows.rows import (
    Rows,
    as_words,
    concat_rows,
    fetch_rows,
    is_collective,
    is_sparse,
    layout_of,
    put_rows,
    row_bytes,
)
from nodeflow.storage._fitting import fitting
from nodeflow.storage._heat import hottest

_PIECE = 2**24  # bytes of dense rows that are read at a time
_SPARSE_PIECE = 2**14  # sparse rows that are read at a time


class Cached(RowsBase):
    """Rows of a column, of which the hottest lie in memory. The others are fetched from where they lie.

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
        if len(order) != self.shape[0]:
            raise ValueError(f"heat must have a number per row ({self.shape[0]}), got {len(order)}")
        count = fitting(rows, order, memory)
        self.ids = order[:count]
        kept = self.ids.sort().values  # files are read in order
        self._hot = _copied(rows, kept)
        self._place = None  # a whole column lies in its own order
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
            known = np.flatnonzero(at >= 0)
            parts = [(fetch_rows(self._hot, torch.from_numpy(at[known])), known)]
            return put_rows(parts if missing is None else [*parts, (missing, cold[:count])], len(ids))
        out = self._room(len(ids), out)
        hot, width, target = as_words(self._hot, row_bytes(self), out)
        kernels.copying.gather_at(hot, width, at, target)
        if missing is not None:
            source, width, target = as_words(missing, row_bytes(self), out)
            kernels.copying.copy_rows(source, width, np.arange(count), target, cold[:count])
        return out

    def _details(self) -> str:
        return f"{len(self.ids)} rows in memory, of {summary(self.rows)}"


def _copied(rows: Tensor | Rows, ids: Tensor) -> Tensor:
    """Return rows in memory of their own, read piece by piece."""
    if is_sparse(rows):
        return concat_rows([fetch_rows(rows, piece).cpu() for piece in ids.split(_SPARSE_PIECE)])
    copy = torch.empty((len(ids), *rows.shape[1:]), dtype=rows.dtype, device="cpu")
    step = max(1, _PIECE // max(row_bytes(rows), 1))
    for begin in range(0, len(ids), step):
        copy[begin : begin + step] = fetch_rows(rows, ids[begin : begin + step])
    return copy
