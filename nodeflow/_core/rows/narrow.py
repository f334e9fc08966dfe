"""Narrow rows: dense columns stored as int8 with a scale each, or as float16 or bfloat16, and read
as float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import IdsLike
from nodeflow._core.rows.base import RowsBase
from nodeflow._core.rows.packing import Piece, Pool, restored
from nodeflow._core.rows.rows import Rows, as_array, fetch_rows, is_collective, new_rows

KINDS = {"int8": torch.int8, "float16": torch.float16, "bfloat16": torch.bfloat16}
EXACT = 2.0**23
"""Whole numbers below this have an exact sum with a code in float32."""


class ColumnErrors(NamedTuple):
    """Errors of narrow columns, float32 ``[columns]`` each, measured on rows evenly spaced over
    all.

    Attributes:
        largest: the largest difference between a number and what is read for it.
        mean: the mean difference, as a share of the mean distance from the median; both are means
            over the nine tenths of the rows nearest to the median (over all, where these are
            equal), so that outliers hide nothing.

    >>> from nodeflow import storage
    >>> storage.narrow(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.3]]), "bfloat16").error.largest
    tensor([0.0000, 0.0008])
    """

    largest: Tensor
    mean: Tensor


@dataclass(frozen=True, eq=False)
class Coding:
    """How rows of shape ``row`` are stored: the kind of codes, and a table float32
    ``[5, columns]``.

    Rows of the table are zero points and scales (0 and 1 for float16 and bfloat16), whether a
    column is kept in float32 behind the codes, and the two errors of ``ColumnErrors``.
    """

    kind: str
    row: tuple[int, ...]
    table: Tensor

    @cached_property
    def wide(self) -> Ints:
        """The columns that are kept in float32."""
        return np.flatnonzero(self.table[2].numpy())

    @cached_property
    def first(self) -> int:
        """Where wide columns begin in a row, in numbers of float32."""
        return -(-math.prod(self.row) * KINDS[self.kind].itemsize // 4)

    @cached_property
    def stride(self) -> int:
        """Number of codes that a row takes, wide columns included."""
        size = KINDS[self.kind].itemsize
        return (self.first + len(self.wide)) * 4 // size if len(self.wide) else math.prod(self.row)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError unless the table can be that of codes of a shape."""
        fits = self.table.shape == (5, math.prod(self.row)) and shape[1:] == (self.stride,)
        if fits:
            zero, scale = self.table[:2]
            fits = bool((scale.isfinite() & (zero.abs() <= 2 * EXACT)).all())
        if not fits:
            raise ValueError(
                f"its table of columns does not fit codes {list(shape)} of rows {list(self.row)}"
            )

    def pack(self, rows: Tensor) -> Tensor:
        """Return the codes of rows ``[k, *row]``, ``[k, stride]``."""
        dtype = KINDS[self.kind]
        width = math.prod(self.row)
        plain = rows.detach().cpu()
        numbers = plain.reshape(len(rows), width).float()
        if dtype == torch.int8:
            zero, scale = (part.double().numpy() for part in self.table[:2])
            # in float64: float32 would round the quotient, and a number could get the next code
            codes = np.rint(numbers.double().numpy() / scale) + zero
            packed = torch.from_numpy(np.clip(codes, -128, 127).astype(np.int8))
        else:
            # torch rounds to the nearest, ties to even, on every machine.
            packed = numbers.to(dtype)
        if not len(self.wide):
            return packed
        # wide columns follow the codes as float32, from the next multiple of 4 bytes on
        out = np.zeros((len(rows), self.stride * dtype.itemsize), np.uint8)
        out[:, : width * dtype.itemsize] = as_array(packed.view(torch.uint8).contiguous())
        out[:, 4 * self.first :] = np.ascontiguousarray(numbers.numpy()[:, self.wide]).view(
            np.uint8
        )
        return torch.from_numpy(out).view(dtype)

    def unpack(self, codes: Tensor, ids: Ints) -> Tensor:
        """Return the rows ``ids`` of codes ``[n, stride]``, float32 ``[k, *row]``; IndexError for
        an id of no row.
        """
        out = new_rows(len(ids), self.row, torch.float32)
        if not self.stride:
            return out
        if codes.dtype == torch.float16:
            codes = codes.view(torch.int16)  # as which ``simd.load`` takes them
        words = as_array(codes).reshape(-1)
        if len(self.wide):
            wide_words = words.view(np.float32)
        else:
            wide_words = np.empty(0, np.float32)
        zero, scale = self.table[:2].numpy()
        bad = kernels.narrow.gather_unpacked(
            codes=words,
            stride=self.stride,
            ids=ids,
            zero=zero,
            scale=scale,
            whole=wide_words,
            last=self.stride * codes.itemsize // 4,
            first=self.first,
            wide=self.wide,
            out=out.reshape(-1).numpy(),
            row=len(zero),
        )
        if bad >= 0:
            raise IndexError(f"there is no row {int(ids[bad])} in a column of {len(codes)} rows")
        return out


