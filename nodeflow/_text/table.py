"""Tables in text files: numpy reads those of numbers, and a slower reader finds the line of an error; rows of words."""

from __future__ import annotations

import csv
import gzip
import math
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from nodeflow._base.files import is_file
from nodeflow._base.types import Array

_UTF8, _KEPT = "utf-8-sig", "surrogateescape"
"""Text as ``text_lines`` takes it: bytes that are no UTF-8 become characters that it refuses, with their line."""
FAILURES = (ValueError, OverflowError, EOFError, OSError, zlib.error)
"""What comes out of numpy, gzip and zlib for a file that is damaged."""
_INTEGER = re.compile(r"[+-]?[0-9]+")


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Raise one ValueError that names the file, for any error that a damaged file causes in a reader.

    Raises FileNotFoundError where nothing is at ``path``, OSError where something else than a file is.
    """
    if not is_file(path):
        raise FileNotFoundError(f"there is no file {path}; expected {expected}")
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError):
        raise
    except Exception as error:  # damage comes out of zipfile, zlib, gzip and numpy as a dozen types
        pickled = "pickle" in str(error)  # numpy's word for object arrays, and for whatever has no header it knows
        why = "it holds pickled objects, which are never loaded, or no numbers at all" if pickled else f"{error}"
        raise ValueError(
            f"{path} must be {expected}, but it cannot be read; it may be cut short or of another format ({why}). "
            "Write or copy it again"
        ) from error


def rows_of_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(line number from 1, entries)`` of each row that has any."""
    packed = path.suffix == ".gz"
    comma = ".csv" in path.suffixes
    opened = gzip.open if packed else open
    with reading(path, "a text file of columns"), opened(path, "rt", encoding=_UTF8, errors=_KEPT, newline="") as file:
        if comma:
            rows = csv.reader(text_lines(file), skipinitialspace=True, strict=True)
        else:
            rows = csv.reader(text_lines(file), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
        try:
            for fields in rows:
                stripped = [*map(str.strip, fields)]
                if any(stripped):
                    yield rows.line_num, stripped
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error


def text_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a file opened as ``_UTF8``; raises ValueError with the number of the first that is no text.

    That has a NUL byte, bytes that are no UTF-8, or a byte order mark, which files that were joined have in between.
    """
    for number, line in enumerate(lines, 1):
        if "\0" in line or not line.isascii():
            wrong = "a NUL byte" if "\0" in line else "a byte order mark" if "\ufeff" in line else ""
            if wrong or any("\udc80" <= character <= "\udcff" for character in line):
                raise ValueError(f"line {number} has {wrong or 'bytes that are no UTF-8'}")
        yield line


@dataclass(frozen=True, slots=True)
class Table:
    """A text file of columns: one row per line, blank lines and comments left out.

    ``delimiter`` None means any white space; ``comments`` None means there are none; ``skip`` lines come first that
    are not part of the table.
    """

    path: Path
    delimiter: str | None = ","
    comments: str | None = None
    skip: int = 0

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(line number from 1, fields)`` of each row. Slow: for the first rows, and to explain errors."""
        for number, lines, _ in self.blocks(256):
            yield from self.split(number, lines)

    def blocks(self, size: int) -> Iterator[tuple[int, list[str], int]]:
        """Yield pieces of ``size`` lines: ``(line number of the first, lines, bytes of the file read so far)``."""
        with reading(self.path, "a text file"), self.path.open("rb") as raw:
            unpacked = gzip.GzipFile(fileobj=raw) if self.path.suffix == ".gz" else raw
            with TextIOWrapper(cast(BinaryIO, unpacked), _UTF8, _KEPT) as file:
                checked = text_lines(file)
                number = 1 + len(list(islice(checked, self.skip)))
                while lines := list(islice(checked, size)):
                    yield number, lines, raw.tell()
                    number += len(lines)

    def split(self, number: int, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(line number, fields)`` of the rows among some lines, given the number of the first line."""
        for at, line in enumerate(lines, start=number):
            text = line if self.comments is None else line.split(self.comments, 1)[0]
            if text.strip():
                yield at, [field.strip() for field in text.strip("\r\n").split(self.delimiter)]

    def load(self, dtype: Any, use: Sequence[int] | None = None, lines: Iterable[str] | None = None) -> Array:
        """Return the table as an array; the columns ``use`` only, if given. Raises ValueError as numpy words it.

        A plain ``dtype`` gives a matrix ``[rows, columns]``, a structured one ``[rows]``. ``lines``, as ``self.blocks``
        gives them, stand in for the file.
        """
        structured = np.dtype(dtype).names is not None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data.*")
            # older versions of numpy read "1.5" as the integer 1 and warn
            warnings.filterwarnings("error", category=DeprecationWarning)
            try:
                return np.loadtxt(
                    str(self.path) if lines is None else lines,
                    dtype=dtype,
                    comments=self.comments,
                    delimiter=self.delimiter,
                    skiprows=self.skip if lines is None else 0,
                    usecols=use,
                    ndmin=1 if structured else 2,
                    encoding="utf-8-sig",
                )
            except DeprecationWarning as warning:
                raise ValueError(str(warning)) from warning

    def numbers(self, dtype: Any, what: str) -> Array:
        """Return a table of ``what``, ``[rows, columns]``; raises ValueError with the line that is not one."""
        values: Array | None = None
        try:
            values = self.load(dtype)
            if values.dtype.kind == "f" and np.isinf(values).any():
                raise ValueError("it holds numbers that are infinite, or too large")
            return values
        except FAILURES:
            whole, width = np.dtype(dtype).kind == "i", None
            for line, fields in self.rows():
                width = width or len(fields)
                if len(fields) != width:
                    why = f"expected {width} columns as above, got {len(fields)}"
                    raise ValueError(f"{self.path}, line {line}: {why}") from None
                for field in fields:
                    if not (is_integer(field) if whole else is_number(field)):
                        raise ValueError(f"{self.path}, line {line}: expected {what}, got {short(field)}") from None
                    if not whole and abs(float(field)) > float(np.finfo(dtype).max) and not is_infinite(field):
                        why = f"{short(field)} is beyond the largest {np.dtype(dtype)}"
                        raise ValueError(f"{self.path}, line {line}: {why}") from None
            if values is not None:  # infinite as written
                return values
            with reading(self.path, f"a table of {what}"):  # numpy refuses a line of blanks between rows of commas
                return self.load(dtype, lines=((self.delimiter or " ").join(fields) for _, fields in self.rows()))


def is_integer(text: str) -> bool:
    """Return whether ``text`` is written as an integer that fits 64 bits."""
    # the length first: Python refuses to read thousands of digits
    readable = _INTEGER.fullmatch(text) is not None and len(text.lstrip("+-").lstrip("0")) <= 19
    return readable and -(2**63) <= int(text) < 2**63


def is_number(text: str) -> bool:
    """Return whether ``text`` is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python's own separator of thousands, which no data file means


def is_infinite(text: str) -> bool:
    """Return whether a number is written as infinite, such as "-inf"; others become so where they are too large."""
    return "inf" in text.lower()


def is_kept(text: str) -> bool:
    """Return whether a number can be kept as it is written: an integer in 64 bits, another in a float64 that rounds it.

    An integer beyond 64 bits would lose digits, and a number beyond the largest float64 become infinite.
    """
    return is_integer(text) if _INTEGER.fullmatch(text) else is_infinite(text) or not math.isinf(float(text))


def short(text: str) -> str:
    """Return a text in quotes for a message, without what is beyond 40 characters."""
    return repr(text) if len(text) <= 40 else f"{text[:30]!r}... of {len(text):,} characters"
