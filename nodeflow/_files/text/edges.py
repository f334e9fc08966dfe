"""Lists of edges as text: which column is which, columns in pieces, and the first wrong row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nodeflow._core.base.checks import LARGEST, describe
from nodeflow._core.base.types import Array
from nodeflow._files.text.table import FAILURES, Table
from nodeflow._files.text.titles import ENDS, titled_columns, two_kinds
from nodeflow._files.text.words import (
    ID,
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
    # The first line that is no comment tells the delimiter, so it is looked for before rows are
    # split.
    begin = ""
    # whole lines: a character that occurs in no text
    for line, fields in replace(table, delimiter="\0").rows():
        begin = fields[0]
        # KONECT's mark of comments, which are at the top
        if table.comments != "#" or not begin.startswith("%"):
            break
        table = replace(table, skip=line)
    if table.delimiter is None:
        delimiter = next((mark for mark in (",", "::") if mark in begin), None)
        table = replace(table, delimiter=delimiter)
    # rows are read again below after a row of titles, which is no row of the table then
    line, first = next(table.rows(), (0, None))
    are_numbers = [is_number(field) for field in (first or ())[:2]]
    if header is None:
        header = are_numbers == [False, False]
    titles = None
    if header:
        if are_numbers == [True, True]:
            raise ValueError(
                f"{table.path}, line {line}: header=True, but {first} is an edge; leave header out"
            )
        titles = first
        table = replace(table, skip=line)
        _, first = next(table.rows(), (0, None))
    where = f"{table.path}, line {line}"
    return table, names_of_columns(where, columns, titles, first or (), table), first


def names_of_columns(
    where: str,
    columns: Sequence[str] | None,
    titles: Sequence[str] | None,
    first: Sequence[str],
    table: Table,
) -> tuple[str, ...]:
    """Return the names of the columns of a table: those given, those of its row of titles, or, by
    its first row, src, dst, c2, c3, ...

    ``where`` is the place of the titles. Raises ValueError for ratings as MovieLens writes them
    without titles: u.data, and rows of three or more columns with ``::``.
    """
    if columns is not None:
        return column_names(columns)
    if titles is not None:
        return titled_columns([title.strip("\"'") for title in titles], f"{where}: the header")
    is_movielens = table.delimiter == "::" or table.path.name.removesuffix(".gz") == "u.data"
    if is_movielens and len(first) > 2:
        why = "reads like ratings of MovieLens, by users of items"
        raise two_kinds(f"{table.path}", why, "pass columns=('src', 'dst', 'rating', 'time')")
    return (*ENDS, *(f"c{number}" for number in range(2, len(first))))


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


class EdgeRows:
    """The columns of a file of edges: their names, but "_", and what their values are, by the
    first row: numbers, True and False, or dates.

    Ends are integers from 0, below ``upper`` where that is known, or with ``named`` words.
    """

    def __init__(
        self,
        path: Path,
        names: tuple[str, ...],
        first: Sequence[str],
        upper: int | None = None,
        *,
        named: bool = False,
    ) -> None:
        self._path = path
        self._names = names
        self.upper = LARGEST if upper is None else upper
        self.places = {name: place for place, name in enumerate(names) if name != "_"}
        self.kinds: dict[str, str] = {}
        for name, place in self.places.items():
            kind = kind_of(first[place]) if place < len(first) else NUMBER
            # words are refused
            self.kinds[name] = NUMBER if kind == NAME else kind
        self.kinds |= dict.fromkeys(ENDS, NAME if named else ID)

    def columns(self, rows: Iterable[tuple[int, list[str]]]) -> dict[str, Any]:
        """Return the columns of some rows, given with their lines: arrays, and lists of words;
        raises ValueError with the line of the first wrong entry.
        """
        words: dict[str, list[str]] = {name: [] for name in self.places}
        for line, fields in rows:
            if len(fields) != len(self._names):
                more = ", ..." if len(self._names) > 8 else ""
                raise ValueError(
                    f"{self._path}, line {line}: expected {len(self._names)} columns "
                    f"({', '.join(self._names[:8])}{more}), got {len(fields)}; name all columns of "
                    "the file in `columns`, '_' for those to skip; no row may leave one out"
                )
            for name, place in self.places.items():
                if why := self._fault(name, fields[place], fields):
                    raise ValueError(f"{self._path}, line {line}: {why}")
                words[name].append(fields[place])
        return {name: values_of(self.kinds[name], column) for name, column in words.items()}

    def _fault(self, name: str, field: str, fields: Sequence[str]) -> str | None:
        """Say what is wrong with an entry of a row, None where nothing is."""
        kind = self.kinds[name]
        if kind == NAME and not field:
            return f"the name of {name} is empty"
        if kind == NAME:
            return None
        if kind == ID:
            if is_integer(field) and 0 <= int(field) < self.upper:
                return None
            below = ""
            if self.upper < LARGEST:
                below = f" and below num_nodes, {self.upper}"
            hint = ""
            if not any(map(is_number, fields)):
                hint = "; if the line names the columns, pass header=True, or take it out"
            if is_code(field) or not is_number(field):
                hint += "; build_graph(named=True) and read_folder take names"
            return f"{name} must be an integer from 0{below}, got {short(field)}{hint}"
        skip = "naming it '_'"
        if kind_of(field) != kind:
            return f"column {name!r} must hold {kind}, got {short(field)}; skip it by {skip}"
        if kind == NUMBER and not is_kept(field):
            hint = f"write it as a decimal, or skip the column by {skip}"
            return f"column {name!r} has {short(field)}, beyond 64 bits; {hint}"
        return None


class EdgeTable:
    """A table of edges in numbers, as ``layout`` returns it, of which the columns called "_" are
    left out.

    Numbers are int64 while all entries are written as integers, float64 from the first piece on
    where one is not. The rest is that of ``EdgeRows``.
    """

    def __init__(
        self, table: Table, names: tuple[str, ...], first: list[str], upper: int | None
    ) -> None:
        self._table = table
        self._rows = EdgeRows(table.path, names, first, upper)
        places = self._rows.places
        # without columns to skip, numpy itself checks that all rows have the same number of columns
        self._use = list(places.values()) if len(places) < len(names) else None
        self._dtypes: dict[str, type[Any]] = {}
        for name, place in places.items():
            is_whole = name in ENDS or (place < len(first) and is_integer(first[place]))
            self._dtypes[name] = np.int64 if is_whole else np.float64

    def pieces(self, size: int = 2**15) -> Iterator[dict[str, Array]]:
        """Yield the columns of ``size`` lines at a time; ValueError with the wrong line."""
        only_numbers = {*self._rows.kinds.values()} <= {ID, NUMBER}
        for number, lines in self._table.blocks(size):
            try:
                if not only_numbers or _may_hold_codes(lines, self._table.delimiter):
                    raise ValueError("numpy would not keep what is written")
                columns = self._load(lines)
            except FAILURES:
                # usually there is a wrong row: this raises with the first one
                columns = self._rows.columns(self._table.split(number, lines))
                for name, column in columns.items():
                    # a column that began with integers may go on with others
                    if column.dtype != np.int64:
                        self._dtypes[name] = np.float64
            if len(columns["src"]):
                yield columns

    def whole(self) -> dict[str, Array]:
        """Return the columns of all lines; ValueError with the wrong line."""
        columns: dict[str, list[Array]] = {}
        for name, dtype in self._dtypes.items():
            columns[name] = [np.zeros(0, dtype)]
        for piece in self.pieces():
            for name, column in piece.items():
                columns[name].append(column)
        # a column that began with integers may go on with others: numpy makes float64 of both
        return {name: np.concatenate(arrays[1:] or arrays) for name, arrays in columns.items()}

    def _load(self, lines: Iterable[str]) -> dict[str, Array]:
        """Return the columns of lines that hold numbers alone, as numpy reads them.

        Raises ``FAILURES``, also for wrong ids and for numbers that may not be as they are written.
        """
        # positions serve as field names, because a title may be anything
        dtype = [(str(number), kind) for number, kind in enumerate(self._dtypes.values())]
        # numpy reads all columns in one pass, each in a type of its own.
        loaded = self._table.load(dtype, lines, self._use)
        columns = {}
        for number, name in enumerate(self._dtypes):
            column = np.ascontiguousarray(loaded[str(number)])
            if (
                name in ENDS
                and len(column)
                and not 0 <= column.min() <= column.max() < self._rows.upper
            ):
                raise ValueError(f"{name} has ids beyond the nodes")
            if column.dtype.kind == "f" and (abs(column) >= 2.0**63).any():
                raise ValueError("numbers so large may be infinite, or integers beyond 64 bits")
            columns[name] = column
        return columns


def _may_hold_codes(lines: Sequence[str], delimiter: str | None) -> bool:
    """Return whether a field of some lines is -0, or begins with a plus or with zeros, which numpy
    would leave out.
    """
    # blank lines around the text stand for what is before the first and after the last character
    text = np.frombuffer(f"\n\n{''.join(lines)}\n".encode(), np.uint8)
    is_blank = (text <= ord(" ")) | (text == ord((delimiter or " ")[-1]))
    plus = np.flatnonzero(text == ord("+"))
    zeros = np.flatnonzero(text == ord("0"))
    after = text[zeros + 1]
    is_digit = (after >= ord("0")) & (after <= ord("9"))
    has_minus = (text[zeros - 1] == ord("-")) & is_blank[zeros - 2]
    padded = (is_blank[zeros - 1] & is_digit) | (has_minus & (is_digit | is_blank[zeros + 1]))
    return bool(is_blank[plus - 1].any() or padded.any())
