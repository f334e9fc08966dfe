"""Lists of edges as text: which column is which, columns of numbers in pieces, and the first wrong row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from nodeflow._base.checks import LARGEST, describe
from nodeflow._base.types import Array
from nodeflow._text.table import FAILURES, Table, is_integer, is_kept, is_number, short

ENDS = ("src", "dst")


def layout(
    table: Table, columns: Sequence[str] | None, header: bool | None
) -> tuple[Table, tuple[str, ...], list[str] | None]:
    """Return the table with delimiter and header settled, the names of its columns and its first row, None without.

    ``header`` None takes the first row for one if neither of its first two entries is a number.
    """
    if table.delimiter is None:
        whole_lines = replace(table, delimiter="\0").rows()  # a character that occurs in no text
        if any("," in fields[0] for _, fields in islice(whole_lines, 1)):
            table = replace(table, delimiter=",")
    titles: list[str] | None = None
    if header is None:
        begin = next((fields[:2] for _, fields in table.rows()), [])
        header = len(begin) == 2 and not any(map(is_number, begin))
    if header:
        line, titles = next(table.rows(), (0, None))
        table = replace(table, skip=line)
    first = next((fields for _, fields in table.rows()), None)
    if columns is not None:
        names = column_names(columns)
    elif titles is not None:
        titles = [title.strip("\"'") for title in titles]
        names = titled_columns(titles, f"{table.path}, line {table.skip}: the header")
    else:
        names = ("src", "dst", *(f"c{at}" for at in range(2, len(first or ()))))
    return table, names, first


def column_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all columns of a file, "_" for those to skip; raises TypeError or ValueError."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns must be a sequence of names, such as ('src', 'dst', 'time'), got {describe(columns)}")
    named = [name for name in columns if name != "_"]
    if len(set(named)) < len(named) or not {"src", "dst"} <= set(named):
        raise ValueError(f"columns must hold 'src', 'dst' and further names, each once, got {tuple(columns)}")
    return tuple(columns)


def titled_columns(titles: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the names of columns with titles; the first two become src and dst unless both names occur."""
    names = tuple(titles if {*ENDS} <= set(titles) else [*ENDS, *titles[2:]])
    if len(titles) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"{where} must name two or more columns, each once, src and dst first or among them, got {titles}"
        )
    return names


class EdgeTable:
    """A table of edges in numbers, as ``layout`` returns it, of which the columns called "_" are left out.

    ``upper`` bounds the ids of nodes, where that is known. Columns are int64 while all entries are written as
    integers, float64 from the first piece on where one is not.
    """

    def __init__(self, table: Table, names: tuple[str, ...], first: list[str], upper: int | None) -> None:
        self._table, self._names, self._upper = table, names, upper
        self._kept = {name: at for at, name in enumerate(names) if name != "_"}
        # without columns to skip, numpy itself checks that all rows have the same number of columns
        self._use = list(self._kept.values()) if len(self._kept) < len(names) else None
        self._whole = {
            name: name in ENDS or (at < len(first) and is_integer(first[at])) for name, at in self._kept.items()
        }

    def load(self, lines: Iterable[str] | None = None, *, checked: bool = False) -> dict[str, Array]:
        """Return the columns of the file, or of lines of it, ``checked`` by ``checked_rows`` or not.

        Raises ``FAILURES``, also for wrong ids and for numbers that may not be as they are written.
        """
        # positions serve as field names, because a title may be anything
        dtype = [(str(at), np.int64 if self._whole[name] else np.float64) for name, at in self._kept.items()]
        loaded = self._table.load(dtype, self._use, lines)
        columns = {name: np.ascontiguousarray(loaded[str(at)]) for name, at in self._kept.items()}
        for end in ENDS:
            ids, upper = columns[end], LARGEST if self._upper is None else self._upper
            if len(ids) and not 0 <= ids.min() <= ids.max() < upper:
                raise ValueError(f"{end} has ids beyond the nodes")
        numbers = [] if checked else [column for column in columns.values() if column.dtype.kind == "f"]
        if any((abs(column) >= 2.0**63).any() for column in numbers):
            raise ValueError("numbers so large may be infinite, or integers beyond 64 bits")
        return columns

    def pieces(self, size: int = 2**15) -> Iterator[tuple[dict[str, Array], int]]:
        """Yield the columns of ``size`` lines at a time, and the bytes read so far; ValueError with the wrong line."""
        for number, lines, read in self._table.blocks(size):
            try:
                columns = self.load(lines)
            except FAILURES:
                # numpy has failed, usually at a wrong row: this raises with the first one
                rows = self._table.split(number, lines)
                checked = checked_rows(self._table.path, self._names, rows, self._upper)
                for name, at in self._kept.items():  # a column that began with integers may go on with others
                    self._whole[name] = self._whole[name] and all(is_integer(fields[at]) for fields in checked)
                # numpy itself cannot read some of these, such as a line of blanks between rows of commas
                columns = self.load(map((self._table.delimiter or " ").join, checked), checked=True)
            if len(columns["src"]):
                yield columns, read


def checked_rows(
    path: Path,
    names: tuple[str, ...],
    rows: Iterable[tuple[int, list[str]]],
    num_nodes: int | None = None,
    *,
    named: bool = False,
) -> list[list[str]]:
    """Return the fields of ``rows``, whose nodes are integers or names; raise ValueError for the first wrong row."""
    checked = []
    upper = "" if num_nodes is None else f" and below num_nodes, {num_nodes}"
    for line, fields in rows:
        where = f"{path}, line {line}"
        if len(fields) != len(names):
            hint = "name all columns of the file in `columns`, '_' for those to skip"
            raise ValueError(f"{where}: expected {len(names)} columns ({', '.join(names)}), got {len(fields)}; {hint}")
        for name, field in zip(names, fields, strict=True):
            if name in ENDS and named:
                if not field:
                    raise ValueError(f"{where}: the name of {name} is empty")
            elif name in ENDS:
                if not (is_integer(field) and 0 <= int(field) < (LARGEST if num_nodes is None else num_nodes)):
                    hint = "" if any(map(is_number, fields)) else "; if the line names the columns, pass header=True"
                    raise ValueError(f"{where}: {name} must be an integer from 0{upper}, got {short(field)}{hint}")
            elif name != "_" and not is_number(field):
                hint = "skip it by naming it '_'"
                raise ValueError(f"{where}: column {name!r} must hold numbers, got {short(field)}; {hint}")
            elif name != "_" and not is_kept(field):
                hint = "write it as a decimal, or skip the column by naming it '_'"
                raise ValueError(f"{where}: column {name!r} has {short(field)}, beyond 64 bits; {hint}")
        checked.append(fields)
    return checked
