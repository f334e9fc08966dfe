"""Lists of edges as text: which column is which, and the first wrong row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from nodeflow._base.checks import LARGEST, describe
from nodeflow._text.table import Table, is_integer, is_number


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
        names = tuple(titles if {"src", "dst"} <= set(titles) else ["src", "dst", *titles[2:]])
        if len(titles) < 2 or len(set(names)) < len(names):
            raise table.error(table.skip, f"the header must name two or more columns, each once, got {titles}")
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


def checked_rows(
    table: Table, names: tuple[str, ...], rows: Iterable[tuple[int, list[str]]], num_nodes: int | None
) -> Iterator[tuple[int, list[str]]]:
    """Yield ``rows`` of a table; raise ValueError for the first wrong one."""
    upper = "" if num_nodes is None else f" and below num_nodes, {num_nodes}"
    for line, fields in rows:
        if len(fields) != len(names):
            hint = "; name all columns of the file in `columns`, '_' for those to skip"
            raise table.error(line, f"expected {len(names)} columns ({', '.join(names)}), got {len(fields)}{hint}")
        for name, field in zip(names, fields, strict=True):
            if name in ("src", "dst"):
                if not (is_integer(field) and 0 <= int(field) < (LARGEST if num_nodes is None else num_nodes)):
                    hint = "" if any(map(is_number, fields)) else "; if the line names the columns, pass header=True"
                    raise table.error(line, f"{name} must be an integer from 0{upper}, got {field!r}{hint}")
            elif name != "_" and not is_number(field):
                raise table.error(line, f"column {name!r} must hold numbers, got {field!r}; skip it by naming it '_'")
        yield line, fields
