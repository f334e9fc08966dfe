"""Types of numbers: those that columns have, those that become one, names in files, digits,
Python's floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow._core.base.arrays import check_exact
from nodeflow._core.base.checks import first_true
from nodeflow._core.base.types import Array

COLUMN_TYPES: Final = frozenset(
    {
        torch.bool,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.complex64,
        torch.complex128,
    }
)
"""The types of numbers that columns have: torch gathers, joins, writes and adds them all."""

WIDER: Final[Mapping[torch.dtype, torch.dtype]] = {
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.int64,
}
"""Types that torch computes little with, and the type that a column of such numbers gets."""

DTYPES: Final[Mapping[str, torch.dtype]] = {
    str(kind).removeprefix("torch."): kind for kind in COLUMN_TYPES | WIDER.keys()
}
"""The types of numbers that files may hold, by torch's word: no other name that a file holds is
looked up.
"""

# of short floats, by the words of torch, numpy, pandas, polars and Arrow
_DIGITS: Final = {"bfloat16": 8, "float16": 11, "halffloat": 11, "float32": 24, "float": 24}


def digits_of(dtype: Any) -> int:
    """Return how many binary digits the floats of a type of any library have: they round integers
    from 2**digits on.

    53 for float64, and for all that are no floats.
    """
    # categories, sparse columns and dictionaries hold numbers of another type
    for part in ("categories", "dtype", "subtype", "pyarrow_dtype", "value_type"):
        dtype = getattr(dtype, part, dtype)
    if isinstance(dtype, np.dtype):
        word = dtype.name
    else:
        word = str(dtype).removeprefix("torch.")
    return _DIGITS.get(word.lower(), 53)


def as_floats(numbers: Array, name: str = "the column") -> Array:
    """Return numbers as float32, the type that torch gives Python's floats, or float64 where that
    loses much of one.

    That is one above 2**24, or one that is not whole above 2**14: float32 would move them by a
    thousandth or more, and of seconds since 1970 a later time may seem to be an earlier one. Raises
    ValueError for an integer that float64 rounds.
    """
    if numbers.dtype.kind in "iu" and numbers.size:
        check_exact(name, int(numbers.min()), int(numbers.max()))
    limit = np.where(np.rint(numbers) == numbers, 2**24, 2**14)
    large = (np.abs(numbers) > limit) & np.isfinite(numbers)
    return numbers.astype(np.float64 if large.any() else np.float32, copy=False)


def as_float32(numbers: Array, where: str) -> NDArray[np.float32]:
    """Return an array as float32; raises ValueError for the first number that would become
    infinite.

    Also for a whole number above 2**24 that float32 would round, and for others of that size where
    different ones would become the same: times and counts that differ.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = numbers.astype(np.float32, copy=False)
        is_changed = (np.abs(numbers) > 2**24) & (
            values.astype(numbers.dtype, copy=False) != numbers
        )
    large = numbers[is_changed]
    are_merged = len(np.unique(large)) > len(np.unique(values[is_changed]))
    if are_merged or (np.rint(large) == large).any():
        rounded = values[is_changed][0]
        why = "beyond the largest float32"
        if np.isfinite(rounded):
            why = f"which float32 rounds to {rounded:.0f}"
        raise ValueError(
            f"{where} holds {large[0]} in entry {first_true(is_changed.ravel())}, {why}; subtract "
            "what all have in common, or write times as dates, which are no features"
        )
    return values
