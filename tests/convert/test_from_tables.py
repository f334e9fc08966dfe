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
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import NeighborSampler, NodeFlowLoader, SeedTable, TemporalNeighborSampler
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
        days = [None if v is None else v if kind == "number" else v.timestamp() / 86400 for v in values]
        numbers = [day for day, fits in zip(days, fitted, strict=True) if fits and day is not None]
        mean = sum(numbers) / len(numbers) if numbers else 0.0
        deviation = math.sqrt(sum((n - mean) ** 2 for n in numbers) / len(numbers)) if numbers else 0.0
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
STAMPS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)).map(lambda d: d.replace(tzinfo=UTC))
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
    links = [draw(st.none() | st.sampled_from(parents or [None]) | st.just(1000)) for _ in range(rows)]
    times = [draw(st.none() | STAMPS) for _ in range(rows)]
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), max_size=4))
    columns = [[draw(st.none() | VALUES[kind]) for _ in range(rows)] for kind in kinds]
    kinds = [kind if set(own) != {None} else "number" for kind, own in zip(kinds, columns, strict=True)]
    return {"parents": parents, "links": links, "times": times, "kinds": kinds, "columns": columns, "cut": draw(STAMPS)}


@given(databases(), st.booleans())
def test_the_graph_is_that_of_the_rows(data: dict[str, Any], use_cut: bool) -> None:
    columns = {f"c{i}": pd.Series(values, dtype=object) for i, values in enumerate(data["columns"])}
    keys, times = (pd.Series(data[name], dtype=object) for name in ("links", "times"))
    child = pd.DataFrame({"to": keys, "t": times, **columns})
    child.index = range(5, 5 + len(child))  # an index is not read
    tables = {"child": child, "parent": pd.DataFrame({"id": pd.Series(data["parents"], dtype="int64")})}
    options = {"keys": {"parent": "id"}, "links": {"child": {"to": "parent"}}, "times": {"child": "t"}}
    graph, names = from_tables(tables, **options, cut=data["cut"] if use_cut else None, dangling="drop")
    pairs = [(i, data["parents"].index(key)) for i, key in enumerate(data["links"]) if key in data["parents"]]
    size = len(child)
    ends = graph.find_edges(list(graph.relations["to"].ids))
    assert list(zip(*(end.tolist() for end in ends), strict=True)) == [(src, size + dst) for src, dst in pairs]
    assert list(graph.schema.relations) == [("child", "to", "parent"), ("parent", "rev_to", "child")]
    seconds = [NEVER if time is None else time.timestamp() for time in data["times"]]
    time = graph.nodes["child"].data["time"]
    assert time.dtype == (torch.int64 if all(number == int(number) for number in seconds) else torch.float64)
    assert time.nan_to_num(NEVER).tolist() == seconds
    assert list(graph.nodes["parent"].data) == ["x", "primary_key"]
    fitted = [not use_cut or time is None or time <= data["cut"] for time in data["times"]]
    blocks = [slow(values, fitted, kind) for values, kind in zip(data["columns"], data["kinds"], strict=True)]
    expected = [[number for block in blocks for number in block[row]] for row in range(size)]
    x = graph.nodes["child"].data["x"]
    assert (x.dtype, len(x), x.shape[1]) == (torch.float32, size, len(names["child"]))
    if blocks and size and expected[0]:
        np.testing.assert_allclose(x.numpy(), np.array(expected), rtol=1e-4, atol=1e-4)
    assert torch.equal(graph.nodes["parent"].data["x"], torch.ones(len(data["parents"]), 1))


