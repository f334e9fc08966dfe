"""Rows in an amount of memory: how many fit, and copies of them that are read piece by piece."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.sizes import as_bytes
from nodeflow._rows.rows import Rows, concat_rows, fetch_rows, is_sparse, row_bytes

_PIECE = 2**24  # bytes of dense rows that are read at a time
_SPARSE_PIECE = 2**14  # sparse rows that are read at a time
_SAMPLE = 2**12


def fitting(rows: Tensor | Rows, order: Tensor, memory: int | str, name: str = "memory") -> int:
    """Return how many of the rows ``order`` fit into an amount of memory; sparse ones are read to know their sizes."""
    size = as_bytes(memory, name, 0)
    if not is_sparse(rows):
        count, needed = min(size // max(row_bytes(rows), 1), len(order)), row_bytes(rows)
    else:
        count, used, needed = 0, 0, 0
        for piece in order.split(_SPARSE_PIECE) if len(order) else ():
            sizes = sparse_bytes(fetch_rows(rows, piece))
            needed = needed or int(sizes[0])
            ends = used + np.cumsum(sizes)
            count += int(np.searchsorted(ends, size, side="right"))
            used = int(ends[-1])
            if used > size:
                break
    if size and not count and len(order):
        raise ValueError(f"{name} is {memory!r}, but a row takes {needed:,} bytes: nothing would fit")
    return count


def sparse_bytes(rows: Tensor) -> Ints:
    """Return how many bytes each of some sparse rows takes, int64 ``[k]``."""
    entry = rows.col_indices().itemsize + rows.dtype.itemsize
    return np.diff(rows.crow_indices().cpu().numpy()) * entry + 8


def mean_bytes(rows: Tensor | Rows) -> int:
    """Return how many bytes a row takes; of a sparse column, a mean over some thousand rows, rounded up."""
    if not is_sparse(rows):
        return row_bytes(rows)
    ids = torch.linspace(0, max(rows.shape[0] - 1, 0), min(_SAMPLE, rows.shape[0])).long()
    return int(np.ceil(sparse_bytes(fetch_rows(rows, ids)).mean())) if len(ids) else 8


def copied(rows: Tensor | Rows, ids: Tensor, device: torch.device | str = "cpu") -> Tensor:
    if is_sparse(rows):
        return concat_rows([fetch_rows(rows, piece).cpu() for piece in ids.split(_SPARSE_PIECE)]).to(device)
    copy = torch.empty((len(ids), *rows.shape[1:]), dtype=rows.dtype, device=device)
    copy_into(copy, rows, ids)
    return copy


def copy_into(out: Tensor, rows: Tensor | Rows, ids: Tensor) -> None:
    step = max(1, _PIECE // max(row_bytes(rows), 1))
    for begin in range(0, len(ids), step):
        out[begin : begin + step] = fetch_rows(rows, ids[begin : begin + step])
