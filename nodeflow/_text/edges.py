"""Lists of edges as text: which column is which, columns in pieces, and the first wrong row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nodeflow._base.checks import LARGEST, describe
from nodeflow._base.types import Array
from nodeflow._text.table import FAILURES, Table
from nodeflow._text.titles import ENDS, titled_columns, two_kinds
from nodeflow._text.words import (
    NAME,
    NUMBER,
    is_code,
    is_integer,
    is_kept,
    is_number,
    kind_of,
    short,
    values_of,
)


class TextOptions(NamedTuple):
    """Options of reading edges from text; see ``build_graph``."""

    delimiter: str | None = None
    columns: Sequence[str] | None = None
    header: bool | None = None
    comments: str | None = "#"


def layout(
    table: Table, columns: Sequence[str] | None, header: bool | None
) -> tuple[Table, tuple[str, ...], list[str] | None]:
    """Return the table with delimiter and header settled, the names of its columns and its first
    row, None without.

    ``header`` None takes the first row for one if neither of its first two entries is a number.
    """
    begin = ""
    # whole lines: a character that occurs in no text
    for line, fields in replace(table, delimiter="\0").rows():
        begin = fields[0]
        # KONECT's mark of comments, which are at the top
        if table.comments != "#" or not begin.startswith("%"):
            break
        table = replace(table, skip=line)
    if table.delimiter is None:
        table = replace(
            table, delimiter=next((mark for mark in (",", "::") if mark in begin), None)
        )
    titles: list[str] | None = None
    first_two = next((fields[:2] for _, fields in table.rows()), [])
    if header is None:
        header = len(first_two) == 2 and not any(map(is_number, first_two))
    if header:
        line, titles = next(table.rows(), (0, None))
        table = replace(table, skip=line)
        if len(first_two) == 2 and all(map(is_number, first_two)):
            raise ValueError(
                f"{table.path}, line {line}: header=True, but {titles} is an edge; leave header out"
            )
    first = next((fields for _, fields in table.rows()), None)
    if columns is not None:
        names = column_names(columns)
    elif titles is not None:
        titles = [title.strip("\"'") for title in titles]
        names = titled_columns(titles, f"{table.path}, line {table.skip}: the header")
    else:
        names = untitled_columns(first or (), table.path, table.delimiter)
    return table, names, first


def untitled_columns(first: Sequence[str], path: Path, delimiter: str | None) -> tuple[str, ...]:
    """Return the names of the columns of a file without titles, given its first row.

    Raises ValueError for ratings as MovieLens writes them: u.data, and rows of three or more
    columns with ``::``.
    """
    if len(first) > 2 and (delimiter == "::" or path.name.removesuffix(".gz") == "u.data"):
        why = "reads like ratings of MovieLens, by users of items"
        raise two_kinds(f"{path}", why, "pass columns=('src', 'dst', 'rating', 'time')")
    return ("src", "dst", *(f"c{at}" for at in range(2, len(first))))


def column_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all columns of a file, "_" for those to skip; raises TypeError or
    ValueError.
    """
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            "columns must be a sequence of names, such as ('src', 'dst', 'time'), got "
            f"{describe(columns)}"
        )
    named = [name for name in columns if name != "_"]
    if len(set(named)) < len(named) or not {"src", "dst"} <= set(named):
        raise ValueError(
            f"columns must hold 'src', 'dst' and further names, each once, got {tuple(columns)}"
        )
    return tuple(columns)


class EdgeTable:
    """A table of edges in numbers, as ``layout`` returns it, of which the columns called "_" are
    left out.

    Ids of nodes are below ``upper``, where that is known. Further columns are of the kind of their
    first entry: numbers, True and False, or dates. Numbers are int64 while all entries are written
    as integers, float64 from the first piece on where one is not.
    """

    def __init__(
        self, table: Table, names: tuple[str, ...], first: list[str], upper: int | None
    ) -> None:
        self._table = table
        self._names = names
        self._upper = upper
        self._kept = {name: at for at, name in enumerate(names) if name != "_"}
        self._kinds = kinds_of(names, first)
        # without columns to skip, numpy itself checks that all rows have the same number of columns
        self._use = list(self._kept.values()) if len(self._kept) < len(names) else None
        self._whole = {
            name: name in ENDS or (at < len(first) and is_integer(first[at]))
            for name, at in self._kept.items()
        }

    def pieces(self, size: int = 2**15) -> Iterator[tuple[dict[str, Array], int]]:
        """Yield the columns of ``size`` lines at a time, and the bytes read so far; ValueError with
        the wrong line.
        """
        only_numbers = {*self._kinds.values()} <= {NUMBER}
        for number, lines, read in self._table.blocks(size):
            try:
                if not only_numbers or _may_hold_codes(lines, self._table.delimiter):
                    raise ValueError("numpy would not keep what is written")
                columns = self._load(lines)
            except FAILURES:
                # usually there is a wrong row: this raises with the first one
                rows = self._table.split(number, lines)
                columns = self._of_words(
                    checked_rows(self._table.path, self._names, rows, self._kinds, self._upper)
                )
            if len(columns["src"]):
                yield columns, read

    def _load(self, lines: Iterable[str]) -> dict[str, Array]:
        """Return the columns of lines that hold numbers alone, as numpy reads them.

        Raises ``FAILURES``, also for wrong ids and for numbers that may not be as they are written.
        """
        # positions serve as field names, because a title may be anything
        dtype = [
            (str(at), np.int64 if self._whole[name] else np.float64)
            for name, at in self._kept.items()
        ]
        loaded = self._table.load(dtype, self._use, lines)
        columns = {name: np.ascontiguousarray(loaded[str(at)]) for name, at in self._kept.items()}
        for end in ENDS:
            ids = columns[end]
            upper = LARGEST if self._upper is None else self._upper
            if len(ids) and not 0 <= ids.min() <= ids.max() < upper:
                raise ValueError(f"{end} has ids beyond the nodes")
        if any(
            (abs(column) >= 2.0**63).any()
            for column in columns.values()
            if column.dtype.kind == "f"
        ):
            raise ValueError("numbers so large may be infinite, or integers beyond 64 bits")
        return columns

    def _of_words(self, rows: Sequence[Sequence[str]]) -> dict[str, Array]:
        columns = {}
        for name, at in self._kept.items():
            columns[name] = values_of(
                self._kinds.get(name, NUMBER), [fields[at] for fields in rows]
            )
            # a column that began with integers may go on with others
            self._whole[name] = self._whole[name] and columns[name].dtype == np.int64
        return columns