def one(**columns: Any) -> tuple[list[str], list[list[float]]]:
    graph, names = from_tables({"t": pd.DataFrame(columns)})
    assert graph.ndata["x"].dtype == torch.float32
    return names["t"], graph.ndata["x"].tolist()


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
    "categories": (pd.Categorical(["b", None, "a"], categories=["a", "b", "unused"]), ["c=a", "c=b"]),
    "categories of integers": (pd.Categorical([2, None, 1]), ["c=1", "c=2"]),
    "days": ([DAY, None, datetime.date(1969, 12, 31)], ["c", *CYCLES]),
    "times": (pd.to_datetime(["2020-01-01", None, "1960-02-02"]), ["c", *CYCLES]),
    "times of a zone": (pd.to_datetime(["2020-01-01", None, "1960-02-02"]).tz_localize("Asia/Tokyo"), ["c", *CYCLES]),
    "sparse": (pd.arrays.SparseArray([1.0, np.nan, 2.0]), ["c"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_every_kind(kind: str) -> None:
    values, names = KINDS[kind]
    own, rows = one(c=values)
    assert own == [*names, "c missing"]
    assert rows[1] == [0.0] * len(names) + [1.0]
    assert all(math.isfinite(number) for row in rows for number in row)
    if names[0] == "c" and kind != "nothing":
        assert abs(rows[0][0]) == abs(rows[2][0]) == pytest.approx(1)
    elif kind != "nothing":
        assert (rows[0], rows[2]) == ([0, 1, 0], [1, 0, 0])


def test_numbers_of_any_size() -> None:
    for values in ([1e300, -1e300], [1e-320, 0.0], [1e18 + 1e6, 1e18], np.array([2**64 - 1, 0], np.uint64)):
        assert np.allclose(np.abs(one(c=values)[1]), 1)
    assert one(c=[0.1] * 7)[1] == [[0.0]] * 7
    assert one(c=np.zeros(0)) == (["c"], [])
    for values in ([1.0, math.inf], [0.0, -math.inf]):
        with pytest.raises(ValueError, match="column 'c' of table 't' must hold finite numbers"):
            one(c=values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1], None], "mixed values such as list"),
        ([{"a": 1}], "mixed values such as dict"),
        ([b"a"], "bytes values"),
        ([1, "a"], "mixed-integer values such as int 1"),
        ([1 + 2j], "complex values"),
        (pd.to_timedelta(["1s"]), "timedelta64 values"),
        ([datetime.time(1)], "time values"),
    ],
)
def test_columns_of_other_objects_are_refused_by_name(values: Any, words: str) -> None:
    with pytest.raises(TypeError, match=f"column 'c' of table 't' holds {words}.*; convert it, or name it in drop="):
        one(c=values)
    assert from_tables({"t": pd.DataFrame({"c": values})}, drop={"t": ["c"]})[1] == {"t": ["one"]}


def test_rows_after_the_cut_change_nothing_before() -> None:
    early = pd.DataFrame({"t": [10, 20, None], "n": [1.0, 3.0, None], "s": ["a", "b", "a"]})
    late = pd.DataFrame({"t": [21, 30], "n": [1e6, None], "s": ["new", None]})
    graph, names = from_tables({"e": pd.concat([early, late])}, times={"e": "t"}, cut=20)
    alone, _ = from_tables({"e": early}, times={"e": "t"}, cut=datetime.datetime.fromtimestamp(20, UTC))
    assert names["e"] == ["n", "n missing", "s=a", "s=b"]
    assert torch.equal(graph.ndata["x"][:3], alone.ndata["x"])
    assert graph.ndata["x"][3:, 1:].tolist() == [
        [0, 0, 0],
        [1, 0, 0],
    ]  # "new" and None are all 0
    assert graph.ndata["time"].tolist() == [10, 20, NEVER, 21, 30]


