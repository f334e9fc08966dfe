"""Tables in text files: numpy reads those of numbers, and a slower reader finds the line of an
error; rows of words.
"""

from __future__ import annotations

import csv
import gzip
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

from nodeflow._base.dtypes import as_float32
from nodeflow._base.files import is_file
from nodeflow._base.types import Array
from nodeflow._text.titles import places_of_ends, two_kinds
from nodeflow._text.words import is_infinite, is_integer, is_number, short

_UTF8 = "utf-8-sig"
_KEPT = "surrogateescape"
"""Text as ``text_lines`` takes it: bytes that are no UTF-8 become characters that it refuses, with
their line.
"""
FAILURES = (ValueError, OverflowError, EOFError, OSError, zlib.error)
"""What comes out of numpy, gzip and zlib for a file that is damaged."""


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Raise one ValueError that names the file, for any error that a damaged file causes in a
    reader.

    Raises FileNotFoundError where nothing is at ``path``, OSError where something else than a file
    is.
    """
    if not is_file(path):
        raise FileNotFoundError(f"there is no file {path}; expected {expected}")
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError):
        raise
    except Exception as error:  # damage comes out of zipfile, zlib, gzip and numpy as a dozen types
        # numpy's word for object arrays, and for whatever has no header it knows
        pickled = "pickle" in str(error)
        why = (
            "it holds pickled objects, which are never loaded, or no numbers at all"
            if pickled
            else f"{error}"
        )
        raise ValueError(
            f"{path} must be {expected}, but it cannot be read; it may be cut short or of another "
            f"format ({why}). Write or copy it again"
        ) from error


def rows_of_words(
    path: Path, delimiter: str | None = None, comments: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(line number from 1, entries)`` of each row that has any.

    ``delimiter`` None is a comma in ``.csv``, where quotes count, else a tab, or any white space in
    a file that begins with the number of its rows. Lines that begin with ``comments`` are left out,
    and, with "#" or None, those before the first row that begin with # or % and a blank; "": none.
    One before the first row that names the ends of edges is the row of titles.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    quoted = ".csv" in path.suffixes or delimiter is not None
    between = _between(delimiter or ("," if quoted else "\t"))
    with (
        reading(path, "a text file of columns"),
        opened(path, "rt", encoding=_UTF8, errors=_KEPT, newline="") as file,
    ):
        columns = (line.replace(delimiter or between, between) for line in text_lines(file))
        lines = _without_comments(columns, between, comments)
        if quoted:
            rows = csv.reader(lines, delimiter=between, skipinitialspace=True, strict=True)
        else:
            rows = csv.reader(
                _counted(lines), delimiter=between, quoting=csv.QUOTE_NONE, strict=True
            )
        try:
            for fields in rows:
                stripped = [*map(str.strip, fields)]
                if any(stripped):
                    yield rows.line_num, stripped
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error


def _between(delimiter: str) -> str:
    """Return the character that stands for a delimiter, which may have several, such as ``::``."""
    return delimiter if len(delimiter) == 1 else "\x1f"


def _without_comments(lines: Iterable[str], between: str, comments: str | None) -> Iterator[str]:
    """Yield lines, with a blank one for each comment, so that their numbers stay."""
    begun = False
    for number, line in enumerate(lines, 1):
        stated = bool(comments) and line.startswith(comments or "")
        mark = comments or "" if stated else ""
        if not stated and not begun and comments in (None, "#"):
            mark = line[: len(line) - len(line.lstrip("#%"))]
        words = line[len(mark) :]
        has_blank = words[:1].isspace()
        if mark and not begun and places_of_ends(words.strip().split(between)) is not None:
            line = words.lstrip()
        elif mark and between in words.strip() and has_blank != stated:
            # a name such as #tag, or titles after a mark, would be lost
            hint = (
                "remove the mark if it is a row"
                + ", or pass comments=None, or put a blank after a comment" * stated
            )
            raise ValueError(f"line {number} begins with {mark!r}, but has columns; {hint}")
        elif mark and (has_blank or stated):
            line = "\n"
        begun = begun or bool(line.strip())
        yield line


def _counted(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, with tabs for white space where the first row is one integer: the number of the
    others.
    """
    first = ""
    for line in lines:
        yield "\t".join(line.split()) if is_integer(first) else line
        first = first or line.strip()


