"""Tables of a database as a graph of several types, against a slow reference row by row."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.tables import linked, one
from hypothesis import given, strategies as st

from nodeflow import NeighborSampler
from nodeflow.convert import from_tables
from nodeflow.datasets import Dataset

pd = pytest.importorskip("pandas", reason="pandas is not installed")
NEVER = -(2**63)


def slow(values: list[Any], fitted: list[bool], kind: str) -> list[list[float]]:
    """Return what a column becomes, row by row; None is a missing value."""
    seen = [value for value, fits in zip(values, fitted, strict=True) if fits]
    present = [value for value in seen if value is not None]
    rows: list[list[float]] = []
    if kind == "category":
        names = sorted(set(present), key=str)
        rows = [[float(value == name) for name in names] for value in values]
    else:
        days = [
            None if v is None else v if kind == "number" else v.timestamp() / 86400 for v in values
        ]
        numbers = [day for day, fits in zip(days, fitted, strict=True) if fits and day is not None]
        mean = sum(numbers) / len(numbers) if numbers else 0.0
        deviation = (
            math.sqrt(sum((n - mean) ** 2 for n in numbers) / len(numbers)) if numbers else 0.0
        )
        constant = len(set(numbers)) < 2
        for day in days:
            row = [0.0 if day is None or constant else (day - mean) / deviation]
            for period in (365.2425, 7.0) if kind == "date" else ():
                angle = 0.0 if day is None else day * 2 * math.pi / period
                row += [0.0, 0.0] if day is None else [math.sin(angle), math.cos(angle)]
            rows.append(row)
    if any(value is None for value in seen):
        rows = [[*row, float(value is None)] for row, value in zip(rows, values, strict=True)]
    return rows


UTC = datetime.UTC
STAMPS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)).map(
    lambda d: d.replace(tzinfo=UTC)
)
VALUES: dict[str, Any] = {
    "number": st.integers(-9, 9) | st.floats(-1e3, 1e3).map(lambda number: round(number, 2)),
    "date": STAMPS,
    "category": st.sampled_from(["FI", "GB", "a b", ""]),
}


@st.composite
def databases(draw: st.DrawFn) -> dict[str, Any]:
    """Return rows of two tables, and what the reference needs of them."""
    parents = draw(st.lists(st.integers(-99, 99), unique=True, max_size=5))
    rows = draw(st.integers(0, 6))
    links = [
        draw(st.none() | st.sampled_from(parents or [None]) | st.just(1000)) for _ in range(rows)
    ]
    times = [draw(st.none() | STAMPS) for _ in range(rows)]
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), max_size=4))
    columns = [[draw(st.none() | VALUES[kind]) for _ in range(rows)] for kind in kinds]
    kinds = [
        kind if set(own) != {None} else "number" for kind, own in zip(kinds, columns, strict=True)
    ]
    return {
        "parents": parents,
        "links": links,
        "times": times,
        "kinds": kinds,
        "columns": columns,
        "cut": draw(STAMPS),
    }


@given(databases(), st.booleans())
def test_the_graph_is_that_of_the_rows(data, use_cut):
    columns = {f"c{i}": pd.Series(values, dtype=object) for i, values in enumerate(data["columns"])}
    keys, times = (pd.Series(data[name], dtype=object) for name in ("links", "times"))
    child = pd.DataFrame({"to": keys, "t": times, **columns})
    child.index = range(5, 5 + len(child))  # an index is not read
    tables = {
        "child": child,
        "parent": pd.DataFrame({"id": pd.Series(data["parents"], dtype="int64")}),
    }
    options = {
        "keys": {"parent": "id"},
        "links": {"child": {"to": "parent"}},
        "times": {"child": "t"},
    }
    graph, names = from_tables(
        tables, **options, cut=data["cut"] if use_cut else None, dangling="drop"
    )
    pairs = [
        (i, data["parents"].index(key))
        for i, key in enumerate(data["links"])
        if key in data["parents"]
    ]
    size = len(child)
    ends = graph.find_edges(list(graph.relations["to"].ids))
    assert list(zip(*(end.tolist() for end in ends), strict=True)) == [
        (src, size + dst) for src, dst in pairs
    ]
    assert list(graph.schema.relations) == [
        ("child", "to", "parent"),
        ("parent", "rev_to", "child"),
    ]
    seconds = [NEVER if time is None else time.timestamp() for time in data["times"]]
    time = graph.nodes["child"].data["time"]
    assert time.dtype == (
        torch.int64 if all(number == int(number) for number in seconds) else torch.float64
    )
    assert time.nan_to_num(NEVER).tolist() == seconds
    assert list(graph.nodes["parent"].data) == ["x", "primary_key"]
    fitted = [not use_cut or time is None or time <= data["cut"] for time in data["times"]]
    blocks = [
        slow(values, fitted, kind)
        for values, kind in zip(data["columns"], data["kinds"], strict=True)
    ]
    expected = [[number for block in blocks for number in block[row]] for row in range(size)]
    x = graph.nodes["child"].data["x"]
    assert (x.dtype, len(x), x.shape[1]) == (torch.float32, size, len(names["child"]))
    if blocks and size and expected[0]:
        np.testing.assert_allclose(x.numpy(), np.array(expected), rtol=1e-4, atol=1e-4)
    assert torch.equal(graph.nodes["parent"].data["x"], torch.ones(len(data["parents"]), 1))


D = decimal.Decimal
DAY = datetime.date(2020, 1, 1)
CYCLES = ["c sine of year", "c cosine of year", "c sine of week", "c cosine of week"]
KINDS: dict[str, tuple[Any, list[str]]] = {
    "decimals": ([D("1.5"), None, D("2")], ["c"]),
    "nullable integers": (pd.array([1, None, 3], dtype="Int64"), ["c"]),
    "integers and floats": ([1, None, 2.5], ["c"]),
    "nothing": ([None, None, None], ["c"]),
    "bools": ([True, None, False], ["c=False", "c=True"]),
    "nullable bools": (pd.array([True, None, False], dtype="boolean"), ["c=False", "c=True"]),
    "strings": (pd.array(["b", None, "a"], dtype="string"), ["c=a", "c=b"]),
    "objects that are strings": (pd.Series(["b", None, "a"], dtype=object), ["c=a", "c=b"]),
    "categories": (
        pd.Categorical(["b", None, "a"], categories=["a", "b", "unused"]),
        ["c=a", "c=b"],
    ),
    "categories of integers": (pd.Categorical([2, None, 1]), ["c=1", "c=2"]),
    "days": ([DAY, None, datetime.date(1969, 12, 31)], ["c", *CYCLES]),
    "times": (pd.to_datetime(["2020-01-01", None, "1960-02-02"]), ["c", *CYCLES]),
    "times of a zone": (
        pd.to_datetime(["2020-01-01", None, "1960-02-02"]).tz_localize("Asia/Tokyo"),
        ["c", *CYCLES],
    ),
    "sparse": (pd.arrays.SparseArray([1.0, np.nan, 2.0]), ["c"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_every_kind(kind):
    values, names = KINDS[kind]
    own, x = one(values)
    rows = x.tolist()
    assert own == [*names, "c missing"]
    assert rows[1] == [0.0] * len(names) + [1.0]
    assert all(math.isfinite(number) for row in rows for number in row)
    if names[0] == "c" and kind != "nothing":
        assert abs(rows[0][0]) == abs(rows[2][0]) == pytest.approx(1)
    elif kind != "nothing":
        assert (rows[0], rows[2]) == ([0, 1, 0], [1, 0, 0])


def test_numbers_of_any_size():
    for values in (
        [1e300, -1e300],
        [1e-320, 0.0],
        [1e18 + 1e6, 1e18],
        np.array([2**64 - 1, 0], np.uint64),
    ):
        assert np.allclose(one(values)[1].abs().numpy(), 1)
    assert one([0.1] * 7)[1].tolist() == [[0.0]] * 7
    assert one(np.zeros(0))[1].shape == (0, 1)


def test_rows_after_the_cut_change_nothing_before():
    early = pd.DataFrame({"t": [10, 20, None], "n": [1.0, 3.0, None], "s": ["a", "b", "a"]})
    late = pd.DataFrame({"t": [21, 30], "n": [1e6, None], "s": ["new", None]})
    graph, names = from_tables({"e": pd.concat([early, late])}, times={"e": "t"}, cut=20)
    alone, _ = from_tables(
        {"e": early}, times={"e": "t"}, cut=datetime.datetime.fromtimestamp(20, UTC)
    )
    assert names["e"] == ["n", "n missing", "s=a", "s=b"]
    assert torch.equal(graph.ndata["x"][:3], alone.ndata["x"])
    assert graph.ndata["x"][3:, 1:].tolist() == [
        [0, 0, 0],
        [1, 0, 0],
    ]  # "new" and None are all 0
    assert graph.ndata["time"].tolist() == [10, 20, NEVER, 21, 30]


def test_long_text_needs_a_function():
    frame = pd.DataFrame({"c": ["aa", "b", None, "cccc", "b"], "d": ["x"] * 5})
    calls: list[list[str]] = []

    def lengths(strings: list[str]) -> Any:
        calls.append(strings)
        return torch.tensor([[len(string), 1.0] for string in strings])

    graph, names = from_tables({"t": frame}, categories=2, text=lengths)
    assert names["t"] == ["c[0]", "c[1]", "c missing", "d=x"]
    assert graph.ndata["x"].tolist() == [
        [2, 1, 0, 1],
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [4, 1, 0, 1],
        [1, 1, 0, 1],
    ]
    assert calls == [["aa", "b", "cccc"]]


KEYS: dict[str, tuple[Any, Any]] = {
    "floats, as missing values make them": ([3, 1, 2], [1.0, np.nan, 2.0]),
    "nullable": (pd.array([3, 1, 2], dtype="Int64"), pd.array([1, None, 2], dtype="Int64")),
    "objects": (pd.Series([3, 1, 2], dtype=object), pd.Series([1, None, 2], dtype=object)),
    "decimals": ([3, 1, 2], [D(1), None, D(2)]),
    "strings": (["c", "a", "b"], ["a", None, "b"]),
    "categories": (pd.Categorical(["c", "a", "b"]), pd.Categorical(["a", None, "b"])),
    "days": (["2020-01-03", "2020-01-01", "2020-01-02"], ["2020-01-01", None, "2020-01-02"]),
    "large": ([2**62, 2**62 + 1, 2**62 + 2], pd.array([2**62 + 1, None, 2**62 + 2], dtype="Int64")),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_kind(kind):
    own, foreign = KEYS[kind]
    tables = {"a": pd.DataFrame({"id": own}), "b": pd.DataFrame({"to": foreign, "again": foreign})}
    graph, names = from_tables(
        tables, keys={"a": "id"}, links={"b": {"to": "a", "again": "a"}}, reverse=False
    )
    assert names == {"a": ["one"], "b": ["one"]}
    for relation in ("to", "again"):
        ends = graph.find_edges(list(graph.relations[relation].ids))
        assert [end.tolist() for end in ends] == [[3, 5], [1, 2]]


def test_dangling_keys_may_be_left_out_and_rows_refer_to_their_own_table():
    assert linked([1, 2], [1, 7, 7, None], dangling="drop") == [[2], [0]]
    staff = pd.DataFrame({"id": ["x", "y", "z"], "boss": ["z", None, "z"]})
    graph, names = from_tables({"s": staff}, keys={"s": "id"}, links={"s": {"boss": "s"}})
    assert [end.tolist() for end in graph.edges()] == [[0, 2, 2, 2], [2, 2, 0, 2]]
    assert names == {"s": ["one"]}


def test_any_database_by_sql(tmp_path):
    with sqlite3.connect(tmp_path / "f.db") as database:
        database.execute("create table a(id integer primary key, made text, price real)")
        database.execute("insert into a values (5, '2020-01-01', 1.5), (6, null, null)")
        tables = {"a": pd.read_sql_query("select * from a", database, parse_dates=["made"])}
    database.close()
    names = from_tables(tables, keys={"a": "id"})[1]["a"]
    assert names == [
        "made",
        *(name.replace("c ", "made ", 1) for name in CYCLES),
        "made missing",
        "price",
        "price missing",
    ]


def formula_one(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return tables with keys of their own, and what links them."""
    with np.load(folder / "relational_f1" / "tables.npz") as file:
        arrays = {name: file[name] for name in file if "/" in name}
    frames: dict[str, dict[str, Any]] = {}
    links: dict[str, dict[str, str]] = {}
    for name, array in arrays.items():
        table, column = name.split("/")
        frame = frames.setdefault(table, {})
        if column == "rows":
            frame["id"] = np.arange(int(array)) * 3 + 100
        elif "->" in column:
            column, other = column.split("->")
            links.setdefault(table, {})[column] = other
            frame[column] = np.where(array < 0, np.nan, array * 3.0 + 100)
        else:
            codes = array.dtype == np.int32
            frame[column] = pd.Categorical(np.where(array < 0, None, array)) if codes else array
    for frame in frames.values():
        frame.setdefault("id", np.arange(len(next(iter(frame.values())))) * 3 + 100)
    times = {table: "time" for table, frame in frames.items() if "time" in frame}
    options = {"keys": dict.fromkeys(frames, "id"), "links": links, "times": times}
    return {table: pd.DataFrame(frame) for table, frame in frames.items()}, options