def kinds_of(names: Sequence[str], first: Sequence[str]) -> dict[str, str]:
    """Return what the values of each column are, but for ends and columns to skip, by a first
    row.
    """
    kinds = {
        name: kind_of(word)
        for name, word in zip(names, first, strict=False)
        if name not in (*ENDS, "_")
    }
    return {name: NUMBER if kind == NAME else kind for name, kind in kinds.items()}


def checked_rows(
    path: Path,
    names: Sequence[str],
    rows: Iterable[tuple[int, list[str]]],
    kinds: Mapping[str, str],
    num_nodes: int | None = None,
    *,
    named: bool = False,
) -> list[list[str]]:
    """Return the fields of ``rows``, whose nodes are integers or names; raise ValueError for the
    first wrong row.

    ``kinds`` are what the values of the further columns must be.
    """
    checked = []
    upper = LARGEST if num_nodes is None else num_nodes
    for line, fields in rows:
        where = f"{path}, line {line}"
        if len(fields) != len(names):
            hint = (
                "name all columns of the file in `columns`, '_' for those to skip; no row may "
                "leave one out"
            )
            raise ValueError(
                f"{where}: expected {len(names)} columns "
                f"({', '.join(names[:8])}{', ...' * (len(names) > 8)}), got {len(fields)}; {hint}"
            )
        for name, field in zip(names, fields, strict=True):
            if name in ENDS and named:
                if not field:
                    raise ValueError(f"{where}: the name of {name} is empty")
            elif name in ENDS:
                if not (is_integer(field) and 0 <= int(field) < upper):
                    raise ValueError(f"{where}: {name} {_wrong_id(field, fields, num_nodes)}")
            elif name != "_" and kind_of(field) != kinds[name]:
                hint = "skip it by naming it '_'"
                raise ValueError(
                    f"{where}: column {name!r} must hold {kinds[name]}, got {short(field)}; {hint}"
                )
            elif name != "_" and kinds[name] == NUMBER and not is_kept(field):
                hint = "write it as a decimal, or skip the column by naming it '_'"
                raise ValueError(
                    f"{where}: column {name!r} has {short(field)}, beyond 64 bits; {hint}"
                )
        checked.append(fields)
    return checked


def _wrong_id(field: str, fields: Sequence[str], num_nodes: int | None) -> str:
    """Say what an id must be, and what to do where nodes have names, or the line has titles."""
    below = "" if num_nodes is None else f" and below num_nodes, {num_nodes}"
    hint = (
        "" if any(map(is_number, fields)) else "; if the line names the columns, pass header=True"
    )
    if is_code(field) or not is_number(field):
        hint += "; build_graph(named=True) and read_folder take names"
    return f"must be an integer from 0{below}, got {short(field)}{hint}"


def _may_hold_codes(lines: Sequence[str], delimiter: str | None) -> bool:
    """Return whether a field of some lines is -0, or begins with a plus or with zeros, which numpy
    would leave out.
    """
    text = np.frombuffer(f"\n\n{''.join(lines)}\n".encode(), np.uint8)
    is_blank = (text <= ord(" ")) | (text == ord((delimiter or " ")[-1]))
    plus = np.flatnonzero(text == ord("+"))
    zeros = np.flatnonzero(text == ord("0"))
    after = text[zeros + 1]
    is_digit = (after >= ord("0")) & (after <= ord("9"))
    has_minus = (text[zeros - 1] == ord("-")) & is_blank[zeros - 2]
    padded = (is_blank[zeros - 1] & is_digit) | (has_minus & (is_digit | is_blank[zeros + 1]))
    return bool(is_blank[plus - 1].any() or padded.any())