def test_long_text_needs_a_function() -> None:
    frame = pd.DataFrame({"c": ["aa", "b", None, "cccc", "b"], "d": ["x"] * 5})
    calls: list[list[str]] = []

    def lengths(strings: list[str]) -> Any:
        calls.append(strings)
        return torch.tensor([[len(string), 1.0] for string in strings])

    graph, names = from_tables({"t": frame}, categories=2, text=lengths)
    assert names["t"] == ["c[0]", "c[1]", "c missing", "d=x"]
    assert graph.ndata["x"].tolist() == [[2, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 1], [4, 1, 0, 1], [1, 1, 0, 1]]
    assert calls == [["aa", "b", "cccc"]]
    words = r"column 'c' of table 't' has 3 different values, more than categories=2; name it in drop="
    with pytest.raises(ValueError, match=words):
        from_tables({"t": frame}, categories=2)
    with pytest.raises(ValueError, match=r"has 3 different values"):  # categories of numbers are no text
        from_tables({"t": pd.DataFrame({"c": pd.Categorical([1, 2, 3])})}, categories=2, text=lengths)
    for wrong in (lambda strings: np.ones(len(strings)), lambda strings: np.ones((1, 2))):
        with pytest.raises(ValueError, match=r"text must return \[3, width\] for strings of column 'c' of table 't'"):
            from_tables({"t": frame}, categories=2, text=wrong)
    with pytest.raises(ValueError, match="must hold finite numbers"):
        from_tables({"t": frame}, categories=2, text=lambda strings: np.full((len(strings), 1), np.nan))


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
def test_keys_of_every_kind(kind: str) -> None:
    own, foreign = KEYS[kind]
    tables = {"a": pd.DataFrame({"id": own}), "b": pd.DataFrame({"to": foreign, "again": foreign})}
    graph, names = from_tables(tables, keys={"a": "id"}, links={"b": {"to": "a", "again": "a"}}, reverse=False)
    assert names == {"a": ["one"], "b": ["one"]}
    for relation in ("to", "again"):
        ends = graph.find_edges(list(graph.relations[relation].ids))
        assert [end.tolist() for end in ends] == [[3, 5], [1, 2]]


A, B = pd.DataFrame({"id": [1, 2], "n": [0.5, 1.5]}), pd.DataFrame({"to": [1, 7, 7, None]})
LINKED: dict[str, Any] = {"keys": {"a": "id"}, "links": {"b": {"to": "a"}}}