def test_a_real_database(shared_data):
    tables, options = formula_one(shared_data)
    with np.load(shared_data / "relational_f1" / "tables.npz") as file:
        cut = int(file["val_time"])
        arrays = {name: file[name] for name in file if "/" in name}
    graph, names = from_tables(tables, **options, cut=cut, categories=200)
    assert graph.num_nodes == 96725
    for name, rows in arrays.items():
        table, column = name.split("/")
        x = graph.nodes[table].data["x"]
        own = names[table]
        assert x.shape == (len(tables[table]), len(own))
        if "->" in column:
            relation = (table, column.split("->")[0], column.split("->")[1])
            src, dst = graph.find_edges(list(graph.relations[relation].ids))
            known = np.flatnonzero(rows >= 0)
            assert np.array_equal(graph.nodes[table].to_local(src), known)
            assert np.array_equal(graph.nodes[relation[2]].to_local(dst), rows[known])
        elif column == "time":
            assert np.array_equal(graph.nodes[table].data["time"], rows)
        elif rows.dtype == np.float32 and rows.ndim:
            known = ~np.isnan(rows)
            seen = (
                rows[known & (tables[table]["time"].to_numpy() <= cut)]
                if table in options["times"]
                else rows[known]
            )
            wanted = (rows.astype(float) - seen.astype(float).mean()) / seen.astype(float).std()
            np.testing.assert_allclose(
                x[:, own.index(column)][known], wanted[known], rtol=1e-4, atol=1e-5
            )
    batch = NeighborSampler(graph, [4, 4])(graph.nodes["drivers"].to_graph([0, 5]))
    batch.copy_from_parent(["x"], None)
    assert batch.front.of("results").data["x"].shape[1] == len(names["results"])


