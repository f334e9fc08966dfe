"""Rows of words in text files: CSV, where quotes may hold a comma, and TSV."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

from nodeflow._text.reading import reading


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
