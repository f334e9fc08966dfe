"""Times of the rows of tables: columns of dates or of seconds, as seconds since 1970 on one
clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from nodeflow._core.base.checks import Ints, first_true
from nodeflow._core.base.dates import exact_seconds
from nodeflow._core.base.dtypes import digits_of
from nodeflow._core.base.types import Array, Floats
from nodeflow.convert._columns import library

_MISSING = np.iinfo(np.int64).min
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
"""What pandas calls values that are numbers."""
_DATES = ("string", "date", "datetime", "datetime64", "empty")
"""What it calls values that are dates."""
_DAY = 86_400
_YEAR = 365 * _DAY
_YEAR_10000 = 253_402_300_800
_CALENDAR = (
    ("minutes", "%Y%m%d%H%M", 1, 0),
    ("hours", "%Y%m%d%H", 10**2, 0),
    ("days", "%Y%m%d", 10**4, 0),
    ("months", "%Y%m", 10**6, 10**4),
    ("years", "%Y", 10**8, 101 * 10**4),
)
"""Numbers that are dates, and what makes a minute such as 202103011530 of them: times a factor,
plus a number.
"""
# year, month, day, hour and minute of such a number: it is divided by its place, up to its size
_PLACES = np.array([10**8, 10**6, 10**4, 10**2, 1])
_SIZES = np.array([np.inf, 100, 100, 100, 100])
_LEAST = np.array([1900, 1, 1, 0, 0])
_LARGEST = np.array([2100, 12, 31, 23, 59])


class _Times(NamedTuple):
    """The times of those rows of a column that have one: int64 if all are whole seconds, else
    float64.
    """

    where: str
    seconds: Array
    rows: Ints
    as_numbers: bool


def as_clock(columns: Mapping[str, tuple[Any, str]], cut: Any) -> tuple[dict[str, Array], Any]:
    """Return the times of columns, each given with its name in errors, and that of the cut, None
    without one.

    All are int64 if all are whole seconds, else all are float64, which tell microseconds apart.
    Missing ones are the smallest int64, or NaN.
    """
    known = {table: _known(column, where) for table, (column, where) in columns.items()}
    of_cut = []
    if cut is not None:
        series = library("pandas", "pandas").Series([cut])
        of_cut.append(_known(series, "cut"))
    _check_numbers_beside_dates([*known.values(), *of_cut])
    if any(not len(times.rows) for times in of_cut):
        raise ValueError(f"cut must be a time, got {cut!r}; leave it out, and all rows count")
    # one type for all tables, since times of different tables are compared
    whole = all(times.seconds.dtype.kind == "i" for times in known.values())
    clock = {}
    for table, times in known.items():
        clock[table] = np.full(len(columns[table][0]), _MISSING if whole else np.nan)
        clock[table][times.rows] = times.seconds
    return clock, of_cut[0].seconds[0] if of_cut else None


def _known(column: Any, where: str) -> _Times:
    rows = np.flatnonzero(column.notna().to_numpy(bool))
    values = plain(column.iloc[rows])
    if kind_of_values(values) in _NUMBERS:
        numbers = _numbers(values, rows, where)
        whole = (np.rint(numbers) == numbers).all()
        return _Times(where, numbers.astype(np.int64) if whole else numbers, rows, as_numbers=True)
    stamps = to_dates(values, where)
    # all rows, so that an error names the row of the table
    dates = np.full(len(column), "NaT", stamps.dtype)
    dates[rows] = stamps
    seconds = exact_seconds(dates, where)
    dated = np.flatnonzero(~np.isnat(dates))  # an empty string is a missing date
    return _Times(where, seconds[dated], dated, as_numbers=False)


def plain(values: Any) -> Any:
    """Return values, of which none is missing, as what their categories are."""
    return values.astype(values.cat.categories.dtype) if values.dtype == "category" else values


def kind_of_values(column: Any) -> str:
    """Return what pandas calls the values of a column, but missing ones."""
    return str(library("pandas", "pandas").api.types.infer_dtype(column, skipna=True))


def to_dates(values: Any, where: str) -> Array:
    """Return dates, of UTC where they have no time zone, as datetime64; raises ValueError for what
    is none.
    """
    pandas = library("pandas", "pandas")
    words = f"{where} must hold dates or seconds, convert it with pandas.to_datetime"
    if kind_of_values(values) not in _DATES:
        raise ValueError(f"{words}; got {kind_of_values(values)} values")
    try:
        # another form would be guessed: 03/04/2021 is in March or in April
        stamps = pandas.to_datetime(values, utc=True, format="ISO8601")
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0].removesuffix(" You might want to try:")
        raise ValueError(f"{words}; {reason} Its format= reads others") from None
    return cast("Array", stamps.dt.tz_localize(None).to_numpy())


def _numbers(values: Any, rows: Array, where: str) -> Floats:
    """Return numbers that can be seconds; all such numbers have a float64 of their own if they are
    whole.
    """
    plain = values.to_numpy()
    if plain.dtype == object and any(isinstance(value, np.float16 | np.float32) for value in plain):
        plain = plain.astype(np.float32)
    seconds: Floats = library("pandas", "pandas").to_numeric(values).to_numpy(np.float64)
    words = f"{where} must hold dates or seconds since 1970"
    if (at := first_true(~(np.abs(seconds) < _YEAR_10000))) is not None:
        hint = (
            "pandas.to_datetime(column, unit='ms'), or 'us' or 'ns', or format='%Y%m%d%H%M%S', "
            "converts others"
        )
        raise ValueError(
            f"{words} before the year 10000, but row {rows[at]} has {plain[at]}; {hint}"
        )
    digits = digits_of(plain.dtype)
    if (at := first_true(np.abs(seconds) >= 2**digits)) is not None:
        raise ValueError(
            f"{words}, but row {rows[at]} has {plain[at]} as {plain.dtype}, which has rounded "
            f"numbers from 2**{digits} on; read it as float64 or int64"
        )
    for unit, pattern, factor, first in _CALENDAR:
        fields = (seconds * factor + first)[:, None] // _PLACES % _SIZES
        is_date = ((fields >= _LEAST) & (fields <= _LARGEST)).all(1) & (seconds % 1 == 0)
        # others may stand for no date, such as 0 and 99991231
        if len(seconds) and 2 * np.count_nonzero(is_date) >= len(seconds):
            year = seconds[is_date].astype("M8[s]").astype("M8[Y]")[0]
            raise ValueError(
                f"{words}, but looks like {unit} such as {plain[is_date][0]}, which are seconds of "
                f"{year}; pandas.to_datetime(column, format={pattern!r}) makes dates of them"
            )
    return seconds


def _check_numbers_beside_dates(columns: list[_Times]) -> None:
    """Raise ValueError for numbers that fall into one day of 1970, beside dates of other years:
    what is their unit?
    """
    dates = [times.seconds for times in columns if not times.as_numbers]
    if not any(((seconds < 0) | (seconds >= _YEAR)).any() for seconds in dates):
        return
    for where, numbers, _, as_numbers in columns:
        if (
            as_numbers
            and len(numbers)
            and numbers.min() >= 0
            and numbers.max() < min(_YEAR, numbers.min() + _DAY)
        ):
            raise ValueError(
                f"{where} must hold dates or seconds since 1970, but all its numbers, such as "
                f"{numbers[0]}, fall into one day of 1970, and other times are dates; convert it "
                "with pandas.to_datetime(column, unit='D'), say"
            )
