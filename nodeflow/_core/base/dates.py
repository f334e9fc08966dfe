"""Dates as seconds since 1970: integers where all are whole, else floats, which tell microseconds
apart.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from nodeflow._core.base.checks import as_array, first_true
from nodeflow._core.base.types import Array


def as_dates(array: Array, name: str, first: int = 0) -> Array | None:
    """Return datetime64, or objects that are dates, as ``datetime64[us]`` of UTC; None for an array
    of others.

    Dates without a time zone are taken for UTC. Raises ValueError for one that microseconds do not
    have exactly, whose entry is counted from ``first`` on.
    """
    if array.dtype.kind == "M":
        return _checked(array.astype("M8[us]"), array, name, first)
    if array.dtype.kind != "O" or not all(
        isinstance(value, date | np.datetime64) for value in array.flat
    ):
        return None
    # one by one: numpy would take the finest unit for all, in which others overflow
    dates = [as_dates(np.array(in_utc(value)), name, at) for at, value in enumerate(array.flat)]
    return np.array(dates, "M8[us]").reshape(array.shape)


def _checked(stamps: Array, dates: Array, name: str, first: int = 0) -> Array:
    """Return stamps that were made of dates; raises ValueError for the first that has lost a part
    of its date.
    """
    lost = (stamps.astype(dates.dtype) != dates) & ~np.isnat(dates)
    if (at := first_true(lost.ravel())) is not None:
        raise ValueError(
            f"{name} must hold dates to the microsecond, which seconds as float64 tell apart, "
            f"within 290,000 years of 1970, but entry {first + at} is {dates.flat[at]}; round rows "
            "up, with .dt.ceil('us'), and seeds down, with .floor('us')"
        )
    return stamps


def in_utc(value: Any) -> np.datetime64:
    """Return a date, a time or a stamp of pandas as datetime64 of UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    # numpy would drop the nanoseconds of a stamp of pandas
    return value.to_datetime64() if hasattr(value, "to_datetime64") else np.datetime64(value)


def seconds_of(dates: Array) -> Array:
    """Return dates, datetime64, as int64 seconds, or as float64 to the microsecond where some are
    not whole.

    Missing ones are the smallest int64, or NaN. Floats are those of ``datetime.timestamp()``.
    """
    missing = np.isnat(dates)
    # a missing date is the smallest integer, which division would change
    numbers = np.where(missing, 0, dates.astype("M8[us]").astype(np.int64))
    if (numbers % 10**6).any():
        return np.where(missing, np.nan, numbers / 1e6)
    return np.where(missing, np.iinfo(np.int64).min, numbers // 10**6)


def exact_seconds(dates: Array, name: str) -> Array:
    """Return ``seconds_of``; raises ValueError for a date of which float64 seconds would lose a
    part of its time.
    """
    numbers = seconds_of(dates)
    # back to microseconds, to be compared with the dates
    if numbers.dtype.kind == "i":
        stamps = numbers * 10**6
    else:
        stamps = np.rint(np.nan_to_num(numbers) * 1e6)
    _checked(stamps.astype(np.int64).astype("M8[us]"), dates, name)
    return numbers


def as_moments(value: object, name: str, of: str, *shapes: tuple[int, ...]) -> Array:
    """Return times, of one of some shapes, as an array: numbers as they are, dates as seconds since
    1970.

    Raises TypeError for what are neither, ValueError for another shape, which says that there must
    be one entry per ``of``, for a missing date, and for one with parts of a microsecond.
    """
    array = as_array(value, name, "integers or floats")
    dates = as_dates(array, name)
    if dates is not None:
        if (at := first_true(np.isnat(dates).ravel())) is not None:
            raise ValueError(f"{name} must hold a time for every seed, but entry {at} is missing")
        array = exact_seconds(dates, name)
    if array.shape not in shapes:
        raise ValueError(f"{name} must have one entry per {of}, got shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must be numbers in the unit of the graph's times, or dates, got "
            f"{array.dtype}; pandas.to_datetime makes dates of words"
        )
    return array