@pytest.mark.parametrize(
    ("tables", "options", "error", "words"),
    [
        ({"a": A, "b": B}, LINKED, ValueError, r"column 'to' of table 'b' has 2 foreign keys that no row of table 'a' "
         r"has, the first 7.0 \(float64, keys are int64\); dangling='drop' leaves them out"),
        ({"a": A.astype({"id": str}), "b": B}, LINKED, ValueError, r"has 3 foreign keys .* the first 1.0 \(float64"),
        ({"a": pd.concat([A, A]), "b": B}, LINKED, ValueError, "'id' of table 'a' is a primary key, but 2 rows have 1"),
        ({"a": pd.DataFrame({"id": [1, None]}), "b": B}, LINKED, ValueError, "is a primary key, but 1 rows have none"),
        ({"a": A}, LINKED, KeyError, "links: no table 'b'; there are 'a'"),
        ({"a": A, "b": B}, {**LINKED, "keys": {}}, KeyError,
         "column 'to' of table 'b' refers to a table without a key, 'a'; there are none"),
        ({"a": A, "b": B}, {**LINKED, "links": {"b": {"to": "c"}}}, KeyError, "without a key, 'c'; there are 'a'"),
        ({"a": A, "b": B}, {**LINKED, "links": {"b": {"x": "a"}}}, KeyError,
         "links: table 'b' has no column 'x'; there are 'to'"),
        ({"a": A}, {"keys": {"a": "no"}}, KeyError, "keys: table 'a' has no column 'no'; there are 'id', 'n'"),
        ({"a": A}, {"keys": {"a": ["id", "n"]}}, TypeError, "keys.* must be the name of one column; join several"),
        ({"a": A}, {"links": {"a": ["id"]}}, TypeError, r"links\['a'\] must be a dict from columns to tables"),
        ({"a": A}, {"times": {"a": "no"}}, KeyError, "times: table 'a' has no column 'no'"),
        ({"a": A}, {"drop": {"a": "id"}}, TypeError, r"drop\['a'\] must be a list of names, got the string 'id'"),
        ({"a": A}, {"drop": {"a": ["no"]}}, KeyError, "drop: table 'a' has no column 'no'"),
        ({"a": A}, {"drop": ["id"]}, TypeError, "drop must be a dict by the names of tables"),
        ({"a": [1]}, {}, TypeError, r"tables\['a'\] must be a data frame of pandas, got list"),
        ([A], {}, TypeError, "tables must be a dict by the names of tables"),
        ({}, {}, ValueError, "nodes must have a type at least"),
        ({"a": pd.DataFrame([[1, 2]], columns=["x", "x"])}, {}, ValueError, "table 'a' has two columns named 'x'"),
        ({"a": pd.DataFrame({"t": ["2020-01-01", "2020-01-01 10:00"]})}, {"times": {"a": "t"}}, ValueError,
         "column 't' of table 'a' must hold dates or seconds, convert it with pandas.to_datetime; "),
        ({"a": pd.DataFrame({"t": [math.inf]})}, {"times": {"a": "t"}}, ValueError, "must hold dates or seconds"),
        ({"a": A}, {"cut": [1]}, ValueError, "cut must hold dates or seconds"),
        ({"a": A}, {"dangling": "keep"}, ValueError, "dangling must be 'error' or 'drop', got 'keep'"),
        ({"a": A}, {"categories": -1}, ValueError, "categories must be at least 0"),
    ],
)  # fmt: skip
def test_wrong_tables(tables: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        from_tables(tables, **options)


def test_dangling_keys_may_be_left_out_and_rows_refer_to_their_own_table() -> None:
    graph, _ = from_tables({"a": A, "b": B}, **LINKED, dangling="drop")
    assert [end.tolist() for end in graph.find_edges(list(graph.relations["to"].ids))] == [[2], [0]]
    staff = pd.DataFrame({"id": ["x", "y", "z"], "boss": ["z", None, "z"]})
    graph, names = from_tables({"s": staff}, keys={"s": "id"}, links={"s": {"boss": "s"}})
    assert [end.tolist() for end in graph.edges()] == [[0, 2, 2, 2], [2, 2, 0, 2]]
    assert names == {"s": ["one"]}


def test_any_database_by_sql(tmp_path: Path) -> None:
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


def test_a_real_database(shared_data: Path) -> None:
    tables, options = formula_one(shared_data)
    with np.load(shared_data / "relational_f1" / "tables.npz") as file:
        cut, arrays = int(file["val_time"]), {name: file[name] for name in file if "/" in name}
    graph, names = from_tables(tables, **options, cut=cut, categories=200)
    assert graph.num_nodes == 96725
    for name, rows in arrays.items():
        table, column = name.split("/")
        x, own = graph.nodes[table].data["x"], names[table]
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
            seen = rows[known & (tables[table]["time"].to_numpy() <= cut)] if table in options["times"] else rows[known]
            wanted = (rows.astype(float) - seen.astype(float).mean()) / seen.astype(float).std()
            np.testing.assert_allclose(x[:, own.index(column)][known], wanted[known], rtol=1e-4, atol=1e-5)
    batch = NeighborSampler(graph, [4, 4])(graph.nodes["drivers"].to_graph([0, 5]))
    batch.copy_from_parent(["x"], None)
    assert batch.front.of("results").data["x"].shape[1] == len(names["results"])


def test_large_keys_as_floats_are_refused() -> None:
    keyed = pd.DataFrame({"k": [2**60 + 1, 2**60 + 2]})
    rows = pd.DataFrame({"t": [2**60 + 2, None, 2**60 + 1]})
    with pytest.raises(ValueError, match=r"holds keys as floats, which tell no integers from 2\*\*53 on apart"):
        from_tables({"t": keyed, "r": rows}, keys={"t": "k"}, links={"r": {"t": "t"}})
    exact = pd.DataFrame({"t": pd.array([2**60 + 2, None, 2**60 + 1], dtype="Int64")})
    graph, _ = from_tables({"t": keyed, "r": exact}, keys={"t": "k"}, links={"r": {"t": "t"}})
    assert graph.find_edges([0, 1])[1].tolist() == [1, 0]


def test_a_cut_without_times_is_refused() -> None:
    with pytest.raises(ValueError, match="cut needs times="):
        from_tables({"t": pd.DataFrame({"v": [1.0, 50.0]})}, cut="2021-01-01")


# encodings that are kept


@given(databases(), st.booleans())
def test_kept_encodings_make_the_same_rows(data: dict[str, Any], use_cut: bool) -> None:
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


def test_later_values_are_measured_by_what_was_kept() -> None:
    goods = pd.DataFrame({"price": [1.0, 3.0], "unit": ["kg", "l"], "sold": [True, False]})
    graph, names = from_tables({"goods": goods})
    dearer = goods.assign(price=goods["price"] * 10, unit=["l", "m"], sold=[None, True])
    later, again = from_tables({"goods": dearer}, encodings=names.encodings)
    assert again["goods"] == ["price", "unit=kg", "unit=l", "sold=False", "sold=True"]
    assert graph.nodes["goods"].data["x"].tolist() == [[-1, 1, 0, 0, 1], [1, 0, 1, 1, 0]]
    assert later.nodes["goods"].data["x"].tolist() == [[8, 0, 1, 0, 0], [28, 0, 0, 0, 1]]
    data = Dataset("goods", graph, feature_names=names)
    assert data.names_of_features() == {"goods": tuple(names["goods"])}


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda t: t | {"b": t["a"]}, {}, "encodings lack the table 'b'"),
        (lambda t: {}, {}, "encodings have, but the tables lack, the table 'a'"),
        (lambda t: {"a": t["a"].assign(z=1)}, {}, "encodings lack the column of table 'a' 'z'"),
        (lambda t: {"a": t["a"][["x"]]}, {}, "encodings have, but the tables lack, the column of table 'a' 'w'"),
        (lambda t: {"a": t["a"].assign(x="one")}, {}, "column 'x' of table 'a' holds string values such as str 'one'"),
        (lambda t: {"a": t["a"].assign(w=5)}, {"text": None}, "column 'w' of table 'a' holds integer values"),
        (lambda t: t, {"text": None}, "was encoded by text=, a function that encodings do not hold: give it again"),
        (lambda t: t, {"cut": 3}, "leave one of the two out"),
    ],
    ids=range(8),
)  # fmt: skip
def test_tables_that_encodings_do_not_fit_are_refused(change: Any, options: Any, words: str) -> None:
    tables = {"a": pd.DataFrame({"x": [1, 2], "w": ["p", "q"]})}
    text = {"text": lambda words: np.ones((len(words), 2))}
    _, names = from_tables(tables, categories=1, **text)
    with pytest.raises((ValueError, TypeError), match=words):
        from_tables(change(tables), encodings=names.encodings, **(text | options))