def text_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a file opened as ``_UTF8``; raises ValueError with the number of the first
    that is no text.

    That has a NUL byte, bytes that are no UTF-8, or a byte order mark, which files that were joined
    have in between. The first may not say, as in KONECT, that edges join nodes of two kinds:
    ``% bip``.
    """
    for number, line in enumerate(lines, 1):
        if number == 1 and line.startswith("%") and line.lstrip("%").split()[:1] == ["bip"]:
            raise two_kinds(
                "line 1", "says 'bip', that edges join nodes of two kinds", "take this line out"
            )
        if "\0" in line or not line.isascii():
            wrong = (
                "a NUL byte" if "\0" in line else "a byte order mark" if "\ufeff" in line else ""
            )
            if wrong or any("\udc80" <= character <= "\udcff" for character in line):
                raise ValueError(f"line {number} has {wrong or 'bytes that are no UTF-8'}")
        yield line


@dataclass(frozen=True, slots=True)
class Table:
    """A text file of columns: one row per line, blank lines and comments left out.

    ``delimiter`` None means any white space, and it may have several characters; ``comments`` None
    means there are none; ``skip`` lines come first that are not part of the table.
    """

    path: Path
    delimiter: str | None = ","
    comments: str | None = None
    skip: int = 0

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(line number from 1, fields)`` of each row. Slow: for the first rows, and to
        explain errors.
        """
        for number, lines, _ in self.blocks(256):
            yield from self.split(number, lines)

    def blocks(self, size: int) -> Iterator[tuple[int, list[str], int]]:
        """Yield pieces of ``size`` lines:
        ``(line number of the first, lines, bytes of the file read so far)``.
        """
        with reading(self.path, "a text file"), self.path.open("rb") as raw:
            unpacked = gzip.GzipFile(fileobj=raw) if self.path.suffix == ".gz" else raw
            with TextIOWrapper(cast(BinaryIO, unpacked), _UTF8, _KEPT) as file:
                checked = text_lines(file)
                number = 1 + len(list(islice(checked, self.skip)))
                while lines := list(islice(checked, size)):
                    if self.delimiter is not None and len(self.delimiter) > 1:
                        lines = [
                            line.replace(self.delimiter, _between(self.delimiter)) for line in lines
                        ]
                    yield number, lines, raw.tell()
                    number += len(lines)

    def split(self, number: int, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(line number, fields)`` of the rows among some lines, given the number of the
        first line.
        """
        for at, line in enumerate(lines, start=number):
            text = line if self.comments is None else line.split(self.comments, 1)[0]
            if text.strip():
                yield (
                    at,
                    [
                        field.strip()
                        for field in text.strip("\r\n").split(
                            self.delimiter and _between(self.delimiter)
                        )
                    ],
                )

    def load(
        self, dtype: Any, use: Sequence[int] | None = None, lines: Iterable[str] | None = None
    ) -> Array:
        """Return the table as an array; the columns ``use`` only, if given. Raises ValueError as
        numpy words it.

        A plain ``dtype`` gives a matrix ``[rows, columns]``, a structured one ``[rows]``.
        ``lines``, as ``self.blocks`` gives them, stand in for the file.
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
                    delimiter=self.delimiter and _between(self.delimiter),
                    skiprows=self.skip if lines is None else 0,
                    usecols=use,
                    ndmin=1 if structured else 2,
                    encoding="utf-8-sig",
                )
            except DeprecationWarning as warning:
                raise ValueError(str(warning)) from warning

    def numbers(self, dtype: Any, what: str) -> Array:
        """Return a table of ``what``, ``[rows, columns]``; raises ValueError with the line that is
        not one.
        """
        values: Array | None = None
        try:
            values = self.load(dtype)
            if (
                values.dtype.kind == "f"
                and (np.abs(values) >= (2.0**24 if dtype is np.float32 else np.inf)).any()
            ):
                raise ValueError("it holds numbers that are infinite, too large, or rounded")
            return values
        except FAILURES:
            whole = np.dtype(dtype).kind == "i"
            width = None
            for line, fields in self.rows():
                width = width or len(fields)
                if len(fields) != width:
                    why = f"expected {width} columns as above, got {len(fields)}"
                    raise ValueError(f"{self.path}, line {line}: {why}") from None
                for field in fields:
                    if not (is_integer(field) if whole else is_number(field)):
                        raise ValueError(
                            f"{self.path}, line {line}: expected {what}, got {short(field)}"
                        ) from None
                    if (
                        not whole
                        and abs(float(field)) > float(np.finfo(dtype).max)
                        and not is_infinite(field)
                    ):
                        why = f"{short(field)} is beyond the largest {np.dtype(dtype)}"
                        raise ValueError(f"{self.path}, line {line}: {why}") from None
                if dtype is np.float32:
                    as_float32(np.array(fields, np.float64), f"{self.path}, line {line},")
            if values is not None:  # infinite as written, or large but exact
                return values
            # numpy refuses a line of blanks between rows of commas
            with reading(self.path, f"a table of {what}"):
                return self.load(
                    dtype, lines=((self.delimiter or " ").join(fields) for _, fields in self.rows())
                )
