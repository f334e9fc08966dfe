"""Rows split over several places by heat, with a map from ids to places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import as_ids, check_type, describe
from nodeflow._base.types import FileLike, IdsLike, NumbersLike
from nodeflow._disk.arrays import create_array, numpy_type
from nodeflow._rows.rows import Rows, as_words, fetch_rows, is_collective
from nodeflow.storage._cached import row_bytes, rows_in
from nodeflow.storage._files import open, room_for
from nodeflow.storage._heat import hottest

_PIECE = 2**24  # bytes copied at a time


class Tiered:
    """Rows that lie one after another in several tiers: on a device, in memory, in a file.

    It follows the protocol ``Rows``, so it can be a column of a graph. Each row lies in one tier only, while ``Cached``
    keeps copies.

    Args:
        tiers: dense columns: tensors on any device, or objects that follow ``Rows``, all with rows of one shape and
            type.
        index: the row of every id among the rows of all tiers, one tier after another: a permutation, int64 ``[n]``.
            None: ids are these rows. (graphlearn-torch calls it ``id2index``.)

    Attributes:
        shape, dtype: of the whole column.
        sizes: rows per tier.
        fetched: how many rows of ``fetch`` so far came from each tier.

    Raises TypeError and ValueError for tiers that do not fit each other, and for an ``index`` that is no permutation.

    >>> rows = Tiered([torch.zeros(2, 3), torch.ones(1, 3)], index=[2, 0, 1])
    >>> rows.fetch(torch.tensor([0, 1])).tolist(), rows.fetched
    ([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [1, 1])
    """

    def __init__(self, tiers: Sequence[Tensor | Rows], index: IdsLike | None = None) -> None:
        if not tiers:
            raise ValueError("tiers must hold at least one column")
        for k, tier in enumerate(tiers):
            check_type(tier, f"tiers[{k}]", Tensor | Rows, "a tensor, or an object with shape, dtype and fetch")
            row_bytes(tier)
            if tier.shape[1:] != tiers[0].shape[1:] or tier.dtype != tiers[0].dtype:
                raise ValueError(
                    f"tiers[{k}] has rows {tier.dtype} {list(tier.shape[1:])}, but tiers[0] has "
                    f"{tiers[0].dtype} {list(tiers[0].shape[1:])}"
                )
        self.tiers = tuple(tiers)
        self.sizes = [int(tier.shape[0]) for tier in tiers]
        self.shape, self.dtype = (sum(self.sizes), *tiers[0].shape[1:]), tiers[0].dtype
        self._ends, self._row = np.cumsum(self.sizes), row_bytes(tiers[0])
        self._index = None if index is None else as_ids(index, "index", self.shape[0], "row").copy()
        if self._index is not None:
            seen = np.bincount(self._index, minlength=self.shape[0])
            if len(self._index) != self.shape[0] or (seen != 1).any():
                raise ValueError(f"index must hold each of the {self.shape[0]} rows once, got {describe(index)}")
        self.fetched, self.collective = [0] * len(tiers), any(map(is_collective, tiers))

    @classmethod
    def split(
        cls, rows: Tensor | Rows, heat: NumbersLike, tiers: Sequence[tuple[FileLike | torch.device | str, Any]]
    ) -> Tiered:
        """Split a column by heat: the hottest rows go to the first tier, the next to the second, and so on.

        Args:
            rows: the whole column, which is read once, in pieces.
            heat: a number per row.
            tiers: pairs of a place and a size. A place is "memory", a torch device, or the path of a ``.npy`` file
                that is written. A size is a number of rows (an int), a share of all rows (a float), bytes in words
                ("2 GB"), or None, the rest.

        Raises ValueError where the sizes do not hold all rows, saying how many are left; OSError where a file cannot be
        written.

        >>> Tiered.split(torch.eye(4), [3, 1, 2, 0], [("memory", 0.5), ("cpu", None)]).sizes
        [2, 2]
        """
        order, left, counts = hottest(heat), rows.shape[0], []
        if len(order) != left:
            raise ValueError(f"heat must have a number per row ({left}), got {len(order)}")
        for place, size in tiers:
            count = left if size is None else min(left, _rows_of(rows, size, f"the size of {place}"))
            counts.append(count)
            left -= count
        if left:
            raise ValueError(
                f"the tiers hold {rows.shape[0] - left:,} of {rows.shape[0]:,} rows; {left:,} rows, "
                f"{left * row_bytes(rows):,} bytes, have no place: enlarge a tier, or give the last one the size None"
            )
        made: list[Tensor | Rows] = []
        for (place, _), ids in zip(tiers, order.split(counts), strict=True):
            made.append(_moved(rows, ids, place))
        index = torch.empty_like(order)
        index[order] = torch.arange(len(order))
        return cls(made, index)

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as a CPU tensor ``[k, ...]``; with ``out`` they are written there.

        Raises IndexError for an id that is no row, TypeError or ValueError for an ``out`` of another type or shape.
        """
        wanted = as_ids(ids, "ids", self.shape[0], "row")
        at = wanted if self._index is None else self._index[wanted]
        out = room_for(len(wanted), self, out)
        for k, tier in enumerate(self.tiers):
            begin = int(self._ends[k]) - self.sizes[k]
            mine = (at >= begin) & (at < self._ends[k])
            count = int(mine.sum())
            self.fetched[k] += count
            if count and _is_plain(tier) and not out.requires_grad:  # copied to their places at once
                words, width, target = as_words(tier, self._row, out)
                kernels.caching.gather_at(words, width, np.where(mine, at - begin, -1), target)
            elif count or is_collective(tier):
                out[torch.from_numpy(mine)] = fetch_rows(tier, torch.from_numpy(at[mine] - begin)).cpu()
        return out

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{size} rows in {_place_of(tier)}" for size, tier in zip(self.sizes, self.tiers, strict=True)
        )
        return f"Tiered({parts})"