def times_of(*columns: Any, **options: Any) -> list[torch.Tensor]:
    tables = {f"t{i}": pd.DataFrame({"at": column}) for i, column in enumerate(columns)}
    graph, _ = from_tables(tables, times=dict.fromkeys(tables, "at"), **options)
    return [graph.nodes[name].data["time"] for name in tables]


SECOND = 1704067200
PARTS = ["2024-01-01 00:00:00.1", "2024-01-01 00:00:00.9", None]
AS_TIMES: dict[str, Any] = {
    "strings": PARTS,
    "nanoseconds": pd.to_datetime(PARTS).astype("datetime64[ns]"),
    "milliseconds": pd.to_datetime(PARTS).astype("datetime64[ms]"),
    "a zone": pd.to_datetime(PARTS).tz_localize("UTC").tz_convert("Asia/Tokyo"),
    "datetimes": [None if part is None else datetime.datetime.fromisoformat(part) for part in PARTS],
    "categories": pd.Categorical(pd.to_datetime(PARTS)),
    "floats": [SECOND + 0.1, SECOND + 0.9, None],
    "nullable floats": pd.array([SECOND + 0.1, SECOND + 0.9, None], dtype="Float64"),
    "decimals": [D(f"{SECOND}.1"), D(f"{SECOND}.9"), None],
    "objects": pd.Series([SECOND + 0.1, SECOND + 0.9, None], dtype=object),
}


