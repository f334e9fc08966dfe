"""Columns of pandas, polars and Arrow as arrays: exactly, or refused with the entry that cannot
be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NUMBERS: Final = "biufc"
"""The kinds of numpy's types that are numbers: bool, integers, unsigned ones, floats, complex
numbers.
"""

_EXACT = 2**53  # up to here float64 has every integer


def array_of(
    column: Any, name: str, error: type[Exception] = TypeError, row: tuple[int, ...] = ()
) -> NDArray[Any]:
    """Return a column of a table, or a data frame ``[n, columns]``, as an array; words become an
    array of objects.

    Lists of one length become rows ``[n, length]``. ``row`` is the shape of the rows whose entries
    ``column`` has, one after another. Raises ``error`` for the first missing entry (NaN of a plain
    float column is a number), TypeError for a data frame with a column of other things than
    numbers, ValueError for lists of several lengths.
    """
    if hasattr(column, "columns"):
        return _of_data_frame(column, name, error)
    column = _unpacked(column)
    if (at := first_missing(column)) is not None:
        raise error(
            f"{name} must have no missing entries, but row {at // max(math.prod(row), 1)} has one; "
            "fill it first, with fillna or fill_null, or leave the row out"
        )
    if hasattr(getattr(column, "type", None), "value_field"):  # lists of Arrow
        return _of_lists(
            column.value_lengths().to_numpy(zero_copy_only=False),
            column.flatten(),
            name,
            error,
            row,
        )
    dtype: Any = getattr(column, "dtype", None)
    # lists of polars, of any length or of a fixed one
    if getattr(dtype, "inner", None) is not None:
        if hasattr(dtype, "shape"):
            column = column.arr.to_list()
        return _of_lists(column.list.len().to_numpy(), column.explode(), name, error, row)
    try:
        return _of_numbers(column)
    except Exception as failure:  # libraries have classes of their own
        raise TypeError(
            f"{name} cannot become an array of numbers, convert it first: {failure}"
        ) from None


def _unpacked(column: Any) -> Any:
    """Return a column as one piece, without the wrapper of pandas or a dictionary of Arrow."""
    if hasattr(getattr(column, "dtype", None), "pyarrow_dtype"):  # pandas keeps an Arrow array
        column = getattr(column, "array", column).__arrow_array__()
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    # whose dictionary may hold the missing entry
    if hasattr(column, "dictionary_decode"):
        return column.dictionary_decode()
    return column


def _of_numbers(column: Any) -> NDArray[Any]:
    dtype: Any = getattr(column, "dtype", None)
    # of polars, whose fields may have missing entries
    if getattr(dtype, "fields", None):
        raise TypeError(f"{dtype} is no number")
    if hasattr(column, "type"):  # Arrow, which would refuse to copy bits
        return np.asarray(column.to_numpy(zero_copy_only=False))
    # pandas' own types, which might choose float64
    if hasattr(dtype, "numpy_dtype"):
        return np.asarray(column.to_numpy(dtype=dtype.numpy_dtype))
    return np.asarray(column.to_numpy())


def first_missing(column: Any) -> int | None:
    """Return the first entry that a library marks as missing, None where there is none."""
    if hasattr(column, "is_null"):  # polars and Arrow
        marks = column.is_null()
    elif hasattr(column, "isna") and not isinstance(column.dtype, np.dtype):  # pandas' own types
        marks = column.isna()
    else:
        return None
    missing = np.asarray(marks, bool)
    return int(missing.argmax()) if missing.any() else None


def stacked(arrays: Sequence[NDArray[Any]], name: str, axis: int = 0) -> NDArray[Any]:
    """Return arrays of one shape as one, of a type that holds all; ValueError for integers that it
    would round.
    """
    # numpy finds a type for all, which is float64 for integers beside floats
    whole = np.stack(arrays, axis)
    for array in arrays:
        if whole.dtype.kind in "fc" and array.dtype.kind in "iu" and array.size:
            check_exact(name, int(array.min()), int(array.max()))
    return whole


def of_objects(items: Sequence[Any] | NDArray[Any], name: str) -> NDArray[Any]:
    """Return Python's numbers, or lists, arrays or tensors of one length, as an array with a row
    for each.

    Anything else becomes an array of objects or words. Raises ValueError for rows of several
    shapes, and for integers among floats that floats do not have.
    """
    if not len(items) or not hasattr(items[0], "__len__") or isinstance(items[0], (str, bytes)):
        return _of_python(items, name)
    rows = [row if isinstance(row, np.ndarray) else _of_python(row, name) for row in items]
    for at, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray):
            raise TypeError(
                f"{name} must have no missing entries, but row {at} is a masked array; fill it "
                "first"
            )
    shapes = {row.shape for row in rows}
    if len(shapes) > 1:
        words = ", ".join(str(list(shape)) for shape in sorted(shapes)[:3])
        raise ValueError(f"{name} must have lists of one length, got rows of shape {words}")
    return stacked(rows, name)


def _of_python(items: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(items)
    except (
        TypeError,
        ValueError,
    ) as error:  # numbers that numpy does not know, lists of several lengths
        raise TypeError(
            f"{name} must hold numbers, or lists of numbers of one length; numpy says: {error}"
        ) from None
    if isinstance(items, (list, tuple)) and array.dtype.kind in "fc":
        values = np.asarray(items, object).flat
        check_exact(name, *(int(value) for value in values if isinstance(value, (int, np.integer))))
    return array


def _of_data_frame(table: Any, name: str, error: type[Exception]) -> NDArray[Any]:
    if hasattr(table, "get_columns"):
        columns = table.get_columns()
    else:
        columns = [column for _, column in table.items()]
    arrays = [array_of(column, f"{name}, column {column.name!r}", error) for column in columns]
    for column, array in zip(columns, arrays, strict=True):
        if array.dtype.kind not in NUMBERS:
            raise TypeError(
                f"{name} must hold numbers, got a data frame whose column {column.name!r} has "
                f"dtype {column.dtype}; convert it first, or choose columns"
            )
    return stacked(arrays, name, axis=1) if arrays else np.zeros((len(table), 0))


def _of_lists(
    lengths: NDArray[Any], entries: Any, name: str, error: type[Exception], row: tuple[int, ...]
) -> NDArray[Any]:
    # entries come one after another: only equal lengths tell where a row ends
    different = np.unique(lengths)
    if len(different) > 1:
        raise ValueError(f"{name} must have lists of one length, got {different[:3].tolist()}")
    length = int(different.sum())
    # polars has an entry for an empty list too
    numbers = array_of(entries[: length * len(lengths)], name, error, (*row, length))
    return numbers.reshape(len(lengths), length, *numbers.shape[1:])


def check_exact(name: str, *values: int) -> None:
    """Raise ValueError for integers that are to become floats, and that these would round."""
    for value in values:
        if abs(value) > _EXACT:
            raise ValueError(
                f"{name} becomes floats, which would round {value}: give all its numbers one type "
                "first"
            )
