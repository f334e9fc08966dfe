"""How a column is made narrow: the kind of its codes, their scales, and what is kept wide, by
measured errors.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import as_number, check_one_of
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.rows.base import summary
from nodeflow._core.rows.columns import check_rows
from nodeflow._core.rows.narrow import EXACT, KINDS, Coding, NarrowRows, PackedRows
from nodeflow._core.rows.rows import Rows, fetch_rows, is_sparse

WIDTHS = (*KINDS, "auto")
_AUTO = ("int8", "float16")  # what "auto" tries
# steps between the smallest and the largest int8
_LEVELS = 255
_SMALLEST = 2.0**-149
_HUGE = 1e38
_PIECE = 2**22  # numbers that are looked at together
_SAMPLE = 2**11  # rows whose errors are measured at least
# share of the rows that errors are measured by: those nearest to the median
_MOST = 0.9


def narrowed(
    column: Tensor | Rows, width: str, limit: float = 0.25, name: str = "column"
) -> NarrowRows:
    """Return a column whose codes are computed when they are fetched; see ``storage.narrow``. Reads
    it once.
    """
    check_rows(column, name)
    check_one_of(width, "width", WIDTHS)
    most = as_number(limit, "limit", above=0)
    is_plain = not is_sparse(column) and not isinstance(column, NarrowRows)
    if not is_plain or not column.dtype.is_floating_point or not len(column.shape):
        raise TypeError(
            f"{name} must be dense rows of floating-point numbers that are not narrow yet, got "
            f"{summary(column)}"
        )
    if isinstance(column, Tensor) and column.requires_grad:
        raise TypeError(
            f"{name} requires a gradient, and narrow rows are constants: pass {name}.detach()"
        )
    row = tuple(column.shape[1:])
    seen = _seen(column, name)
    sample = _sample(column)
    # Every kind is measured on the same rows, so that their errors can be compared.
    codings = [
        _measured(kind, row, seen, sample) for kind in (_AUTO if width == "auto" else (width,))
    ]
    # "auto" takes what needs the fewest bytes, with columns of too large errors in float32
    if width == "auto":
        codings = [_with_wide(coding, most) for coding in codings]
        coding = min(codings, key=lambda option: option.stride * KINDS[option.kind].itemsize)
        if coding.stride * KINDS[coding.kind].itemsize >= 4 * max(math.prod(row), 1):
            raise ValueError(
                f"{name} has no column that can be narrow with errors up to {most:.1%}: leave it "
                "as it is"
            )
    else:
        (coding,) = codings
        mean = coding.table[4].double().numpy()
        if len(bad := np.flatnonzero(~(mean <= most))):
            low, high = (bound[bad[0]] for bound in seen[:2])
            raise ValueError(
                f"{name} cannot be {width}: column {bad[0]}, with numbers from {low:g} to "
                f"{high:g}, would be read with a mean error of {mean[bad[0]]:.1%} of its "
                f"deviation, above limit={most:.1%} (in all {len(bad)} of {len(mean)} columns). "
                "Clip or transform it, or take 'auto', which keeps it in float32, or 'bfloat16'"
            )
    return NarrowRows(PackedRows(column, coding), coding)


def _read(column: Tensor | Rows, ids: Tensor) -> Array:
    """Return rows as float32 ``[k, columns]``."""
    rows = fetch_rows(column, ids).detach()
    width = math.prod(column.shape[1:])
    numbers = rows.cpu().float().reshape(len(ids), width)
    return np.ascontiguousarray(numbers.numpy())


def _seen(column: Tensor | Rows, name: str) -> list[Array]:
    """Return what the loop ``survey`` sees of all rows; raises ValueError for a number that is not
    finite.
    """
    width = math.prod(column.shape[1:])
    inf = np.full(width, np.inf)
    step = max(_PIECE // max(width, 1), 1)
    seen: list[Array] = [inf, -inf, np.zeros(width), inf.copy(), np.zeros(width)]
    for start in range(0, column.shape[0] if width else 0, step):
        rows = _read(column, torch.arange(start, min(start + step, column.shape[0])))
        bad = int(kernels.narrow.survey(rows, _LEVELS, *seen))
        if bad >= 0:
            i, c = divmod(bad, width)
            raise ValueError(
                f"{name} must be finite in float32, but row {start + i} has {rows[i, c]} in column "
                f"{c}"
            )
    return seen


def _sample(column: Tensor | Rows) -> Floats:
    """Return rows evenly spaced over all, float64 ``[k, columns]``."""
    width = max(math.prod(column.shape[1:]), 1)
    count = min(max(_PIECE // width, _SAMPLE), column.shape[0])
    # Evenly over all rows: files are often sorted, and their beginning is like no other part.
    ids = np.linspace(0, column.shape[0] - 1, count).astype(np.int64)
    return _read(column, torch.from_numpy(ids)).astype(np.float64)


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
        rows = coding.unpack(codes, np.arange(len(codes)))
        read = rows.reshape(sample.shape).double().numpy()
        error = abs(sample - read)
        # Errors are compared with how far numbers are from the median, without the tenth that is
        # farthest: one outlier makes all deviations large, and all errors small beside them.
        away = abs(sample - np.median(sample, 0))
        near = away <= np.quantile(away, _MOST, 0, method="lower")
        near |= ~(away * near).any(0)  # equal rows tell nothing
        errors = np.where(near, error, 0).sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            table[3] = error.max(0)
            table[4] = np.where(errors > 0, errors / (away * near).sum(0), 0)
    return coding


def _grid(
    low: Floats, high: Floats, unit: Floats, least: Floats, step: Floats
) -> tuple[Array, Array]:
    """Return zero points and scales of int8 columns: numbers are read as whole numbers of their
    scale.

    A column whose numbers are all whole numbers of one step has this scale, and no error but the
    rounding of float32. Otherwise the codes are spread evenly between its bounds, so that the error
    is at most half a scale.
    """
    # those of a column without rows
    low, high = (np.where(np.isinf(bound), 0, bound) for bound in (low, high))
    size = np.maximum(abs(low), abs(high))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        even = np.maximum((high - low) / (_LEVELS - 1), size / EXACT)
        # the largest number is one of those that are read
        even = np.maximum(size / np.floor(size / even), _SMALLEST)
        nearest = even.astype(np.float32)
        up = np.where(nearest < even, np.nextafter(nearest, np.float32(np.inf)), nearest)
        # the next would be infinite
        down = np.where(nearest > even, np.nextafter(nearest, np.float32(0)), nearest)
        scale = np.where(size > _HUGE, down, up).astype(np.float32)
        # The last that fits wins: a step that all numbers share loses nothing.
        for multiple in (step, unit):
            exact = (least / np.rint(least / multiple)).astype(np.float32)
            steps = np.rint(high / exact) - np.rint(low / exact)
            fits = (
                (multiple > 0) & (exact > 0) & (steps <= _LEVELS) & (np.rint(size / exact) <= EXACT)
            )
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