@pytest.mark.parametrize("kind", AS_TIMES)
def test_no_row_later_than_the_seed_is_read_below_a_second(kind: str) -> None:
    seeds = [SECOND, SECOND + 0.1, SECOND + 0.5, SECOND + 1]
    users, clicks = pd.DataFrame({"id": [1]}), pd.DataFrame({"user": [1, 1, 1], "at": AS_TIMES[kind], "v": [1.0, 2, 3]})
    options: dict[str, Any] = {
        "keys": {"users": "id"},
        "links": {"clicks": {"user": "users"}},
        "times": {"clicks": "at"},
    }
    graph, _ = from_tables({"users": users, "clicks": clicks}, **options)
    assert graph.nodes["clicks"].data["time"][:2].tolist() == [SECOND + 0.1, SECOND + 0.9]
    for strict in (False, True):
        sampler = TemporalNeighborSampler(graph, [-1], strict=strict)
        dates = pd.to_datetime(np.array(seeds) * 1000, unit="ms")
        for times in (seeds, dates, list(dates), dates.to_numpy(), dates.tz_localize("UTC")):
            batch = next(iter(NodeFlowLoader(sampler, SeedTable(graph, "users", [1] * 4, time=times))))
            expected = [1, 1, 2, 3] if strict else [1, 2, 2, 3]  # the row without a time is always there
            assert batch.flows[0].in_degrees[batch.seed_index].tolist() == expected
    for cut, fitted in (
        (SECOND + 0.05, 0),
        ("2024-01-01 00:00:00.1", 1),
        (pd.Timestamp(SECOND * 1000 + 900, unit="ms"), 2),
    ):
        early, late = clicks.iloc[[*range(fitted), 2]], clicks.iloc[fitted:2].assign(v=1e6)
        changed, _ = from_tables({"users": users, "clicks": pd.concat([early, late])}, **options, cut=cut)
        alone, _ = from_tables({"users": users, "clicks": early}, **options, cut=cut)
        x = changed.nodes["clicks"].data["x"][: fitted + 1]
        assert torch.equal(x, alone.nodes["clicks"].data["x"])


