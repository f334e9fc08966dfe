"""Types of numbers: those that columns have, those that become one of these, their names in files, Python's floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._base.arrays import of_objects
from nodeflow._base.checks import first_true
from nodeflow._base.types import Array

COLUMN_TYPES: Final = frozenset(
    (torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    + (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.complex64, torch.complex128)
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
"""The types of numbers that files may hold, by torch's word: no other name that a file holds is looked up."""


def as_floats(numbers: Array) -> Array:
    """Return numbers as float32, the type that torch gives Python's floats, or float64 where one is above 2**24.

    As float32 such numbers lose digits: of seconds since 1970 a minute, and a later time may seem to be an earlier one.
    """
    large = (np.abs(numbers) > 2**24) & np.isfinite(numbers)
    return numbers.astype(np.float64 if large.any() else np.float32, copy=False)


def as_float32(numbers: Array, where: str) -> NDArray[np.float32]:
    """Return an array as float32; raises ValueError for the first number that would become infinite.

    Also for one above 2**24 that float32 would round: times and counts that differ would become the same.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = numbers.astype(np.float32, copy=False)
        is_changed = (np.abs(numbers) > 2**24) & (values.astype(numbers.dtype, copy=False) != numbers)
    if (at := first_true(is_changed.ravel())) is not None:
        got = values.ravel()[at]
        remedy = "divide such numbers, or write times as dates, which are no features"
        why = "beyond the largest float32" if np.isinf(got) else f"which float32 rounds to {got:.0f}; {remedy}"
        raise ValueError(f"{where} holds {numbers.ravel()[at]} in entry {at}, {why}")
    return values


def column_of_numbers(values: Sequence[Any]) -> Tensor:
    """Return a column of Python's numbers, or of lists of them: bool, int64, or floats of the type of ``as_floats``.

    Raises ValueError for an integer among floats that these would round.
    """
    column = torch.tensor(values, device="cpu")
    if column.dtype != torch.float32:
        return column
    return torch.from_numpy(as_floats(of_objects(values, "the column")))
