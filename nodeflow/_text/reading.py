"""Rows of words in text files, CSV and TSV; one error for whatever a damaged file causes in a reader."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