def test_all_tables_have_one_clock() -> None:
    whole, parts = times_of([1, None, 20], [0.5, 3, None])
    assert (whole.dtype, parts.dtype) == (torch.float64, torch.float64)
    assert (whole.nan_to_num(NEVER).tolist(), parts.nan_to_num(NEVER).tolist()) == ([1, NEVER, 20], [0.5, 3, NEVER])
    for column in ([1.0, None, 20.0], pd.array([1, None, 20], dtype="Int64"), pd.Series([1, None, 20], dtype=object),
                   [D(1), None, D(20)], pd.Categorical([1, None, 20]),
                   ["1970-01-01 00:00:01", "", "1970-01-01 00:00:20"]):  # fmt: skip
        whole, early = times_of(column, pd.Series([-1, -(10**10)], dtype="int64"))
        assert (whole.dtype, whole.tolist(), early.tolist()) == (torch.int64, [1, NEVER, 20], [-1, -(10**10)])
    assert times_of(["1500-01-01", "9999-12-31"])[0].tolist() == [-14831769600, 253402214400]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([[1_700_000_000_000, None]], r"before the year 10000, but row 0 has 1700000000000.*; pandas.to_datetime"),
        ([[1, 2**63 - 1]], "before the year 10000, but row 1 has 9223372036854775807"),
        ([pd.Series([None, 2**64], dtype=object)], "before the year 10000, but row 1 has 18446744073709551616"),
        ([[20240131, 20240201]], "looks like days such as 20240131, which are seconds of 1970; .*format='%Y%m%d'"),
        ([[19991231.0, None, 20240201]], "looks like days such as 19991231"),
        ([["2024-01-01"], [19_000, 19_001]], "'t1' must hold dates or .*, such as 19000, fall into one day of"),
        ([[1.5, 2], pd.to_datetime(["2024-01-01"])], "'t0' must hold dates or .*, such as 1.5, fall into one day of"),
        ([pd.Series([1, 2**24], dtype="float32")], r"row 1 has 16777216.0 as float32, which has rounded .* 2\*\*24 on"),
        ([pd.array([2**24, None], dtype="Float32")], "row 0 has 16777216.0 as float32"),
        ([pd.Series([2048], dtype="float16")], "row 0 has 2048.0 as float16"),
        ([pd.to_datetime([None, "2024-01-01 00:00:00.000000001"], format="ISO8601")],
         r"to the microsecond, .*, but entry 1 is 2024-01-01T00:00:00.000000001; round rows up, with .dt.ceil\('us'\)"),
        ([[True, False]], "must hold dates or seconds, .*; got boolean values"),
        ([[1, "2024-01-01"]], "must hold dates or seconds, .*; got mixed-integer values"),
        ([pd.to_timedelta([1])], "must hold dates or seconds, .*; got timedelta64 values"),
        ([["now and then"]], "must hold dates or seconds, convert it with pandas.to_datetime; "),
    ],
)  # fmt: skip
def test_times_in_another_unit_are_refused(columns: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"column 'at' of table .*{words}"):
        times_of(*columns)


@pytest.mark.parametrize("cut", [math.nan, pd.NaT, pd.NA, "", np.datetime64("NaT"), None])
def test_a_cut_that_is_no_time_is_refused(cut: Any) -> None:
    if cut is None:
        assert times_of([5], cut=cut)[0].tolist() == [5]
        return
    with pytest.raises(ValueError, match=r"cut must be a time, got .*; leave it out, and all rows count"):
        times_of([5], cut=cut)


