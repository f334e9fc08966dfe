"""What a word is: an integer, a number, a time, or its own name. One rule for all readers of
text.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np

from nodeflow._core.base.checks import Ints, first_true
from nodeflow._core.base.dates import as_dates, in_utc, seconds_of
from nodeflow._core.base.types import Array

Fault: TypeAlias = Callable[[int, str], ValueError]
"""Makes the error for a word of a column, by its place there, of words that say what is wrong."""

NUMBER = "numbers"
TRUTH = "True or False"
DATE = "dates"
NAME = "names"
ID = "ids"

_DIGITS = re.compile(r"[+-]?[0-9]+")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_PADDED = re.compile(r"[+-]?0[0-9]+")
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:]+(?:[.,][0-9]{1,6}0*)?(?:Z|[+-][0-9:]+)?)?"
)
_TRUTH = {"true": True, "false": False}
_GAPS = {"na", "n/a", "#n/a", "nan", "null", "none", "nil", "nat", "-", "?", "."}
"""What programs write for a missing entry."""
_OTHER_DATE = re.compile(
    r"[0-9]{1,2}([/.-])[0-9]{1,2}\1[0-9]{4}(?: .*)?|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}(?: .*)?|"
    r"[0-9]{4}([/.-])[0-9]{1,2}\2[0-9]{1,2}(?:[T ].*)?|[0-9]{8}T[0-9]{2,6}Z?|"
    r"[0-9]{4}-[0-9]{2}|[0-9]{4}-?W[0-9]{2}(?:-?[0-9])?|[0-9]{4}-?Q[1-4]|"
    r"[0-9]{1,2}[ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[ -][0-9]{2,4}(?: "
    r".*)?|"
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*[0-9]{1,2}:[0-9]{2}.*|"
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?(?: ?[AaPp][Mm])?"
)
"""Dates whose order of day and month is not known, or finer than a microsecond, weeks, months,
times of day.
"""
_OTHER_NUMBER = re.compile(
    r"[+-]?[0-9]{1,3}(?:[,' "
    r"][0-9]{3})+(?:\.[0-9]+)?|[+-]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[+-]?[0-9]+,[0-9]+|"
    r"[+-]?[0-9.,]+ ?[%$€£]|[$€£] ?[0-9.,]+"
)
"""Numbers with separators of thousands, a decimal comma, or a unit."""


def is_integer(text: str) -> bool:
    """Return whether ``text`` is what ``str(int(text))`` gives, of 64 bits; ``007`` and ``+7`` are
    names.
    """
    return _INTEGER.fullmatch(text) is not None and is_kept(text)


def is_number(text: str) -> bool:
    """Return whether ``text`` is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    # Python's own separator of thousands, which no data file means
    return "_" not in text


def is_code(text: str) -> bool:
    """Return whether a text of digits is another than its number: it has zeros in front, or a
    plus.
    """
    return _DIGITS.fullmatch(text) is not None and _INTEGER.fullmatch(text) is None and text != "-0"


def is_infinite(text: str) -> bool:
    """Return whether a number is written as infinite, such as "-inf"; others become so where they
    are too large.
    """
    return "inf" in text.lower()


def is_kept(text: str) -> bool:
    """Return whether a number can be kept as it is written: an integer in 64 bits, another in a
    float64 that rounds it.

    An integer beyond 64 bits would lose digits, and a number beyond the largest float64 become
    infinite.
    """
    if _DIGITS.fullmatch(text):
        # the length first: Python refuses to read thousands of digits
        return len(text.lstrip("+-").lstrip("0")) <= 19 and -(2**63) <= int(text) < 2**63
    return is_infinite(text) or not math.isinf(float(text))


def short(text: str) -> str:
    """Return a text in quotes for a message, without what is beyond 40 characters."""
    return repr(text) if len(text) <= 40 else f"{text[:30]!r}... of {len(text):,} characters"


