"""Text files of edges, read piece by piece: numbers, or names of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nodeflow._base.checks import LARGEST, Ints
from nodeflow._base.types import Array
from nodeflow._text.edges import checked_rows, column_names, layout
from nodeflow._text.reading import rows_of_words
from nodeflow._text.table import Table, is_integer, is_number

_ROWS = 2**15  # rows read at a time
_FAILURES = (ValueError, OverflowError)


class Piece(NamedTuple):
    """Some edges of a file, in its order.

    Args:
        src, dst: int64 ids, or names of nodes.
        columns: the other columns by name.
        read: bytes of the file that have been read with this piece.
    """

    src: Ints | list[str]
    dst: Ints | list[str]
    columns: dict[str, Array]
    read: int


class TextOptions(NamedTuple):
    """How text is read; see ``build_graph``."""

    delimiter: str | None = None
    columns: Sequence[str] | None = None
    header: bool | None = None
    comments: str | None = "#"


def numbered_text(path: Path, options: TextOptions, upper: int | None) -> Iterator[Piece]:
    """Yield the edges of a text file whose nodes are integers, below ``upper`` where that is known.

    Columns are int64 while all entries are written as integers, float64 from the first piece on where one is not.
    Raises ValueError with the first wrong line.
    """
    table = Table(path, options.delimiter, options.comments or None)
    table, names, first = layout(table, options.columns, options.header)
    if first is None:
        return
    kept = {name: at for at, name in enumerate(names) if name != "_"}
    use = list(kept.values()) if len(kept) < len(names) else None
    whole = {name: name in ("src", "dst") or (at < len(first) and is_integer(first[at])) for name, at in kept.items()}

    def dtype() -> list[tuple[str, type]]:  # positions serve as field names, because a title may be anything
        return [(str(at), np.int64 if whole[name] else np.float64) for name, at in kept.items()]

    for number, lines, read in table.blocks(_ROWS):
        try:
            loaded = table.load(dtype(), use, lines=lines)
        except _FAILURES:
            rows = []
            for _, fields in checked_rows(table, names, table.split(number, lines), upper):
                rows.append(fields)
                for name, at in kept.items():
                    whole[name] = whole[name] and is_integer(fields[at])
            loaded = table.load(dtype(), use, rows=rows)
        columns = {name: np.ascontiguousarray(loaded[str(at)]) for name, at in kept.items()}
        src, dst = columns.pop("src"), columns.pop("dst")
        if len(src):
            top = LARGEST if upper is None else upper
            if min(src.min(), dst.min()) < 0 or max(src.max(), dst.max()) >= top:
                for _ in checked_rows(table, names, table.split(number, lines), upper):  # raises for the first one
                    pass
            yield Piece(src, dst, columns, read)


def named_text(path: Path, options: TextOptions) -> Iterator[Piece]:
    """Yield the edges of a CSV or TSV file whose nodes have names.

    Raises ValueError with the first wrong line.
    """
    rows = rows_of_words(path)
    names: tuple[str, ...] | None = None if options.columns is None else column_names(options.columns)
    begin = next(((line, fields) for line, fields in rows), None)
    if begin is None:
        return
    titled = {"src", "dst"} <= set(begin[1]) if options.header is None else options.header
    if names is None and titled:
        titles = begin[1]
        names = tuple(titles if {"src", "dst"} <= set(titles) else ["src", "dst", *titles[2:]])
        if len(titles) < 2 or len({*names}) < len(names):
            raise ValueError(
                f"{path}, line {begin[0]}: the header must name two or more columns, each once, got {titles}"
            )
    elif names is None:
        names = ("src", "dst", *(f"c{at}" for at in range(2, len(begin[1]))))
    held = [] if titled else [begin]
    while held := held + list(islice(rows, _ROWS)):
        for line, fields in held:
            _check_words(path, line, fields, names)
        table = dict(zip(names, zip(*(fields for _, fields in held), strict=True), strict=True))
        src, dst = list(table.pop("src")), list(table.pop("dst"))
        columns = {name: _numbers(words) for name, words in table.items() if name != "_"}
        yield Piece(src, dst, columns, 0)
        held = []


def _check_words(path: Path, line: int, fields: list[str], names: tuple[str, ...]) -> None:
    if len(fields) != len(names):
        wanted = f"{len(names)} columns ({', '.join(names)})"
        raise ValueError(f"{path}, line {line}: expected {wanted}, got {len(fields)}: {fields}")
    for name, field in zip(names, fields, strict=True):
        if name in ("src", "dst") and not field:
            raise ValueError(f"{path}, line {line}: the name of {name} is empty")
        if name not in ("src", "dst", "_") and not is_number(field):
            hint = "skip it by naming it '_'"
            raise ValueError(f"{path}, line {line}: column {name!r} must hold numbers, got {field!r}; {hint}")


def _numbers(words: Sequence[str]) -> Array:
    if all(map(is_integer, words)):
        return np.array([int(word) for word in words], np.int64)
    return np.array([float(word) for word in words], np.float64)
