"""Keys of rows, as databases have them: read exactly, compared, and kept as a column of numbers.

A key is a 64-bit integer or a word. Words look like literals of Python, so that ``"7"``, 7 and
``b"7"`` stay three.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date
from decimal import Decimal
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_array, describe, first_true
from nodeflow._core.base.dates import in_utc
from nodeflow._core.base.dtypes import digits_of
from nodeflow._core.base.types import Array

PRIMARY_KEY: Final = "primary_key"
"""The node column that keeps the primary keys of a table."""


def as_keys(values: Any, where: str) -> tuple[Array, Ints]:
    """Return the keys that are not missing, int64 or words, and their rows.

    ``values`` are a column of a table, an array, a tensor or a list. Numbers of all types are
    compared by their values.

    Raises ValueError for floats so large that they may stand for several integers, and for numbers
    that are not whole, TypeError for values that cannot be keys, such as lists; ``where`` names the
    column in errors.
    """
    if isinstance(values, Tensor):
        values = as_array(values, where, "keys")
    elif hasattr(values, "to_pylist"):  # of Arrow
        values = np.asarray(values)
    dtype = getattr(values, "dtype", None)
    digits = digits_of(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "if":
        numbers = np.asarray(values)
        rows = np.flatnonzero(numbers == numbers)
        numbers = numbers[rows]
        # the usual case, quickly; otherwise they are looked at one by one, for the error
        are_whole = (np.abs(numbers) < 2**digits) & (np.rint(numbers) == numbers)
        if dtype.kind == "i" or are_whole.all():
            return numbers.astype(np.int64), rows
    # numpy would make lists of integers of dates
    is_dates = getattr(dtype, "kind", "M") in "mM"
    if is_dates or not hasattr(values, "tolist"):
        plain = list(values)
    else:
        plain = values.tolist()
    rows_of_keys = []
    keys = []
    for row, value in enumerate(plain):
        key = _key(value, digits, where, row)
        if key is not None:
            keys.append(key)
            rows_of_keys.append(row)
    return _array(keys), np.array(rows_of_keys, np.int64)


def _key(value: Any, digits: int, where: str, row: int) -> int | str | None:
    """Return a key as an integer or a word, None where it is missing."""
    if value is None or type(value).__name__ == "NAType":
        return None
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, date | np.datetime64):
        stamp = in_utc(value)
        if np.isnat(stamp):
            return None
        # without trailing zeros, so that a date is one key in all units
        return np.datetime_as_string(stamp, unit="as").rstrip("0")
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating | Decimal):
        return None if value != value else _whole(value, digits, where, row)
    if not isinstance(value, Hashable):
        raise TypeError(
            f"{where} must hold keys, such as integers or strings, but row {row} has "
            f"{describe(value)}"
        )
    return repr(value)


def _whole(value: Any, digits: int, where: str, row: int) -> int:
    if not isinstance(value, Decimal):
        digits = min(digits, np.finfo(type(value)).nmant + 1)
        if not abs(value) < 2**digits:
            raise ValueError(
                f"{where} holds keys as floats, which tell no integers from 2**{digits} on apart: "
                f"row {row} has {value}; read it as integers that may be missing, of type Int64"
            )
    if value % 1 != 0:
        raise ValueError(
            f"{where} must hold keys that are whole numbers, words or dates, but row {row} has "
            f"{value}"
        )
    return int(value)


def _array(keys: list[int | str]) -> Array:
    """Return keys as int64, or as words where some are none that fit."""
    if all(isinstance(key, int) and -(2**63) <= key < 2**63 for key in keys):
        return np.array(keys, np.int64)
    words = np.empty(len(keys), object)
    words[:] = [str(key) for key in keys]
    return words


def rows_of(keys: Array, among: Array) -> Ints:
    """Return for each key the first row of ``among`` that has it, -1 where none has."""
    if keys.dtype == among.dtype == np.int64:
        # stable, so that of equal keys the first row is found
        order = np.argsort(among, kind="stable")
        ascending = np.append(among[order], 0)
        at = np.searchsorted(ascending[:-1], keys)
        return np.where(ascending[at] == keys, np.append(order, -1)[at], -1)
    rows: dict[str, int] = {}
    for row, key in enumerate(among.tolist()):
        rows.setdefault(str(key), row)
    return np.array([rows.get(str(key), -1) for key in keys.tolist()], np.int64)


def first_repeated(keys: Array) -> tuple[int, int] | None:
    """Return the first row whose key an earlier row has, and how many rows have it; None where all
    differ.
    """
    first = rows_of(keys, keys)
    row = first_true(first != np.arange(len(keys)))
    if row is None:
        return None
    return row, int((first == first[row]).sum())


def column_of_keys(keys: Array) -> Tensor:
    """Return keys as the rows of a column: int64 ``[n]``, or words in UTF-8, uint8
    ``[n, bytes of the longest]``.
    """
    if keys.dtype == np.int64:
        return torch.from_numpy(keys)
    coded = np.array([word.encode("utf-8", "surrogatepass") for word in keys.tolist()], "S")
    return torch.from_numpy(coded.view(np.uint8).reshape(len(keys), -1))


def keys_of_column(column: Tensor) -> Array:
    """Return the keys that ``column_of_keys`` has made a column of."""
    rows: Array = column.numpy()
    if rows.ndim == 1:
        return rows
    coded = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)
    return _array([word.decode("utf-8", "surrogatepass") for word in coded.tolist()])
