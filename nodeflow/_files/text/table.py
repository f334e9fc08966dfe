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
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from nodeflow._core.base.dtypes import as_float32
from nodeflow._core.base.files import is_file
from nodeflow._core.base.types import Array
from nodeflow._files.text.titles import places_of_ends, two_kinds
from nodeflow._files.text.words import is_infinite, is_integer, is_number, short

_ROWS = 2**15  # lines read at a time
_UTF8 = "utf-8-sig"
_KEPT = "surrogateescape"
"""Text as ``text_lines`` takes it: bytes that are no UTF-8 become characters that it refuses, with
their line.
"""
DAMAGE = (OSError, EOFError, zlib.error)
"""What comes out of gzip and zlib for a file that is damaged."""
FAILURES = (ValueError, OverflowError, *DAMAGE)
"""What comes out of these and of numpy."""


@contextmanager
def reading(
    path: Path, expected: str, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Raise one ValueError that names the file, for any error of some ``kinds`` that a damaged file
    causes in a reader.

    Raises FileNotFoundError where nothing is at ``path``, OSError where something else than a file
    is.
    """
    if not is_file(path):
        raise FileNotFoundError(f"there is no file {path}; expected {expected}")
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError):
        raise
    except kinds as error:  # damage comes out of zipfile and numpy as a dozen types
        why = str(error)
        # numpy's word for object arrays, and for whatever has no header it knows
        if "pickle" in why:
            why = "it holds pickled objects, which are never loaded, or no numbers at all"
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
    # Bytes that are no UTF-8 are let through here, and refused with their line where lines are
    # counted.
    opened = gzip.open if path.suffix == ".gz" else open
    quoted = ".csv" in path.suffixes or delimiter is not None
    between = _between(delimiter or ("," if quoted else "\t"))
    with (
        reading(path, "a text file of columns", DAMAGE),
        opened(path, "rt", encoding=_UTF8, errors=_KEPT, newline="") as file,
    ):
        # the reader takes one character between columns, and "::" has two
        columns = (line.replace(delimiter or between, between) for line in text_lines(path, file))
        lines = _without_comments(path, columns, between, comments)
        if quoted:
            rows = csv.reader(lines, delimiter=between, skipinitialspace=True, strict=True)
        else:
            lines = _counted(lines)
            rows = csv.reader(lines, delimiter=between, quoting=csv.QUOTE_NONE, strict=True)
        try:
            for fields in rows:
                stripped = [*map(str.strip, fields)]
                if any(stripped):
                    yield rows.line_num, stripped
        except csv.Error as error:
            hint = "a quoted entry may have no end; write the file again, or quotes within as two"
            raise ValueError(f"{path}, line {rows.line_num}: {error}; {hint}") from error


def _between(delimiter: str) -> str:
    """Return the character that stands for a delimiter, which may have several, such as ``::``."""
    return delimiter if len(delimiter) == 1 else "\x1f"


def _without_comments(
    path: Path, lines: Iterable[str], between: str, comments: str | None
) -> Iterator[str]:
    """Yield lines, with a blank one for each comment, so that their numbers stay."""
    begun = False
    for number, line in enumerate(lines, 1):
        stated = bool(comments) and line.startswith(comments or "")
        mark = ""
        if stated:
            mark = comments or ""
        elif not begun and comments in (None, "#"):
            mark = line[: len(line) - len(line.lstrip("#%"))]
        words = line[len(mark) :]
        has_blank = words[:1].isspace()
        is_titles = bool(mark) and not begun
        is_titles = is_titles and places_of_ends(words.strip().split(between)) is not None
        if mark and not is_titles and between in words.strip() and has_blank != stated:
            # a name such as #tag, or titles after a mark, would be lost
            hint = "remove the mark if it is a row"
            if stated:
                hint += ", or pass comments=None, or put a blank after a comment"
            raise ValueError(f"{path}, line {number} begins with {mark!r}, but has columns; {hint}")
        row = line
        if is_titles:
            row = words.lstrip()
        elif mark and (has_blank or stated):
            row = "\n"
        begun = begun or bool(row.strip())
        yield row


def _counted(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, with tabs for white space where the first row is one integer: the number of the
    others.
    """
    first = ""
    for line in lines:
        yield "\t".join(line.split()) if is_integer(first) else line
        first = first or line.strip()


def text_lines(path: Path, lines: Iterable[str], first: int = 1) -> Iterator[str]:
    """Yield the lines of a file opened as ``_UTF8``; raises ValueError with the number of the first
    that is no text.

    That has a NUL byte, bytes that are no UTF-8, or a byte order mark, which files that were joined
    have in between. The first may not say, as in KONECT, that edges join nodes of two kinds:
    ``% bip``.
    """
    for number, line in enumerate(lines, first):
        if number == 1 and line.startswith("%") and line.lstrip("%").split()[:1] == ["bip"]:
            why = "says 'bip', that edges join nodes of two kinds"
            raise two_kinds(f"{path}, line 1", why, "take this line out")
        if "\0" in line or not line.isascii():
            wrong = ""
            if "\0" in line:
                wrong = "a NUL byte"
            elif "\ufeff" in line:
                wrong = "a byte order mark"
            elif any("\udc80" <= character <= "\udcff" for character in line):
                wrong = "bytes that are no UTF-8"
            if wrong:
                raise ValueError(
                    f"{path}, line {number} has {wrong}; it must be text in UTF-8: write or copy "
                    "it again"
                )
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
        for number, lines in self.blocks(256):
            yield from self.split(number, lines)

    def blocks(self, size: int) -> Iterator[tuple[int, list[str]]]:
        """Yield pieces of ``size`` lines: ``(line number of the first, lines)``."""
        opened = gzip.open if self.path.suffix == ".gz" else open
        with (
            reading(self.path, "a text file", DAMAGE),
            opened(self.path, "rt", encoding=_UTF8, errors=_KEPT) as file,
        ):
            number = 1
            # the lines to skip are checked too, as a block of their own
            while lines := list(islice(file, size if number > self.skip else self.skip)):
                text = "".join(lines)
                # line by line only where something may be wrong: it costs a third of the time
                if number == 1 or "\0" in text or not text.isascii():
                    lines = list(text_lines(self.path, lines, number))
                if number > self.skip:
                    yield number, self._separated(lines)
                number += len(lines)

    def _separated(self, lines: list[str]) -> list[str]:
        """Return lines with a single character between columns, which is all that numpy takes."""
        if self.delimiter is None or len(self.delimiter) == 1:
            return lines
        between = _between(self.delimiter)
        return [line.replace(self.delimiter, between) for line in lines]

    def split(self, number: int, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(line number, fields)`` of the rows among some lines, given the number of the
        first line.
        """
        between = self.delimiter and _between(self.delimiter)
        for line_number, line in enumerate(lines, start=number):
            text = line if self.comments is None else line.split(self.comments, 1)[0]
            if text.strip():
                yield line_number, [*map(str.strip, text.strip("\r\n").split(between))]

    def load(self, dtype: Any, lines: Iterable[str], use: Sequence[int] | None = None) -> Array:
        """Return lines, as ``blocks`` yields them, as an array; the columns ``use`` only, if given.
        Raises ValueError as numpy words it.

        A plain ``dtype`` gives a matrix ``[rows, columns]``, a structured one ``[rows]``.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data.*")
            # older versions of numpy read "1.5" as the integer 1 and warn
            warnings.filterwarnings("error", category=DeprecationWarning)
            try:
                return np.loadtxt(
                    lines,
                    dtype=dtype,
                    comments=self.comments,
                    delimiter=self.delimiter and _between(self.delimiter),
                    usecols=use,
                    ndmin=2 if np.dtype(dtype).names is None else 1,
                )
            except DeprecationWarning as warning:
                raise ValueError(str(warning)) from warning

    def numbers(self, dtype: Any, words: str) -> Array:
        """Return a table of ``what``, ``[rows, columns]``; raises ValueError with the line that is
        not one.
        """
        # float32 has all integers below
        exact = 2.0**24 if dtype is np.float32 else np.inf
        try:
            pieces = [self.load(dtype, lines) for _, lines in self.blocks(_ROWS)]
            values = np.concatenate(pieces or [np.zeros((0, 1), dtype)])
            if values.dtype.kind == "f" and (np.abs(values) >= exact).any():
                raise ValueError("it holds numbers that are infinite, too large, or rounded")
            return values
        except FAILURES:
            # numpy refuses a line of blanks between rows of commas, too
            rows: list[Array] = []
            for line, fields in self.rows():
                where = f"{self.path}, line {line}"
                if rows and len(fields) != len(rows[0]):
                    expected = f"{len(rows[0])} columns as above, got {len(fields)}"
                    raise ValueError(f"{where}: expected {expected}") from None
                rows.append(_numbers(fields, dtype, words, where))
            return np.stack(rows)


def _numbers(fields: list[str], dtype: Any, words: str, where: str) -> Array:
    """Return the numbers of one row; raises ValueError for the first that is none of ``dtype``."""
    is_whole = np.dtype(dtype).kind == "i"
    for field in fields:
        if not is_number(field) or (is_whole and not is_integer(field)):
            raise ValueError(f"{where}: expected {words}, got {short(field)}")
        is_beyond = not is_whole and abs(float(field)) > float(np.finfo(dtype).max)
        if is_beyond and not is_infinite(field):
            raise ValueError(f"{where}: {short(field)} is beyond the largest {np.dtype(dtype)}")
    if dtype is np.float32:
        return as_float32(np.array(fields, np.float64), f"{where},")
    return np.array(fields, dtype)
