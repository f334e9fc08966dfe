"""Graphs from the tables of a database: a node per row, an edge per foreign key, columns as rows of
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from torch import from_numpy

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    Ints,
    as_count,
    check_one_of,
    check_type,
    describe,
    first_true,
)
from nodeflow._core.base.dates import seconds_of
from nodeflow._core.base.keys import PRIMARY_KEY, as_keys, column_of_keys, first_repeated, rows_of
from nodeflow._core.base.types import Array
from nodeflow.convert._columns import chosen, library
from nodeflow.convert._table_times import as_clock, kind_of_values, plain, to_dates
from nodeflow.graph import Graph

if TYPE_CHECKING:
    import pandas

_KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number"),
    **dict.fromkeys(("date", "datetime", "datetime64"), "date"),
    **dict.fromkeys(("string", "categorical", "boolean"), "category"),
}
"""How values are encoded, by what pandas calls them."""
_CYCLES = {"year": 365.2425, "week": 7.0}
"""Days after which a date is at the same place of a cycle."""


@checked
def from_tables(
    tables: Mapping[str, pandas.DataFrame],
    *,
    keys: Mapping[str, str] | None = None,
    links: Mapping[str, Mapping[str, str]] | None = None,
    times: Mapping[str, str] | None = None,
    cut: Any = None,
    drop: Mapping[str, Sequence[str]] | None = None,
    categories: int = 64,
    text: Callable[[list[str]], Any] | None = None,
    dangling: str = "error",
    reverse: bool = True,
    encodings: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Graph, TableColumns]:
    """Return the graph of the tables of a database, and by table the names of the columns of its
    ``"x"``.

    Every table is a node type with a node per row, every foreign key a relation such as ("results",
    "driverId", "drivers"), with an edge from each row whose key is not missing. Each type has a
    column ``"x"``, float32 ``[rows, width]``. Where the table has a time, ``"time"`` has seconds
    since 1970: int64 if the times of all tables are whole seconds, else float64 for all, which
    tells microseconds apart; the smallest int64, or NaN, where missing. Where it has a primary key,
    ``"primary_key"`` keeps it, int64 or bytes of words, and ``SeedTable`` finds nodes by it. In
    ``"x"`` numbers become a column, minus the mean and divided by the deviation (0 where all are
    equal); dates, days in the same way, with sine and cosine of the place in the year and in the
    week; strings, bools and categories of pandas, a 0/1 column per value; strings of more than
    ``categories`` values, what ``text`` returns. A missing value, or one that is not among the
    values, is 0. A column with missing values has one more 0/1 column, which marks them. A table
    without columns has one of ones.

    Args:
        tables: pandas data frames by name, whose index is not read.
        keys: the column with the primary key, of tables that others refer to, or that have seeds:
            whole numbers of any type, strings, dates or bytes.
        links: per table its foreign keys: the column, and the table that it refers to.
        times: the column that says when a row became known: dates, also as strings in ISO 8601, of
            UTC where they have no time zone, or seconds since 1970. ``pandas.to_datetime`` makes
            dates of milliseconds, of numbers such as 20240131, 202401311530 or 2024, and of strings
            such as 31/01/2024.
        cut: a time, such as a date. Means, deviations, values and marks of missing ones are those
            of rows up to it, and of tables without times. None: of all rows.
        drop: per table columns that are not encoded, besides keys and times.
        categories: the largest number of values that get a column each.
        text: a function from k strings to an array ``[k, width]``, called with the distinct strings
            of a column.
        dangling: "error" refuses foreign keys without a row that they refer to, "drop" makes no
            edges of them.
        reverse: add the relations back, such as ("drivers", "rev_driverId", "results").
        encodings: ``names.encodings`` of an earlier call, whose means, deviations and values are
            then taken, so that a later state of the tables becomes rows that a model of the earlier
            one can read: the same columns, and equal values equal numbers. They are values of JSON,
            and do not hold ``text``, which is given again.

    The names are a dict whose attribute ``encodings`` says how each column was encoded. As
    ``Dataset(..., feature_names=names)`` they go into folders and checkpoints, and a model finds
    its columns by them.

    Raises KeyError for tables and columns that are not there, TypeError for columns of other
    objects, such as lists, ImportError without pandas, ValueError for tables and columns that
    ``encodings`` lack, or that only they have, ``cut`` beside them, primary keys that repeat or are
    missing, foreign keys without a row, keys as floats from 2**53 on (2**24 as float32), a cut
    without times, times that are none, that are in another unit, as float32 from 2**24 on, or dates
    finer than microseconds, infinite numbers, categories such as 1 beside "1", and too many values.

    >>> import pandas
    >>> drivers = pandas.DataFrame({"id": [4, 7, 9], "country": ["FI", "FI", "GB"], "height": [None, 1.80, 1.74]})
    >>> results = pandas.DataFrame({"driver": [9, 7, 9], "day": ["2024-03-02", "2024-03-09", "2024-03-09"]})
    >>> keys, links = {"drivers": "id"}, {"results": {"driver": "drivers"}}
    >>> tables = {"drivers": drivers, "results": results}  # or pandas.read_sql_query(f"select * from {name}", database)
    >>> graph, names = from_tables(tables, keys=keys, links=links, times={"results": "day"}, cut="2024-03-05")
    >>> graph.schema
    Schema(drivers 3, results 3; results -driver-> drivers 3, drivers -rev_driver-> results 3)
    >>> names["drivers"], graph.nodes["drivers"].data["x"][0]
    (['country=FI', 'country=GB', 'height', 'height missing'], tensor([1., 0., 0., 1.]))
    >>> taller = tables | {"drivers": drivers.assign(height=[None, 1.86, 1.80])}
    >>> later, _ = from_tables(taller, keys=keys, links=links, times={"results": "day"}, encodings=names.encodings)
    >>> later.nodes["drivers"].data["x"][:, 2]
    tensor([0., 3., 1.])
    """
    keys = keys or {}
    links = links or {}
    times = times or {}
    drop = drop or {}
    check_one_of(dangling, "dangling", ("error", "drop"))
    _check_names(tables, {"keys": keys, "links": links, "times": times, "drop": drop})
    categories = as_count(categories, "categories")
    if encodings is not None:
        check_type(
            encodings, "encodings", Mapping, "the encodings of names that from_tables returned"
        )
        _check_encoded(tables, encodings, "table")
    if encodings is not None and cut is not None:
        raise ValueError(
            "cut chooses the rows of means and values, which encodings have: leave one of the two "
            "out"
        )
    clock, last = as_clock(
        {table: (tables[table][name], _where(table, name)) for table, name in times.items()}, cut
    )
    if cut is not None and not times:
        raise ValueError(
            "cut needs times=, the columns that say when rows became known; without, no row is "
            "later"
        )
    # links refer to tables in any order, so the keys of all come first
    index = {}
    for table, key in keys.items():
        index[table] = _primary_keys(tables[table][key], _where(table, key))
    nodes: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    ways: dict[str, dict[str, Any]] = {}
    for table, frame in tables.items():
        left_out = {keys.get(table), times.get(table), *links.get(table, ()), *drop.get(table, ())}
        encoded = {
            str(name): _Encoded(frame[name], str(name), table, text)
            for name in frame.columns
            if name not in left_out
        }
        fitted = np.ones(len(frame), bool)
        if last is not None and table in clock:
            fitted = ~(clock[table] > last)  # also rows without a time
        ways[table] = _ways_of(encoded, table, fitted, categories, encodings)
        # rows are made of the encoding alone, so that a later state becomes the same rows
        names[table], x = _rows_of(encoded, ways[table], len(frame))
        nodes[table] = {"x": from_numpy(x)}
        if table in clock:
            nodes[table]["time"] = from_numpy(clock[table])
        if table in keys:
            nodes[table][PRIMARY_KEY] = column_of_keys(index[table])
    edges = _edges_of(tables, links, index, dangling)
    return Graph.typed(nodes, edges, reverse=reverse), TableColumns(names, ways)


def _ways_of(
    columns: Mapping[str, _Encoded],
    table: str,
    fitted: Array,
    categories: int,
    given: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """Return the encodings of the columns of a table: those of its ``fitted`` rows, or given
    ones.
    """
    if given is None:
        return {name: column.encoding(fitted, categories) for name, column in columns.items()}
    _check_encoded(columns, given[table], f"column of table {table!r}")
    return dict(given[table])


def _edges_of(
    tables: Mapping[str, Any],
    links: Mapping[str, Mapping[str, str]],
    index: Mapping[str, Array],
    dangling: str,
) -> dict[Any, tuple[Ints, Ints]]:
    """Return the rows that each foreign key joins, by relation."""
    edges = {}
    for table, of_table in links.items():
        for key, other in of_table.items():
            where = _where(table, key)
            ends = _ends(tables[table][key], index[other], where, other, dangling)
            edges[table, key, other] = ends
    return edges


def _rows_of(
    columns: Mapping[str, _Encoded], ways: Mapping[str, Any], num_rows: int
) -> tuple[list[str], Array]:
    """Return the names and the rows of the encoded columns of a table, or a column of ones."""
    names: list[str] = []
    parts = []
    for name, way in ways.items():
        titles, rows = columns[name].rows(way)
        names += titles
        parts.append(rows)
    if not names:
        return ["one"], np.ones((num_rows, 1), np.float32)
    return names, np.hstack(parts)


class TableColumns(dict[str, list[str]]):
    """By table the names of the columns of ``"x"``; ``encodings`` says how they were made, see
    ``from_tables``.
    """

    def __init__(
        self, names: Mapping[str, list[str]], encodings: dict[str, dict[str, Any]]
    ) -> None:
        super().__init__(names)
        self.encodings = encodings


def _check_encoded(given: Collection[str], encoded: Collection[str], what: str) -> None:
    """Raise ValueError for a table or column that has no encoding, or for an encoding that has
    none.
    """
    for name in sorted({*given} ^ {*encoded}):
        lacking = "encodings have, but the tables lack,"
        if name in given:
            lacking = "encodings lack"
        raise ValueError(
            f"{lacking} the {what} {name!r}; they are of the tables from which they were made"
        )


def _check_names(tables: Any, named: Mapping[str, Any]) -> None:
    """Check the tables, and that they have what other arguments, which are given by name, name."""
    for argument, value in {"tables": tables, **named}.items():
        check_type(value, argument, Mapping, "a dict by the names of tables")
    for table, frame in tables.items():
        check_type(frame, f"tables[{table!r}]", _pandas().DataFrame, "a data frame of pandas")
        titles = frame.columns.map(str)  # names of encoded columns are words
        if not titles.is_unique:
            raise ValueError(
                f"table {table!r} has two columns named {titles[titles.duplicated()][0]!r}"
            )
    for argument, value in named.items():
        for table, columns in value.items():
            where = f"{argument}[{table!r}]"
            _check_in(table, tables, f"{argument}: no table")
            if argument == "links":
                check_type(columns, where, Mapping, "a dict from columns to tables")
            for name in [columns] if argument in ("keys", "times") else chosen(columns, (), where):
                check_type(name, where, Hashable, "the name of one column; join several first")
                _check_in(name, tables[table].columns, f"{argument}: table {table!r} has no column")
                if argument == "links":
                    _check_in(
                        columns[name],
                        named["keys"],
                        f"{_where(table, name)} refers to a table without a key,",
                    )


def _check_in(name: object, names: Collection[object], words: str) -> None:
    if name not in names:
        raise KeyError(f"{words} {name!r}; there are {', '.join(map(repr, names)) or 'none'}")


class _Encoded:
    """A column of a table that becomes columns of numbers."""

    def __init__(self, column: Any, name: str, table: str, text: Any) -> None:
        self.name = name
        self.where = _where(table, name)
        self.present = column.notna().to_numpy(bool)
        self.values = plain(column[self.present])
        self.inferred = kind_of_values(column)
        self.text = text

    def encoding(self, fitted: Array, most: int) -> dict[str, Any]:
        """Return how the column is encoded, by what its ``fitted`` rows have in common, as values
        of JSON.
        """
        if self.inferred not in _KINDS:
            raise TypeError(
                f"{self.where} holds {self.inferred} values such as "
                f"{describe(self.values.iloc[0])}; convert it, or name it in drop="
            )
        kind = _KINDS[self.inferred]
        seen = self.values[fitted[self.present]]
        way: dict[str, Any] = {"kind": kind, "missing": not self.present[fitted].all()}
        if kind == "category":
            distinct = seen.unique()
            if len(distinct) <= most:
                return {**way, "values": sorted({str(value) for value in distinct})}
            if self.text is None or not isinstance(distinct[0], str):
                raise ValueError(
                    f"{self.where} has {len(distinct)} different values, more than "
                    f"categories={most}; name it in drop=, raise categories=, or give text=, which "
                    "makes numbers of strings"
                )
            return {**way, "kind": "text"}
        numbers = self._as_numbers(seen, kind)
        if not len(numbers) or (low := numbers.min()) == (high := numbers.max()):
            return way
        # infinite numbers are refused when they are encoded
        with np.errstate(all="ignore"):
            # whose squares are no larger than floats can be
            rows = (numbers - low) / (high - low)
            ends = {"low": float(low), "high": float(high)}
            return {**way, **ends, "mean": float(rows.mean()), "deviation": float(rows.std())}

    def rows(self, way: Mapping[str, Any]) -> tuple[list[str], Array]:
        """Return names and rows of what the column becomes by an encoding."""
        kind = way["kind"]
        if len(self.values):
            known = _KINDS.get(self.inferred)
            if known != ("category" if kind == "text" else kind):
                raise TypeError(
                    f"{self.where} holds {self.inferred} values such as "
                    f"{describe(self.values.iloc[0])}, its encoding is a {kind}"
                )
        if kind == "category":
            columns = self._categories(way["values"])
        elif kind == "text":
            texts = self._texts()
            columns = {f"{self.name}[{i}]": column for i, column in enumerate(texts.T)}
        else:
            columns = self._numbers(way)
        rows = np.zeros((len(self.present), len(columns)), np.float32)
        for at, column in enumerate(columns.values()):
            rows[self.present, at] = column
        if not np.isfinite(rows).all():
            raise ValueError(
                f"{self.where} must hold finite numbers of the size of float32; replace others "
                "first"
            )
        if not way["missing"]:
            return [*columns], rows
        return [*columns, f"{self.name} missing"], np.column_stack([rows, ~self.present])

    def _categories(self, values: list[str]) -> dict[str, Array]:
        """Return a 0/1 column per value."""
        words = self.values.map(str)
        different = words[~self.values.duplicated()]
        if not different.is_unique:
            raise ValueError(
                f"{self.where} has two categories that are written "
                f"{different[different.duplicated()].iloc[0]!r}; rename one"
            )
        # values that the encoding does not know have the code -1, and so no column
        codes = _pandas().Index(values, dtype=object).get_indexer(words)
        return {f"{self.name}={value}": codes == at for at, value in enumerate(values)}

    def _texts(self) -> Array:
        """Return the rows that ``text`` makes of the strings."""
        if self.text is None:
            raise ValueError(
                f"{self.where} was encoded by text=, a function that encodings do not hold: give "
                "it again"
            )
        # a function of texts may be slow: each distinct one is passed once
        codes, strings = self.values.factorize()
        rows = np.asarray(self.text(list(strings)), np.float32)
        if rows.ndim != 2 or len(rows) != len(strings):
            raise ValueError(
                f"text must return [{len(strings)}, width] for strings of {self.where}, got "
                f"{list(rows.shape)}"
            )
        return cast("Array", rows[codes])

    def _numbers(self, way: Mapping[str, Any]) -> dict[str, Array]:
        """Return numbers, minus their mean and divided by the deviation; of dates their places in
        the year and in the week, too.
        """
        numbers = self._as_numbers(self.values, way["kind"])
        with np.errstate(all="ignore"):  # the caller refuses infinite numbers
            columns = {self.name: 0 * numbers}
            if "low" in way:
                places = (numbers - way["low"]) / (way["high"] - way["low"])
                columns[self.name] = (places - way["mean"]) / way["deviation"]
            for cycle, days in _CYCLES.items() if way["kind"] == "date" else ():
                angle = numbers * (2 * np.pi / days)
                columns[f"{self.name} sine of {cycle}"] = np.sin(angle)
                columns[f"{self.name} cosine of {cycle}"] = np.cos(angle)
            return {name: column.astype(np.float32) for name, column in columns.items()}

    def _as_numbers(self, values: Any, kind: str) -> Array:
        """Return numbers as they are, dates as days, float64."""
        if kind == "date":
            return seconds_of(to_dates(values, self.where)) / 86400
        numbers = _pandas().to_numeric(values)
        return cast("Array", numbers.to_numpy(np.float64))


def _primary_keys(column: Any, where: str) -> Array:
    """Return the keys of the rows of a table."""
    keys, rows = as_keys(column, where)
    if missing := len(column) - len(rows):
        raise ValueError(f"{where} is a primary key, but {missing} rows have none")
    if repeated := first_repeated(keys):
        row, count = repeated
        example = column.iloc[[row]].tolist()[0]
        raise ValueError(
            f"{where} is a primary key, but {count} rows have {example!r}, such as row {row}"
        )
    return keys


def _ends(column: Any, index: Array, where: str, other: str, dangling: str) -> tuple[Ints, Ints]:
    """Return the rows that have a foreign key, and the rows that they refer to."""
    keys, rows = as_keys(column, where)
    to = rows_of(keys, index)
    if (first := first_true(to < 0)) is not None and dangling == "error":
        example = column.iloc[rows[[first]]].tolist()[0]
        if index.dtype.kind == "i":
            kind = "int64"
        else:
            kind = f"such as {index[0]}"
        raise ValueError(
            f"{where} has {(to < 0).sum()} foreign keys that no row of table {other!r} has, the "
            f"first {example!r} ({column.dtype}, keys are {kind}); dangling='drop' leaves them out "
            f"(the first is in row {rows[first]})"
        )
    return rows[to >= 0], to[to >= 0]


def _where(table: str, column: object) -> str:
    return f"column {column!r} of table {table!r}"


def _pandas() -> Any:
    return library("pandas", "pandas")
