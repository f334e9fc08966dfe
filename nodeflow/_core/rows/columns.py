"""What a column may hold: one check, by type, of tensors, arrays and the columns of other
libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.masked import MaskedTensor

from nodeflow._core.base.arrays import NUMBERS, array_of, of_objects
from nodeflow._core.base.checks import check_type, describe, plain_array
from nodeflow._core.base.dtypes import COLUMN_TYPES, WIDER, as_floats
from nodeflow._core.rows.csr import check_csr, from_scipy
from nodeflow._core.rows.rows import Rows, entries_of, from_numpy

_NUMBER = (bool, int, float, complex, np.number, np.bool_)


def as_column(value: Any, name: str, error: type[Exception] = TypeError) -> Tensor:
    """Return a tensor, an array, a column or frame of a table, or a scipy matrix as a tensor that
    can be a column.

    Values stay as they are. Unsigned integers get the next signed type; other arrays share their
    memory. ``name`` begins the messages. Raises TypeError for anything but numbers of a type in
    ``COLUMN_TYPES``, dense or sparse CSR; ``error`` for missing entries; ValueError for integers
    beyond 64 bits and for lists of several lengths.

    >>> as_column(np.array([0, 65535], np.uint16), "x")
    tensor([    0, 65535], dtype=torch.int32)
    """
    if type(value).__module__.startswith("scipy.sparse"):
        return from_scipy(value, name)
    if hasattr(value, "to_numpy"):
        value = array_of(value, name, error)
    if isinstance(value, np.ndarray):
        value = from_numpy(_known_numbers(value, name))
    check_type(value, name, Tensor, "a tensor, an array or a sparse matrix")
    return _checked(value, name)


def column_of_numbers(
    values: Sequence[Any], name: str = "the column", dtype: torch.dtype | None = None
) -> Tensor:
    """Return a column of Python's numbers, or of lists of them, of the type that a user names, as
    ``as_type`` does.

    None: bool, int64, or floats of the type of ``as_floats``; floats of numpy keep their type.
    Raises ValueError for an integer among floats that these would round, and what ``as_column``
    raises.
    """
    array = of_objects(values, name)
    if (
        dtype is None
        and array.dtype == np.float64
        and torch.tensor(values, device="cpu").dtype == torch.float32
    ):
        array = as_floats(array, name)
    return as_type(as_column(array, name), dtype, name)


def as_type(column: Tensor, dtype: torch.dtype | None, name: str) -> Tensor:
    """Return a column as numbers of a type that a user names, None its own; floats are rounded to
    shorter ones.

    Raises ValueError for a number that the type does not have: an integer that it would change, a
    fraction or NaN where it has integers, and a float too large for it.
    """
    # A complex column that becomes real keeps its real part here; what is lost shows below.
    result = (column if dtype is None or dtype.is_complex else column.real).to(
        dtype or column.dtype
    )
    # floats may become shorter floats, but not infinite; all else must come back as it was
    may_round = torch.can_cast(column.dtype, result.dtype) and not torch.can_cast(
        column.dtype, torch.int64
    )
    lost = result.real.to(column.dtype) != column
    if may_round:
        lost = result.isfinite() != column.isfinite()
    if lost.any():
        raise ValueError(
            f"{name} has {column[lost][0].item()}, which {dtype} does not hold; give another type, "
            "or None"
        )
    return result


def check_rows(column: object, name: str) -> None:
    """Raise TypeError for what is neither a tensor nor ``Rows``, of numbers that columns have."""
    kinds = "a tensor, or an object with shape, dtype and fetch(ids, out=None)"
    check_type(column, name, Tensor | Rows, kinds)
    check_numbers(column.dtype, name)  # type: ignore[attr-defined]


def check_numbers(dtype: torch.dtype, name: str) -> None:
    """Raise TypeError for numbers of a type that columns do not have, with what to do."""
    if dtype not in COLUMN_TYPES:
        raise TypeError(
            f"{name} has numbers of type {dtype}, which torch computes little with; convert it "
            "first: .dequantize() of quantised numbers, .view(torch.uint8) of bits, else "
            f".to({WIDER.get(dtype, torch.float32)})"
        )


def _known_numbers(array: np.ndarray, name: str) -> np.ndarray:
    """Return an array of numbers of a type that torch has a name for."""
    if array.dtype == object:  # lists, or arrays, in a column of objects
        array = of_objects(array, name)
    kind = array.dtype.kind
    size = array.dtype.itemsize
    if kind not in NUMBERS or size > (16 if kind == "c" else 8):
        place = next(
            (place for place, value in np.ndenumerate(array) if not isinstance(value, _NUMBER)),
            (0,) * array.ndim,
        )
        example = ""
        if array.size:
            example = f" such as {describe(array[place])} as entry {list(place)}"
        raise TypeError(
            f"{name} must hold numbers, got {array.dtype}{example}; convert it first (.astype of a "
            "type of numbers, codes of a category, seconds of a date), and fill missing entries"
        )
    return plain_array(array, name)


def _checked(column: Tensor, name: str) -> Tensor:
    if column.is_nested:
        raise TypeError(
            f"{name} is a nested tensor; make its rows as long as the longest: .to_padded_tensor(0)"
        )
    if isinstance(column, MaskedTensor):
        raise TypeError(
            f"{name} must have no missing entries, got a masked tensor; fill it first, with "
            ".to_tensor(0)"
        )
    if column.layout not in (torch.strided, torch.sparse_csr):
        raise TypeError(
            f"{name} must be dense or sparse CSR, got layout {column.layout}; .to_sparse_csr() "
            "converts it"
        )
    if column.dtype in WIDER:
        column = _widened(column, name)
    check_numbers(column.dtype, name)
    if column.layout == torch.strided:
        return column
    return check_csr(column, name)


def _widened(column: Tensor, name: str) -> Tensor:
    if column.dtype == torch.uint64:
        numbers = entries_of(column).detach().view(torch.int64)
        if len(beyond := (numbers < 0).nonzero()):
            place = tuple(beyond[0].tolist())
            raise ValueError(
                f"{name} holds {int(numbers[place]) + 2**64}, beyond the largest 64-bit signed "
                f"integer, as entry {list(place)}; convert it first, to float64 if digits may be lost"
            )
    return column.to(WIDER[column.dtype])