def numbered(words: Iterable[str]) -> tuple[list[str], Ints]:
    """Return the different words, in the order in which they first occur, and the number of each,
    int64 ``[n]``.
    """
    number: defaultdict[str, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(number.__getitem__, words), np.int64)
    return list(number), codes


def whole_numbers(words: Collection[str], fault: Fault) -> list[int] | None:
    """Return different words as integers, None where they are names: where one of them is no
    integer.

    ``fault`` takes the place of a word among these. It is called where numbers would become names
    by mistake: for nan, and for one number written in two ways. Data frames write 2 as 2.0 in a
    column with a missing entry.
    """
    if all(map(is_integer, words)):
        return list(map(int, words))
    others = [word for word in words if not is_number(word)]
    # gaps among numbers are no names; a column of gaps alone is one of names
    if len(others) == len(words) or not {word.lower() for word in others} <= _GAPS:
        return None
    written: dict[Decimal | int, str] = {}
    # integers first, so that the fault is said of the other one
    for position, word in sorted(enumerate(words), key=lambda place: not is_integer(place[1])):
        if word.lower() in _GAPS or math.isnan(float(word)):
            raise fault(
                position,
                f"{word} among numbers is a missing entry; leave the row out, or put a letter "
                "before names",
            )
        # 007 is a name of its own, and a number that is not whole too
        if not is_integer(word) and (_DIGITS.fullmatch(word) or not float(word).is_integer()):
            continue
        # exact, for names of many digits; Decimal refuses exponents that a float rounds to zero
        number = Decimal(word) if float(word) else 0
        twin = written.setdefault(number, word)
        if twin != word:
            hint = f"write both as {twin}, or put a letter before names"
            raise fault(position, f"{word} and {twin} are one number but two words; {hint}")
    return None


class WordColumn:
    """A column of words: ``names``, the different ones in the order in which they first occur, and
    ``codes``, the number of each row's, int64 ``[n]``.

    ``fault`` makes the error for a row, of words that say what is wrong.
    """

    def __init__(self, words: Iterable[str], fault: Fault) -> None:
        self.names, self.codes = numbered(words)
        self._fault = fault

    def error(self, number: int, why: str) -> ValueError:
        """Return the ValueError for the first row that has the word number ``at``."""
        return self._fault(int((self.codes == number).argmax()), why)

    def integers(self) -> list[int] | None:
        """Return the different words as ``whole_numbers`` does."""
        return whole_numbers(self.names, self.error)

    def values(self) -> tuple[Array, tuple[str, ...] | None]:
        """Return a column of values, or the numbers of its categories, int64, with their names.

        Values are int64 if all words are integers, bool of True and False, times of dates in ISO
        8601 (int64 seconds since 1970, of UTC where no zone is written; float64 where one is not
        whole), and else float64. Words of digits that are other than their numbers, such as
        ``007``, are categories, but +1 and -1, where all have a sign, are numbers. Raises
        ValueError for a number too large to keep, and for a word beside dates that is none.
        """
        kinds = list(map(kind_of, self.names))
        for number, name in enumerate(self.names):
            if (why := _mistake(name, kinds[number], kinds)) is not None:
                raise self.error(number, f"{short(name)} {why}")
        # "+4" beside "4" is a name; where every number has a sign, it belongs to the number.
        begins = {name[:1] for name in self.names}
        has_signs = "+" in begins and not begins.isdisjoint("123456789")
        if NAME in kinds or len(set(kinds)) > 1 or has_signs:
            return self.codes, tuple(self.names)
        # Different words are converted once, however many rows have them.
        values = values_of(kinds[0] if kinds else NUMBER, self.names)
        if values.dtype == np.float64:
            self._check_rounded(values)
        return values[self.codes], None

    def _check_rounded(self, values: Array) -> None:
        """Raise ValueError for a number that float64 does not have; below 2**53 are all integers."""
        for number in np.flatnonzero(abs(values) >= 2.0**53).tolist():
            name = self.names[number]
            if not is_kept(name):
                raise self.error(number, f"{short(name)} is beyond 64 bits; write it as a decimal")
            if is_integer(name) and int(name) != int(values[number]):
                why = "would be rounded, because others of its column are no integers"
                raise self.error(number, f"{short(name)} {why}; write all as integers")


