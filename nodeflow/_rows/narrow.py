"""Narrow rows: dense columns stored as int8 with a scale each, or as float16 or bfloat16, and read as float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_number, check_one_of, check_type
from nodeflow._base.types import Array, Floats, IdsLike
from nodeflow._rows.base import RowsBase
from nodeflow._rows.packing import Piece, Pool, restored
from nodeflow._rows.rows import Rows, as_array, fetch_rows, is_collective, is_sparse, new_rows

KINDS = {"int8": torch.int8, "float16": torch.float16, "bfloat16": torch.bfloat16}
WIDTHS = (*KINDS, "auto")
_AUTO = ("int8", "float16")  # what "auto" tries
_LEVELS = 255  # steps between the smallest and the largest int8
_EXACT = 2.0**23  # whole numbers below have an exact sum with a code in float32
_SMALLEST, _HUGE = 2.0**-149, 1e38
_PIECE = 2**22  # numbers that are looked at together
_SAMPLE = 2**11  # rows whose errors are measured at least
_MOST = 0.9  # share of the rows that errors are measured by: those nearest to the median


class ColumnErrors(NamedTuple):
    """Errors of narrow columns, float32 ``[columns]`` each, measured on rows evenly spaced over all.

    Attributes:
        largest: the largest difference between a number and what is read for it.
        mean: the mean difference, as a share of the mean distance from the median; both are means over the nine tenths
            of the rows nearest to the median (over all, where these are equal), so that outliers hide nothing.
    """

    largest: Tensor
    mean: Tensor


@dataclass(frozen=True, eq=False)
class Coding:
    """How rows of shape ``row`` are stored: the kind of codes, and a table float32 ``[5, columns]``.

    Rows of the table are zero points and scales (0 and 1 for float16 and bfloat16), whether a column is kept in float32
    behind the codes, and the two errors of ``ColumnErrors``.
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
        sound = self.table.shape == (5, math.prod(self.row)) and shape[1:] == (self.stride,)
        if not sound or not bool((torch.isfinite(self.table[1]) & (self.table[0].abs() <= 2 * _EXACT)).all()):
            raise ValueError(f"its table of columns does not fit codes {list(shape)} of rows {list(self.row)}")

    def pack(self, rows: Tensor) -> Tensor:
        """Return the codes of rows ``[k, *row]``, ``[k, stride]``."""
        dtype, width = KINDS[self.kind], math.prod(self.row)
        numbers = rows.detach().cpu().reshape(len(rows), width).float()
        if dtype == torch.int8:
            zero, scale = (part.double().numpy() for part in self.table[:2])
            codes = np.rint(numbers.double().numpy() / scale) + zero
            packed = torch.from_numpy(np.clip(codes, -128, 127).astype(np.int8))
        else:
            packed = numbers.to(dtype)
        if not len(self.wide):
            return packed
        out = np.zeros((len(rows), self.stride * dtype.itemsize), np.uint8)
        out[:, : width * dtype.itemsize] = as_array(packed.view(torch.uint8).contiguous())
        out[:, 4 * self.first :] = np.ascontiguousarray(numbers.numpy()[:, self.wide]).view(np.uint8)
        return torch.from_numpy(out).view(dtype)

    def unpack(self, codes: Tensor, ids: Ints) -> Tensor:
        """Return the rows ``ids`` of codes ``[n, stride]``, float32 ``[k, *row]``; IndexError for an id of no row."""
        out = new_rows(len(ids), self.row, torch.float32)
        if not self.stride:
            return out
        words = as_array(codes.view(torch.int16) if codes.dtype == torch.float16 else codes).reshape(-1)
        whole = words.view(np.float32) if len(self.wide) else np.empty(0, np.float32)
        last, target = self.stride * codes.itemsize // 4, out.reshape(-1).numpy()
        columns = self.table[0].numpy(), self.table[1].numpy()
        bad = kernels.narrow.gather_unpacked(
            words, self.stride, ids, *columns, whole, last, self.first, self.wide, target
        )
        if bad >= 0:
            raise IndexError(f"there is no row {int(ids[bad])} in a column of {len(codes)} rows")
        return out


