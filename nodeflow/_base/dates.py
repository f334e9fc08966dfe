"""Dates as seconds since 1970: integers where all are whole, else floats, which tell microseconds apart."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from nodeflow._base.checks import as_array, first_true
from nodeflow._base.types import Array


def as_dates(array: Array) -> Array | None:
    """Return an array of datetime64, or of objects that are dates, as datetime64 of UTC; None where it holds others.

    Dates without a time zone are taken for UTC.
    """
    if array.dtype.kind == "M":
        return array
    if array.dtype.kind != "O" or not all(isinstance(value, date | np.datetime64) for value in array.flat):
        return None
    return np.array([in_utc(value) for value in array.flat], "M8").reshape(array.shape)


def in_utc(value: Any) -> np.datetime64:
    """Return a date, a time or a stamp of pandas as datetime64 of UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    # numpy would drop the nanoseconds of a stamp of pandas
    return value.to_datetime64() if hasattr(value, "to_datetime64") else np.datetime64(value)


def seconds_of(dates: Array) -> Array:
    """Return dates, datetime64, as int64 seconds, or as float64 where some are not whole.

    Missing ones are the smallest int64, or NaN. Floats are those of ``datetime.timestamp()``.
    """
    seconds = dates.astype("M8[s]")
    missing = np.isnat(dates)
    fraction = np.where(missing, np.timedelta64(0, "s"), dates - seconds)
    whole = seconds.astype(np.int64)
    if not (fraction != np.timedelta64(0, "s")).any():
        return whole
    numbers = (whole * 10**6 + fraction.astype("m8[us]").astype(np.int64)) / 1e6
    return np.where(missing, np.nan, numbers)


def exact_seconds(dates: Array, name: str) -> Array:
    """Return ``seconds_of``; raises ValueError for a date of which float64 seconds would lose a part of its time."""
    numbers = seconds_of(dates)
    if numbers.dtype.kind == "i":
        return numbers
    dated = np.flatnonzero(~np.isnat(dates))
    back = np.rint(numbers.flat[dated] * 1e6).astype(np.int64).astype("M8[us]")
    if (at := first_true(back != dates.flat[dated])) is not None:
        raise ValueError(
            f"{name} must hold dates to the microsecond, which seconds as float64 tell apart, but entry {dated[at]} is "
            f"{dates.flat[dated[at]]}; round rows up, with .dt.ceil('us'), and seeds down, with .floor('us')"
        )
    return numbers


def as_moments(value: object, name: str, of: str, *shapes: tuple[int, ...]) -> Array:
    """Return times, of one of some shapes, as an array: numbers as they are, dates as seconds since 1970.

    Raises TypeError for what are neither, ValueError for another shape, which says that there must be one entry per
    ``of``, for a missing date, and for one with parts of a microsecond.
    """
    array = as_array(value, name, "integers or floats")
    dates = as_dates(array)
    if dates is not None:
        if (at := first_true(np.isnat(dates).ravel())) is not None:
            raise ValueError(f"{name} must hold a time for every seed, but entry {at} is missing")
        array = exact_seconds(dates, name)
    if array.shape not in shapes:
        raise ValueError(f"{name} must have one entry per {of}, got shape {array.shape}")
    if array.size and array.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must be numbers in the unit of the graph's times, or dates, got {array.dtype}; "
            "pandas.to_datetime makes dates of words"
        )
    return array