@pytest.mark.parametrize(
    ("column", "cut", "words"),
    [
        (
            [1_600_000_000, 1_700_000_000],
            1_700_000_000_000,
            "cut must hold dates or seconds since 1970 before the year",
        ),
        ([1_600_000_000, 1_700_000_000], 20240131, "cut must hold .* looks like days such as 20240131"),
        (["2024-01-01"], 2024, "cut must hold dates or seconds .*, such as 2024, fall into one day of 1970"),
        ([2023, 2024], "2024-01-01", "column 'at' of table 't0' must hold .*, such as 2023, fall into one day of 1970"),
    ],
)
def test_a_cut_in_another_unit_is_refused(column: Any, cut: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        times_of(column, cut=cut)


EXACT: list[tuple[Any, Any, list[int]]] = [
    (np.array([2**64 - 1, 2**63, 5], np.uint64), pd.array([5, None, 2**63], dtype="UInt64"), [2, 1]),
    (np.array([2**64 - 1, 3, 5], np.uint64), pd.array([5, None, 3], dtype="Int64"), [2, 1]),
    (np.array([2**64 - 1, 3, 5], np.uint64), pd.Series([5, None, 3], dtype="int64[pyarrow]"), [2, 1]),
    (np.array([2**62, 2**62 + 1], np.int64), pd.array([2**62 + 1, None], dtype="UInt64"), [1]),
    (np.array([7, 2047], np.float16), np.array([2047, np.nan]), [1]),
    ([1, 2], np.array([2, 1], np.float16), [1, 0]),
    ([2**24, 2**24 + 1], pd.Series([2**24 + 1, None], dtype=object), [1]),
    ([2**53, 2**53 + 1], [D(2**53 + 1), D("nan")], [1]),
    ([1, 2], pd.Categorical([2.0, None]), [1]),
    ([True, False], pd.array([False, None], dtype="boolean"), [1]),
    ([b"a", b"a\0"], pd.Series([b"a\0", None], dtype=object), [1]),
    (pd.to_datetime([0, 1]), pd.to_datetime([1, None]), [1]),
    (pd.to_datetime(["2024-01-01", "2024-01-02"]).astype("datetime64[s]"),
     pd.to_datetime(["2024-01-02", None]).astype("datetime64[ns]"), [1]),
    (pd.Categorical(["b", "a"]), pd.Series(["a", pd.NA], dtype="string"), [1]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(EXACT)))
def test_keys_of_different_types_are_joined_exactly(case: int) -> None:
    own, foreign, to = EXACT[case]
    tables = {"a": pd.DataFrame({"id": own}), "b": pd.DataFrame({"to": foreign})}
    graph, _ = from_tables(tables, keys={"a": "id"}, links={"b": {"to": "a"}}, reverse=False)
    assert graph.find_edges(list(graph.relations["to"].ids))[1].tolist() == to


ROUNDED: list[tuple[Any, int, int]] = [
    (np.array([1, 2**24], np.float32), 24, 1),
    (pd.array([2**24, None], dtype="Float32"), 24, 0),
    (pd.Categorical(np.array([2**24, 1], np.float32)), 24, 0),
    (pd.Series([np.float32(2**24), 1], dtype=object), 24, 0),
    (pd.Series([None, 2**24], dtype="float32[pyarrow]"), 24, 1),
    (np.array([2048], np.float16), 11, 0),
    (np.array([1, np.nan, -(2.0**53)]), 53, 2),
    (pd.Series([None, 2.0**53], dtype=object), 53, 1),
    (pd.Series(["a", 2.0**53], dtype=object), 53, 1),
    (pd.Categorical([2.0**53, None]), 53, 0),
    (pd.arrays.SparseArray([1.0, 2.0**53]), 53, 1),
    (pd.Series([math.inf]), 53, 0),
]


@pytest.mark.parametrize("case", range(len(ROUNDED)))
def test_keys_that_may_be_rounded_are_refused_on_both_sides(case: int) -> None:
    column, digits, row = ROUNDED[case]
    words = rf"holds keys as floats, which tell no integers from 2\*\*{digits} on apart: row {row} has "
    rounded, exact = pd.DataFrame({"k": column}), pd.DataFrame({"k": [1, 2, 2**24, 2**53]})
    for tables in ({"a": exact, "b": rounded}, {"a": rounded.dropna(), "b": exact}):
        with pytest.raises(ValueError, match=words if tables["a"] is exact else "holds keys as floats"):
            from_tables(tables, keys={"a": "k"}, links={"b": {"k": "a"}}, dangling="drop")


@pytest.mark.parametrize("foreign", [["1"], [b"1"], [True], [datetime.datetime(1970, 1, 1)], ["01"], [D(3)]])
def test_keys_of_another_kind_are_no_keys(foreign: Any) -> None:
    tables = {"a": pd.DataFrame({"id": [0, 1]}), "b": pd.DataFrame({"to": pd.Series([None, *foreign], dtype=object)})}
    with pytest.raises(
        ValueError, match=r"column 'to' of table 'b' has 1 foreign keys that .*\(the first is in row 1\)"
    ):
        from_tables(tables, keys={"a": "id"}, links={"b": {"to": "a"}})
    with pytest.raises(ValueError, match=r"hold keys that are whole numbers, words or dates, but row 1 has 1\.5"):
        from_tables({**tables, "b": pd.DataFrame({"to": [1, 1.5]})}, keys={"a": "id"}, links={"b": {"to": "a"}})
    with pytest.raises(TypeError, match=r"'to' of table 'b' must hold keys, .*, but row 0 has list \[1\]"):
        from_tables({**tables, "b": pd.DataFrame({"to": [[1]]})}, keys={"a": "id"}, links={"b": {"to": "a"}})