class NarrowRows(RowsBase):
    """The ``Rows`` of a dense column that is stored narrow, as ``narrow`` makes them; all who read it see float32.

    A number of an int8 column is read as (code - zero) * scale, with the scale and zero of its column; all steps but
    the product are exact, so that every machine reads the same bits. Whatever stores or sends rows takes the codes: a
    cache, a graph folder, partitions, an exchange between processes.

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
        self._codes, self.coding, self.shape = codes, coding, (codes.shape[0], *coding.row)
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
        """Return the rows ``ids``, see ``RowsBase.fetch``; collective where several processes hold the codes."""
        if not isinstance(self._codes, RowsBase):
            return super().fetch(ids, out)
        # they check the ids, together with other processes where these have a part of the codes
        rows = self.decoded(self._codes.fetch(ids))
        if out is not None:
            self._check_out(out, len(rows))
        return rows if out is None else out.copy_(rows)

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
        return f"{wide} of {math.prod(self.coding.row)} columns as float32" if wide else ""


def _restore(kind: str, row: tuple[int, ...], parts: Any, memory: list[Piece]) -> NarrowRows:
    codes, table = restored(memory, parts)
    return NarrowRows(codes, Coding(kind, row, table))


class PackedRows(RowsBase):
    """The codes of a column, made of its rows when they are fetched."""

    def __init__(self, rows: Tensor | Rows, coding: Coding) -> None:
        self._rows, self._coding = rows, coding
        self.shape, self.dtype = (rows.shape[0], coding.stride), KINDS[coding.kind]

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return self._coding.pack(fetch_rows(self._rows, torch.from_numpy(ids)))


def narrowed(column: Tensor | Rows, width: str, limit: float = 0.05, name: str = "column") -> NarrowRows:
    """Return a column whose codes are computed when they are fetched; see ``storage.narrow``. Reads it once."""
    check_type(column, name, Tensor | Rows, "a tensor, or an object with shape, dtype and fetch(ids, out=None)")
    check_one_of(width, "width", WIDTHS)
    most = as_number(limit, "limit", above=0)
    if is_sparse(column):
        raise TypeError(f"{name} is sparse, and sparse rows are narrow already: they have the entries that are not 0")
    if isinstance(column, NarrowRows):
        raise TypeError(f"{name} is narrow already, {column}: pass the column that it was made of")
    if not column.dtype.is_floating_point or not len(column.shape):
        kind = f"{column.dtype} {list(column.shape)}"
        raise TypeError(f"{name} must be rows of floating-point numbers, got {kind}; convert counts with .float()")
    if isinstance(column, Tensor) and column.requires_grad:
        raise TypeError(f"{name} requires a gradient, and narrow rows are constants: pass {name}.detach()")
    row, seen = tuple(column.shape[1:]), _seen(column, name)
    sample = _sample(column)
    codings = [_measured(kind, row, seen, sample) for kind in (_AUTO if width == "auto" else (width,))]
    if width == "auto":
        codings = [_with_wide(coding, most) for coding in codings]
        coding = min(codings, key=lambda each: each.stride * KINDS[each.kind].itemsize)
        if coding.stride * KINDS[coding.kind].itemsize >= 4 * max(math.prod(row), 1):
            raise ValueError(f"{name} has no column that can be narrow with errors up to {most:.1%}: leave it as it is")
    else:
        (coding,) = codings
        mean = coding.table[4].double().numpy()
        if len(bad := np.flatnonzero(~(mean <= most))):
            low, high = (bound[bad[0]] for bound in seen[:2])
            raise ValueError(
                f"{name} cannot be {width}: column {bad[0]}, with numbers from {low:g} to {high:g}, would be read with "
                f"a mean error of {mean[bad[0]]:.1%} of its deviation, above limit={most:.1%} (in all {len(bad)} of "
                f"{len(mean)} columns). Clip or transform it, or take 'auto', which keeps it in float32, or 'bfloat16'"
            )
    return NarrowRows(PackedRows(column, coding), coding)


def _pieces(column: Tensor | Rows) -> Callable[[int], Tensor]:
    return lambda start: fetch_rows(column, torch.arange(start, min(start + _step(column), column.shape[0])))


def _step(column: Tensor | Rows) -> int:
    return max(_PIECE // max(math.prod(column.shape[1:]), 1), 1)


def _seen(column: Tensor | Rows, name: str) -> list[Array]:
    """Return what the loop ``survey`` sees of all rows; raises ValueError for a number that is not finite."""
    width, fetch, step = math.prod(column.shape[1:]), _pieces(column), _step(column)
    inf = np.full(width, np.inf)
    seen: list[Array] = [inf, -inf, np.zeros(width), inf.copy(), np.zeros(width)]
    for start in range(0, column.shape[0] if width else 0, step):
        piece = fetch(start)
        rows = np.ascontiguousarray(piece.detach().cpu().reshape(len(piece), width).float().numpy())
        bad = int(kernels.narrow.survey(rows, _LEVELS, *seen))
        if bad >= 0:
            i, c = divmod(bad, width)
            raise ValueError(f"{name} must be finite in float32, but row {start + i} has {rows[i, c]} in column {c}")
    return seen


def _sample(column: Tensor | Rows) -> Floats:
    """Return rows evenly spaced over all, float64 ``[k, columns]``."""
    width = math.prod(column.shape[1:])
    count = min(max(_PIECE // max(width, 1), _SAMPLE), column.shape[0])
    rows = fetch_rows(column, torch.from_numpy(np.linspace(0, column.shape[0] - 1, count).astype(np.int64)))
    return rows.detach().cpu().reshape(count, width).float().double().numpy()


def _measured(kind: str, row: tuple[int, ...], seen: list[Array], sample: Floats) -> Coding:
    """Return the coding of a kind, with the errors of a sample of rows."""
    width = math.prod(row)
    table = np.zeros((5, width), np.float32)
    table[1] = 1
    if kind == "int8":
        table[:2] = _grid(*seen)
    coding = Coding(kind, row, torch.from_numpy(table))
    if sample.size:
        codes = coding.pack(torch.from_numpy(sample))
        read = coding.unpack(codes, np.arange(len(codes))).reshape(sample.shape).double().numpy()
        error, away = abs(sample - read), abs(sample - np.median(sample, 0))
        near = away <= np.quantile(away, _MOST, 0, method="lower")
        near |= ~(away * near).any(0)  # equal rows tell nothing
        sums = np.where(near, error, 0).sum(0), (away * near).sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            table[3], table[4] = error.max(0), np.where(sums[0] > 0, sums[0] / sums[1], 0)
    return coding


def _grid(low: Floats, high: Floats, unit: Floats, least: Floats, step: Floats) -> tuple[Array, Array]:
    """Return zero points and scales of int8 columns: numbers are read as whole numbers of their scale.

    A column whose numbers are all whole numbers of one step has this scale, and no error but the rounding of float32.
    Otherwise the codes are spread evenly between its bounds, so that the error is at most half a scale.
    """
    low, high = (np.where(np.isinf(bound), 0, bound) for bound in (low, high))  # those of a column without rows
    size = np.maximum(abs(low), abs(high))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        even = np.maximum((high - low) / (_LEVELS - 1), size / _EXACT)
        even = np.maximum(size / np.floor(size / even), _SMALLEST)  # the largest number is one of those that are read
        nearest = even.astype(np.float32)
        up = np.where(nearest < even, np.nextafter(nearest, np.float32(np.inf)), nearest)
        down = np.where(nearest > even, np.nextafter(nearest, np.float32(0)), nearest)  # the next would be infinite
        scale = np.where(size > _HUGE, down, up).astype(np.float32)
        for multiple in (step, unit):
            exact = (least / np.rint(least / multiple)).astype(np.float32)
            steps = np.rint(high / exact) - np.rint(low / exact)
            fits = (multiple > 0) & (exact > 0) & (steps <= _LEVELS) & (np.rint(size / exact) <= _EXACT)
            fits &= np.isfinite((np.rint(size / exact) * exact).astype(np.float32))
            scale = np.where(fits, exact, scale)
        scale = np.where(size == 0, np.float32(1), scale)
        zero = -128 - np.rint(low / scale)
    return zero.astype(np.float32), scale


def _with_wide(coding: Coding, limit: float) -> Coding:
    """Return the coding with columns of a larger mean error in float32."""
    table = coding.table.clone()
    wide = ~(table[4] <= limit)
    table[2] = wide.float()
    table[:, wide] = torch.tensor([0.0, 1, 1, 0, 0])[:, None]
    return Coding(coding.kind, coding.row, table)
