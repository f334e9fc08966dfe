"""Rows split over places by heat: the hottest in memory above the others (Cached), or each in one
tier (Tiered).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_ids, check_length, check_type, describe
from nodeflow._core.base.types import FileLike, IdsLike, NumbersLike
from nodeflow._core.rows.base import RowsBase, decoded, elsewhere_first, pieces_of, stored, summary
from nodeflow._core.rows.columns import check_rows
from nodeflow._core.rows.pieces import Piece, put_pieces, write_pieces
from nodeflow._core.rows.rows import (
    Rows,
    fetch_rows,
    from_numpy,
    gather_into,
    is_collective,
    is_sparse,
    layout_of,
    new_rows,
    put_rows,
)
from nodeflow._files.disk.arrays import create_array, numpy_type
from nodeflow.storage._heat import hottest
from nodeflow.storage._memory import copied, copy_into, fitting
from nodeflow.storage._open import open, save_sparse


class Cached(RowsBase):
    """The ``Rows`` of a column, with the hottest in memory. The others are fetched from the column.

    Beside the cached rows it keeps 4 bytes per row of the column, for their places, unless it
    caches them all.

    Args:
        rows: a column: a tensor, such as one that maps a file, or an object that follows ``Rows``;
            dense or sparse.
        heat: a number per row; those with the largest are kept, of equal ones those with the lowest
            ids. See ``presample``, ``reach_heat`` and ``degree_heat``. Rows of a column on several
            processes that this one holds are the last to be kept.
        memory: how much is kept, in bytes: an integer, or text such as "2 GB"; 0 keeps nothing.

    Attributes:
        ids: int64, the rows that are kept, by falling heat (rows held here at the end).
        hits, misses: how many rows of ``fetch`` so far were kept, and how many were not.
            ``hit_rate`` is their share.

    Raises ValueError for a ``heat`` of another length or with a NaN, and for a ``memory`` that no
    row fits into.

    >>> rows = Cached(torch.arange(8.0).view(4, 2), heat=[1, 5, 0, 2], memory="16 B")
    >>> rows.fetch(torch.tensor([3, 2])).tolist(), rows.ids.tolist(), rows.hit_rate
    ([[6.0, 7.0], [4.0, 5.0]], [1, 3], 0.5)
    """

    def __init__(self, rows: Tensor | Rows, heat: NumbersLike, memory: int | str) -> None:
        check_rows(rows, "rows")
        self.rows = rows
        self.shape = tuple(rows.shape)
        self.dtype = rows.dtype
        self.layout = layout_of(rows)
        self.collective = is_collective(rows)
        order = hottest(heat)
        check_length(order, "heat", self.shape[0], "row")
        self._stored = stored(rows)  # what is kept
        # A row that this process holds anyway is worth less than one that it would ask another
        # for.
        order = elsewhere_first(self._stored, order)
        count = fitting(self._stored, order, memory)
        self.ids = order[:count]
        kept = self.ids.sort().values  # files are read in order
        self._hot = copied(self._stored, kept)
        self._place = None  # a whole column keeps its own order
        if count < self.shape[0]:
            self._place = np.full(self.shape[0], -1, np.int32)
            self._place[kept.numpy()] = np.arange(count)
        self.hits = self.misses = 0

    @property
    def hit_rate(self) -> float:
        """Share of the rows of ``fetch`` so far that were kept; NaN before the first."""
        total = self.hits + self.misses
        if total:
            return self.hits / total
        return math.nan

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return decoded(self.rows, self._read_stored(ids))

    def _read_stored(self, ids: Ints) -> Tensor:
        """Return the stored rows ``ids``."""
        if self._place is None:
            self.hits += len(ids)
            return fetch_rows(self._hot, torch.from_numpy(ids))
        places, cold = np.empty((2, len(ids)), np.int64)
        count = int(kernels.copying.find_places(self._place, ids, places, cold))
        self.hits += len(ids) - count
        self.misses += count
        cold = cold[:count]
        # A collective column is asked also for no rows: the other processes wait for it.
        missing = list[Piece]()
        if count or self.collective:
            missing = [
                Piece(rows, chosen, cold[to])
                for rows, chosen, to in pieces_of(self._stored, ids[cold])
            ]
        if is_sparse(self):
            hot = np.flatnonzero(places >= 0)
            return put_pieces([Piece(self._hot, places[hot], hot), *missing], len(ids), self._hot)
        out = new_rows(len(ids), self._hot.shape[1:], self._hot.dtype)
        gather_into(self._hot, places, out)
        write_pieces(missing, out)
        return out

    def _details(self) -> str:
        return f"{len(self.ids)} rows in memory, of {summary(self.rows)}"


class Tiered(RowsBase):
    """The ``Rows`` that lie one after another in several tiers: on a device, in memory, in a file.

    Each row is in one tier only, while ``Cached`` keeps copies.

    Args:
        tiers: columns: tensors on any device, or objects that follow ``Rows``, all with rows of one
            shape and type, dense or all sparse.
        index: the row of every id among the rows of all tiers, one tier after another: a
            permutation, int64 ``[n]``. None: ids are these rows. (graphlearn-torch calls it
            ``id2index``.)

    Attributes:
        sizes: rows per tier.
        fetched: how many rows of ``fetch`` so far came from each tier.

    Raises TypeError and ValueError for tiers that do not fit each other, and for an ``index`` that
    is no permutation.

    >>> rows = Tiered([torch.zeros(2, 3), torch.ones(1, 3)], index=[2, 0, 1])
    >>> rows.fetch(torch.tensor([0, 1])).tolist(), rows.fetched
    ([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [1, 1])
    """

    def __init__(self, tiers: Sequence[Tensor | Rows], index: IdsLike | None = None) -> None:
        check_type(tiers, "tiers", list | tuple, "a list of columns")
        if not tiers:
            raise ValueError("tiers must hold at least one column")
        for k, tier in enumerate(tiers):
            check_rows(tier, f"tiers[{k}]")
            kind, first = (
                f"{rows.dtype} {list(rows.shape[1:])}, {layout_of(rows)}"
                for rows in (tier, tiers[0])
            )
            if kind != first:
                raise ValueError(f"tiers[{k}] has rows {kind}, but tiers[0] has {first}")
        self.tiers = tuple(tiers)
        self.sizes = [int(tier.shape[0]) for tier in tiers]
        self.shape = (sum(self.sizes), *tiers[0].shape[1:])
        self.dtype = tiers[0].dtype
        self.layout = layout_of(tiers[0])
        self._ends = np.cumsum(self.sizes)
        self._index = None if index is None else as_ids(index, "index", self.shape[0], "row").copy()
        if self._index is not None:
            seen = np.bincount(self._index, minlength=self.shape[0])
            if len(self._index) != self.shape[0] or (seen != 1).any():
                raise ValueError(
                    f"index must hold each of the {self.shape[0]} rows once, got {describe(index)}"
                )
        self.fetched = [0] * len(tiers)
        self.collective = any(map(is_collective, tiers))

    @classmethod
    def split(
        cls,
        rows: Tensor | Rows,
        heat: NumbersLike,
        tiers: Sequence[tuple[FileLike | torch.device | str, Any]],
    ) -> Tiered:
        """Split a column by heat: the hottest rows go to the first tier, the next to the second,
        and so on.

        Args:
            rows: the whole column, which is read once, in pieces.
            heat: a number per row.
            tiers: pairs of a place and a size. A place is "memory", a torch device, or the path of
                a ``.npy`` file (of sparse rows, a folder) that is written. A size is a share of all
                rows (a float), a number of bytes (an int, or text such as "2 GB"), or None, the
                rest.

        Raises ValueError where the sizes do not hold all rows, saying how many are left; OSError
        where a file cannot be written.

        >>> Tiered.split(torch.eye(4), [3, 1, 2, 0], [("memory", 0.5), ("cpu", None)]).sizes
        [2, 2]
        """
        order = hottest(heat)
        counts = list[int]()
        check_length(order, "heat", rows.shape[0], "row")
        left = order
        for place, size in tiers:
            if isinstance(size, float) and not 0 <= size <= 1:
                raise ValueError(
                    f"the size of {place} must be a share from 0 to 1, or bytes such as '2 GB', "
                    f"got {size}"
                )
            if size is None:
                count = len(left)
            elif isinstance(size, float):
                count = min(round(size * len(order)), len(left))
            else:
                count = fitting(rows, left, size, f"the size of {place}")
            counts.append(count)
            left = left[count:]
        if len(left):
            raise ValueError(
                f"the tiers hold {rows.shape[0] - len(left):,} of {rows.shape[0]:,} rows; "
                f"{len(left):,} rows have no place: enlarge a tier, or give the last one the size "
                "None"
            )
        split = zip(tiers, order.split(counts), strict=True)
        # The order of heat is turned round: from a row of all tiers to its place.
        index = torch.empty_like(order)
        index[order] = torch.arange(len(order))
        return cls([_moved(rows, ids, place) for (place, _), ids in split], index)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        numbers = ids
        if self._index is not None:
            numbers = self._index[ids]
        parts: list[tuple[Tensor, Ints]] = []
        if not is_sparse(self):
            out = self._room(len(ids), out)
        for k, tier in enumerate(self.tiers):
            begin = int(self._ends[k]) - self.sizes[k]
            mine = (numbers >= begin) & (numbers < self._ends[k])
            count = int(mine.sum())
            self.fetched[k] += count
            # rows in memory are copied to their places at once
            if out is not None and count and _is_plain(tier) and not out.requires_grad:
                gather_into(tier, np.where(mine, numbers - begin, -1), out)
            elif count or is_collective(tier):
                local = torch.from_numpy(numbers[mine] - begin)
                rows = fetch_rows(tier, local).cpu()
                if out is None:
                    parts.append((rows, np.flatnonzero(mine)))
                else:
                    out[torch.from_numpy(mine)] = rows
        if out is not None:
            return out
        if parts:
            return put_rows(parts, len(ids))
        return fetch_rows(self.tiers[0], torch.from_numpy(ids)).cpu()  # no rows, of its type

    def _details(self) -> str:
        words = []
        for size, tier in zip(self.sizes, self.tiers, strict=True):
            place = f"memory of {tier.device}" if isinstance(tier, Tensor) else summary(tier)
            words.append(f"{size} rows in {place}")
        return ", ".join(words)


def _moved(rows: Tensor | Rows, ids: Tensor, place: FileLike | torch.device | str) -> Tensor | Rows:
    """Return rows that have been copied to a place."""
    if (device := _device_of(place)) is not None:
        return copied(rows, ids, device)
    path = Path(str(place))
    if is_sparse(rows):
        save_sparse(path, copied(rows, ids))
        return open(path)
    if path.suffix != ".npy":
        raise ValueError(
            f"a tier must be 'memory', a device or the path of a .npy file, got {str(place)!r}"
        )
    if rows.dtype == torch.bfloat16:
        raise TypeError(
            f"a .npy file cannot say that its numbers are bfloat16, so {path} cannot be a tier of "
            "them; use float32 or float16, or a memory tier"
        )
    array = create_array(path, numpy_type(rows.dtype), (len(ids), *rows.shape[1:]))
    copy_into(from_numpy(array), rows, ids)
    return open(path)


def _device_of(place: FileLike | torch.device | str) -> torch.device | None:
    """Return the device that a place of a tier names, None for a path."""
    if not isinstance(place, str | torch.device):
        return None
    try:
        return torch.device("cpu" if place == "memory" else place)
    except RuntimeError:
        return None


def _is_plain(tier: Tensor | Rows) -> TypeGuard[Tensor]:
    """Whether the rows of a tier lie one after another in main memory."""
    return (
        isinstance(tier, Tensor)
        and not is_sparse(tier)
        and tier.device.type == "cpu"
        and tier.is_contiguous()
        and not tier.requires_grad
        and not (tier.is_conj() or tier.is_neg())
    )
