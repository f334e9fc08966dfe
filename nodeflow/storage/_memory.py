"""Rows in an amount of memory: how many fit, copies of them that are read piece by piece, and
narrow ones.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.sizes import as_bytes
from nodeflow._core.rows.narrow import NarrowRows
from nodeflow._core.rows.narrowing import narrowed
from nodeflow._core.rows.rows import Rows, concat_rows, fetch_rows, is_sparse, row_bytes

# bytes of dense rows that are read at a time
_PIECE = 2**24
_SPARSE_PIECE = 2**14  # sparse rows that are read at a time
_SAMPLE = 2**12


def fitting(rows: Tensor | Rows, order: Tensor, memory: int | str, name: str = "memory") -> int:
    """Return how many of the rows ``order`` fit into an amount of memory; sparse ones are read to
    know their sizes.
    """
    size = as_bytes(memory, name, 0)
    if not is_sparse(rows):
        needed = row_bytes(rows)
        count = min(size // max(needed, 1), len(order))
    else:
        count = 0
        used = 0
        needed = 0
        for piece in order.split(_SPARSE_PIECE) if len(order) else ():
            sizes = sparse_bytes(fetch_rows(rows, piece))
            needed = needed or int(sizes[0])
            ends = used + np.cumsum(sizes)
            count += int(np.searchsorted(ends, size, side="right"))
            used = int(ends[-1])
            if used > size:
                break
    if size and not count and len(order):
        raise ValueError(
            f"{name} is {memory!r}, but a row takes {needed:,} bytes: nothing would fit"
        )
    return count


def sparse_bytes(rows: Tensor) -> Ints:
    """Return how many bytes each of some sparse rows takes, int64 ``[k]``."""
    entry = rows.col_indices().itemsize + rows.dtype.itemsize
    indptr: Ints = rows.crow_indices().cpu().numpy()
    return np.diff(indptr) * entry + 8


def mean_bytes(rows: Tensor | Rows) -> int:
    """Return how many bytes a row takes; of a sparse column, a mean over some thousand rows,
    rounded up.
    """
    if not is_sparse(rows):
        return row_bytes(rows)
    if not rows.shape[0]:
        return 8
    ids = torch.linspace(0, rows.shape[0] - 1, min(_SAMPLE, rows.shape[0])).long()
    sizes = sparse_bytes(fetch_rows(rows, ids))
    return int(np.ceil(sizes.mean()))


def copied(rows: Tensor | Rows, ids: Tensor, device: torch.device | str = "cpu") -> Tensor:
    """Return rows, copied to a device piece by piece."""
    if is_sparse(rows):
        pieces = [fetch_rows(rows, piece).cpu() for piece in ids.split(_SPARSE_PIECE)]
        return concat_rows(pieces).to(device)
    copy = torch.empty((len(ids), *rows.shape[1:]), dtype=rows.dtype, device=device)
    copy_into(copy, rows, ids)
    return copy


def copy_into(out: Tensor, rows: Tensor | Rows, ids: Tensor) -> None:
    """Copy dense rows into a tensor, or a map of a file, piece by piece."""
    step = max(1, _PIECE // max(row_bytes(rows), 1))
    begin = 0
    for piece in ids.split(step):
        out[begin : begin + len(piece)] = fetch_rows(rows, piece)
        begin += len(piece)


@checked
def narrow(column: Tensor | Rows, width: str = "int8", *, limit: float = 0.25) -> NarrowRows:
    """Return a dense column in fewer bytes: codes in memory, which all who read it see as float32.

    With "int8" a number is read as a whole multiple of the scale of its column. If all numbers of a
    column are multiples of one step, at most 255 of them from the smallest to the largest (counts,
    flags, one-hot columns, ages, years), that is its scale, and the column keeps its numbers.
    Otherwise 255 steps go from the smallest to the largest, and the error is at most half a step.
    "float16" and "bfloat16" round every number to its nearest. A range of numbers that is wide for
    few of them costs int8 its precision: clip such columns, or take their logarithm.

    Args:
        column: rows of floating-point numbers, ``[n, ...]``: a tensor, or ``Rows``, which are read
            in pieces.
        width: "int8", "float16" or "bfloat16"; or "auto": int8 for columns whose error is within
            ``limit``, float32 for the others, or float16 in place of int8 where that takes fewer
            bytes.
        limit: the largest mean error of a column, as a share of its mean distance from its median;
            see ``ColumnErrors``.

    Raises ValueError for another width, a number that is not finite (with row and column), a column
    with a larger error than ``limit`` (with its number and the error), and "auto" that finds no
    column to narrow; TypeError for sparse rows, integers, and a column that requires a gradient.

    >>> rows = narrow(torch.tensor([[3.0, 0.1], [250.0, 0.2], [7.0, 0.5]]))
    >>> rows.fetch([0, 1])[:, 0], rows.stored.dtype
    (tensor([  3., 250.]), torch.int8)
    """
    rows = narrowed(column, width, limit)
    return NarrowRows(copied(rows.stored, torch.arange(rows.shape[0])), rows.coding)
