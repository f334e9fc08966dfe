"""Tables of words in text files, CSV and TSV, and the numbers that their columns become."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._text.reading import rows_of_words

_PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2, "0": 0, "1": 1, "2": 2}
_CHUNK = 256  # few enough that the garbage collector does not look at them twice


@dataclass(frozen=True, slots=True)
class Words:
    """The columns of a text file, by title, as words; ``skip`` rows of the file come before the first of them."""

    path: Path
    columns: dict[str, tuple[str, ...]]
    skip: int = 1

    def error(self, row: int, words: str) -> ValueError:
        """Return the ValueError for a row of the columns, which names its line."""
        line = next(islice(rows_of_words(self.path), self.skip + row, None))[0]
        return ValueError(f"{self.path}, line {line}: {words}")


def read_words(
    path: Path, titles: Sequence[str] | None = None, *, optional: Collection[str] = (), skip: int = 1
) -> Words:
    """Read a text file: tabs part the columns of ``.tsv`` and ``.txt``, commas those of ``.csv``, where "" may quote.

    Blanks around an entry, rows without entries, and columns whose title begins with ``_`` are left out.

    Args:
        path: the file, UTF-8; one whose name ends in ``.gz`` is unpacked.
        titles: of the columns; None: the first row.
        optional: titles of the columns that may have empty entries.
        skip: number of rows before the first that belongs to the columns, the row of titles among them.

    Raises ValueError, with the line, for a row of another width than the titles, for an empty entry, and for titles
    that are empty or occur twice.
    """
    rows = rows_of_words(path)
    head = list(islice(rows, skip))
    if titles is None:
        if not head:
            raise ValueError(f"{path} is empty; its first line must name its columns")
        line, titles = head[0]
        for title in titles:
            if not title or (titles.count(title) > 1 and title[0] != "_"):
                raise ValueError(
                    f"{path}, line {line}: every column needs a title of its own, got {titles}; a title that begins "
                    "with _ leaves its column out"
                )
    pieces: list[list[tuple[str, ...]]] = [[] for _ in titles]  # tuples of strings cost the garbage collector nothing
    while chunk := list(islice(rows, _CHUNK)):
        if {len(fields) for _, fields in chunk} != {len(titles)}:
            line, fields = next(row for row in chunk if len(row[1]) != len(titles))
            wanted = f"{len(titles)} columns ({', '.join(titles)})"
            raise ValueError(f"{path}, line {line}: expected {wanted}, got {len(fields)}: {fields}")
        for done, piece in zip(pieces, zip(*(fields for _, fields in chunk), strict=True), strict=True):
            done.append(piece)
    columns = {title: tuple(chain.from_iterable(pieces[at])) for at, title in enumerate(titles) if title[:1] != "_"}
    table = Words(path, columns, skip)
    for title, column in table.columns.items():
        if title not in optional and "" in column:
            raise table.error(column.index(""), f"the entry of column {title!r} is empty")
    return table


def first_row(path: Path) -> list[str]:
    """Return the entries of the first row of a text file, none if it is empty."""
    return next((fields for _, fields in rows_of_words(path)), [])


def numbered(words: Iterable[str]) -> tuple[list[str], Ints]:
    """Return the different words, in the order in which they first occur, and the number of each, int64 ``[n]``."""
    number: defaultdict[str, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(number.__getitem__, words), np.int64)
    return list(number), codes


def typed(words: Sequence[str]) -> tuple[Array, tuple[str, ...] | None]:
    """Return a column as int64 or float64 numbers, or as the numbers of its categories, with their names."""
    letters = "".join(words)
    if not letters.strip("+-0123456789"):
        with suppress(ValueError, OverflowError):
            return np.fromiter(map(int, words), np.int64, len(words)), None
    if "_" not in letters:  # Python's own separator of thousands, which no data file means
        with suppress(ValueError):
            return np.fromiter(map(float, words), np.float64, len(words)), None
    names, codes = numbered(words)
    return codes, tuple(names)


def parts(table: Words, title: str = "split") -> NDArray[np.int8]:
    """Return a column of train, val, test (or 0, 1, 2) as int8 0, 1, 2, and -1 for an empty entry."""
    names, codes = numbered(table.columns[title])
    for at, name in enumerate(names):
        if name and name.lower() not in _PARTS:
            row = int((codes == at).argmax())
            raise table.error(row, f"column {title!r} must hold train, val or test (or 0, 1, 2), got {name!r}")
    return np.array([_PARTS.get(name.lower(), -1) for name in names], np.int8)[codes]