# encodings that are kept


@given(databases(), st.booleans())
def test_kept_encodings_make_the_same_rows(data, use_cut):
    """Of the whole table, and of its last rows alone, as those of a later state of the tables."""
    columns = {f"c{i}": pd.Series(values, dtype=object) for i, values in enumerate(data["columns"])}
    times = pd.Series(data["times"], dtype=object)
    tables = {"child": pd.DataFrame({"t": times, **columns})}
    cut = data["cut"] if use_cut else None
    graph, names = from_tables(tables, times={"child": "t"}, cut=cut)
    kept = json.loads(json.dumps(names.encodings))
    for rows in (slice(None), slice(len(times) // 2, None)):
        frame = tables["child"][rows][["t", *reversed(columns)]]
        later, again = from_tables({"child": frame}, times={"child": "t"}, encodings=kept)
        assert (again, again.encodings) == (names, kept)
        assert torch.equal(later.nodes["child"].data["x"], graph.nodes["child"].data["x"][rows])


def test_later_values_are_measured_by_what_was_kept():
    goods = pd.DataFrame({"price": [1.0, 3.0], "unit": ["kg", "l"], "sold": [True, False]})
    graph, names = from_tables({"goods": goods})
    dearer = goods.assign(price=goods["price"] * 10, unit=["l", "m"], sold=[None, True])
    later, again = from_tables({"goods": dearer}, encodings=names.encodings)
    assert again["goods"] == ["price", "unit=kg", "unit=l", "sold=False", "sold=True"]
    assert graph.nodes["goods"].data["x"].tolist() == [[-1, 1, 0, 0, 1], [1, 0, 1, 1, 0]]
    assert later.nodes["goods"].data["x"].tolist() == [[8, 0, 1, 0, 0], [28, 0, 0, 0, 1]]
    data = Dataset("goods", graph, feature_names=names)
    assert data.names_of_features() == {"goods": tuple(names["goods"])}
