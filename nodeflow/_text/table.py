"""Tables in text files: numpy reads those of numbers, and a slower reader finds the line of an error; rows of words."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from nodeflow._base.types import Array

_INTEGER = re.compile(r"[+-]?[0-9]+")


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Raise one ValueError that names the file, for any error that a damaged file causes in a reader."""
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
    with reading(path, "a text file of columns"), opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        if comma:
            rows = csv.reader(file, skipinitialspace=True, strict=True)
        else:
            rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
        try:
            for fields in rows:
                stripped = [*map(str.strip, fields)]
                if any(stripped):
                    yield rows.line_num, stripped
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error


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
            with TextIOWrapper(cast(BinaryIO, unpacked), encoding="utf-8-sig") as file:
                number = 1 + len(list(islice(file, self.skip)))
                while lines := list(islice(file, size)):
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
        try:
            return self.load(dtype)
        except (ValueError, EOFError, OSError):
            whole, width = np.dtype(dtype).kind == "i", None
            for line, fields in self.rows():
                width = width or len(fields)
                if len(fields) != width:
                    why = f"expected {width} columns as above, got {len(fields)}"
                    raise ValueError(f"{self.path}, line {line}: {why}") from None
                for field in fields:
                    if not (is_integer(field) if whole else is_number(field)):
                        raise ValueError(f"{self.path}, line {line}: expected {what}, got {field!r}") from None
            with reading(self.path, f"a table of {what}"):
                raise


def is_integer(text: str) -> bool:
    """Return whether ``text`` is written as an integer that fits 64 bits."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def is_number(text: str) -> bool:
    """Return whether ``text`` is written as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python's own separator of thousands, which no data file means