class NarrowRows(RowsBase):
    """The ``Rows`` of a dense column that is stored narrow, as ``narrow`` makes them; all who read
    it see float32.

    A number of an int8 column is read as (code - zero) * scale, with the scale and zero of its
    column; all steps but the product are exact, so that every machine reads the same bits. Whatever
    stores or sends rows takes the codes: a cache, a graph folder, partitions, an exchange between
    processes.

    Attributes:
        width: "int8", "float16" or "bfloat16".
        wide: the columns that are kept in float32, int64.
        error: see ``ColumnErrors``.

    >>> from nodeflow import storage
    >>> rows = storage.narrow(torch.tensor([[0.0, 0.5], [1.0, 1.0], [7.0, 2.5]]))
    >>> rows, rows.fetch([2, 0]), rows.error.largest
    (NarrowRows(float32 as int8 [3, 2]), tensor([[7.0000, 2.5000],
            [0.0000, 0.5000]]), tensor([0., 0.]))
    """

    dtype = torch.float32

    def __init__(self, codes: Tensor | Rows, coding: Coding) -> None:
        self._codes = codes
        self.coding = coding
        self.shape = (codes.shape[0], *coding.row)
        self.collective = is_collective(codes)

    @property
    def width(self) -> str:
        """Type of the codes, "int8", "float16" or "bfloat16"."""
        return self.coding.kind

    @property
    def wide(self) -> Tensor:
        """Columns that are kept in float32, int64."""
        return torch.from_numpy(self.coding.wide)

    @property
    def error(self) -> ColumnErrors:
        """Errors of every column, see ``ColumnErrors``."""
        return ColumnErrors(*self.coding.table[3:])

    @property
    def stored(self) -> Tensor | Rows:
        return self._codes

    def like(self, rows: Tensor | Rows) -> Tensor | Rows:
        return NarrowRows(rows, self.coding)

    def decoded(self, rows: Tensor) -> Tensor:
        return self.coding.unpack(rows, np.arange(len(rows)))

    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, see ``RowsBase.fetch``; collective where several processes hold
        the codes.
        """
        if not isinstance(self._codes, RowsBase):
            return super().fetch(ids, out)
        # they check the ids, together with other processes where these have a part of the codes
        rows = self.decoded(self._codes.fetch(ids))
        if out is None:
            return rows
        self._check_out(out, len(rows))
        return out.copy_(rows)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        if isinstance(self._codes, Tensor):
            return self.coding.unpack(self._codes, ids)
        return self.decoded(fetch_rows(self._codes, torch.from_numpy(ids)))

    def __reduce__(self) -> tuple[Any, ...]:
        pool = Pool()
        parts = pool.add((self._codes, self.coding.table))
        return _restore, (self.coding.kind, self.coding.row, parts, pool.memory())

    def _details(self) -> str:
        wide = len(self.coding.wide)
        if not wide:
            return ""
        return f"{wide} of {math.prod(self.coding.row)} columns as float32"


def _restore(kind: str, row: tuple[int, ...], parts: Any, memory: list[Piece]) -> NarrowRows:
    codes, table = restored(memory, parts)
    return NarrowRows(codes, Coding(kind, row, table))


class PackedRows(RowsBase):
    """The codes of a column, made of its rows when they are fetched."""

    def __init__(self, rows: Tensor | Rows, coding: Coding) -> None:
        self._rows = rows
        self._coding = coding
        self.shape = (rows.shape[0], coding.stride)
        self.dtype = KINDS[coding.kind]

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return self._coding.pack(fetch_rows(self._rows, torch.from_numpy(ids)))