def _mistake(name: str, kind: str, kinds: Collection[str]) -> str | None:
    """Say what is wrong with a word of a column of words of ``kinds``, whose categories it would
    join by mistake; None where nothing is.
    """
    dates = "2021-03-01 or 2021-03-01T12:00:00Z, or leave the column out"
    if DATE in kinds and kind != DATE:
        return f"is no date, but the column holds dates; write all as {dates}"
    if DATE in kinds or NAME not in kinds:
        return None
    if _OTHER_DATE.fullmatch(name):
        return f"looks like a time; write {dates}"
    if _OTHER_NUMBER.fullmatch(name):
        return "looks like a number; write its digits alone, with a point, or leave the column out"
    if NUMBER in kinds and name.lower() in _GAPS:
        return "looks like a missing entry among numbers; write nan, or leave the column out"
    return None


def kind_of(word: str) -> str:
    """Return what the values of a column are that begins with a word: ``NUMBER``, ``TRUTH``,
    ``DATE`` or ``NAME``.
    """
    if is_number(word) and not _PADDED.fullmatch(word):
        return NUMBER
    if word.lower() in _TRUTH:
        return TRUTH
    if _stamp(word) is not None:
        return DATE
    return NAME


def values_of(kind: str, words: Sequence[str]) -> Any:
    """Return words of one kind as int64, float64 or bool; names as they are."""
    if kind == NAME:
        return words
    if kind == TRUTH:
        return np.array([_TRUTH[word.lower()] for word in words], np.bool_)
    if kind == DATE:
        return seconds_of(np.array([_stamp(word) for word in words], "M8[us]"))
    if all(map(is_integer, words)):
        return np.array(list(map(int, words)), np.int64)
    return np.array(list(map(float, words)), np.float64)


def _stamp(word: str) -> np.datetime64 | None:
    """Return a date, of UTC; None for another word."""
    if not _DATE.fullmatch(word):
        return None
    with suppress(ValueError, OverflowError):
        return in_utc(datetime.fromisoformat(word))
    return None


def as_names(values: Array, where: str, first: int = 0) -> list[Any]:
    """Return names of nodes whose types are known: bytes as text, floats that are whole as
    integers, dates and times of all units as ``datetime`` of UTC, durations as ``timedelta``.

    Raises ValueError, with ``where`` and the row from ``first`` on, for bytes that are no UTF-8,
    for floats so large that they do not tell integers apart, and for times finer than
    microseconds.
    """
    # one moment has one name, whatever the unit or class of its column
    if (dates := as_dates(values, where, first)) is not None:
        return cast("list[Any]", dates.tolist())
    wrong = np.zeros(len(values), np.bool_)
    why = "floats of {} do not tell integers such as {} apart; keep ids as integers or strings"
    if values.dtype.kind == "f":
        wrong = abs(values) >= 2.0 ** (np.finfo(values.dtype).nmant + 1)
    elif values.dtype.kind == "m":
        # There and back: what does not return was finer than microseconds.
        durations = values.astype("m8[us]")
        wrong = (durations.astype(values.dtype) != values) & ~np.isnat(values)
        why = "a duration of {} such as {} is finer than microseconds; round it first"
        values = values if wrong.any() else durations
    if (row := first_true(wrong)) is not None:
        why = why.format(values.dtype, values[row])
        raise ValueError(f"{where}, row {first + row}: {why}")
    names: list[Any] = values.tolist()
    for row, name in enumerate(names):
        if isinstance(name, bytes):
            try:
                names[row] = name.decode()
            except UnicodeDecodeError:
                raise ValueError(
                    f"{where}, row {first + row}: {name!r} is no text in UTF-8; decode it first"
                ) from None
        elif isinstance(name, (float, Decimal)) and name % 1 == 0:
            names[row] = int(name)
    return names