def _rows_of(rows: Tensor | Rows, size: Any, name: str) -> int:
    if isinstance(size, float):
        if not 0 <= size <= 1:
            raise ValueError(f"{name} must be a share from 0 to 1, a number of rows or text such as '2 GB', got {size}")
        return round(size * rows.shape[0])
    return rows_in(size, row_bytes(rows), rows.shape[0], name)


def _moved(rows: Tensor | Rows, ids: Tensor, place: FileLike | torch.device | str) -> Tensor | Rows:
    shape = (len(ids), *rows.shape[1:])
    step = max(1, _PIECE // max(row_bytes(rows), 1))
    pieces = ((begin, fetch_rows(rows, ids[begin : begin + step])) for begin in range(0, len(ids), step))
    if isinstance(place, torch.device) or place == "memory" or (isinstance(place, str) and _is_device(place)):
        made = torch.empty(shape, dtype=rows.dtype, device="cpu" if place == "memory" else place)
        for begin, piece in pieces:
            made[begin : begin + len(piece)] = piece
        return made
    path = Path(place)
    if path.suffix != ".npy":
        raise ValueError(f"a tier must be 'memory', a device or the path of a .npy file, got {str(place)!r}")
    if rows.dtype == torch.bfloat16:
        raise TypeError(
            "a .npy file cannot say that its numbers are bfloat16; use float32 or float16, or a memory tier"
        )
    array = create_array(path, numpy_type(rows.dtype), shape)
    for begin, piece in pieces:
        array[begin : begin + len(piece)] = piece.numpy()
    array.flush()
    del array
    return open(path)


def _is_device(place: str) -> bool:
    try:
        torch.device(place)
    except RuntimeError:
        return False
    return True


def _is_plain(tier: Tensor | Rows) -> TypeGuard[Tensor]:
    """Whether the rows of a tier lie one after another in main memory."""
    return (
        isinstance(tier, Tensor)
        and tier.device.type == "cpu"
        and tier.is_contiguous()
        and not tier.requires_grad
        and not (tier.is_conj() or tier.is_neg())
    )


def _place_of(tier: Tensor | Rows) -> str:
    return f"memory of {tier.device}" if isinstance(tier, Tensor) else repr(tier)
