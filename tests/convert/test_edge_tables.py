"""Tables of edges and nodes: pandas, polars, Arrow, dicts and Arrow streams, by one mechanism."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import numpy as np
import pytest
import torch
from _support.conversions import assert_same_graph, ends, filled
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.convert import from_edge_table, to_edge_table, to_node_table
from nodeflow.testing import graphs

LIBRARIES = ["pandas", "polars", "pyarrow", "a dict"]


def table(library: str, columns: dict[str, Any]) -> Any:
    if library == "a dict":
        return columns
    made = pytest.importorskip(library, reason=f"{library} is not installed")
    return made.table(columns) if library == "pyarrow" else made.DataFrame(columns)


@pytest.mark.parametrize("library", LIBRARIES)
@given(graphs(min_nodes=1), st.sampled_from(["ids", "text", "large"]))
def test_tables_and_back_are_the_same_graph(library, graph, kind):
    filled(graph)
    if graph.num_edges == 0:
        graph.edata.pop("edge_attr")  # without rows, lists do not tell how long they were
    names: Any = {
        "ids": None,
        "text": [f"node {i} \N{GREEK SMALL LETTER ALPHA}" for i in range(graph.num_nodes)],
        "large": [10**15 - i for i in range(graph.num_nodes)],
    }[kind]
    edges = table(library, to_edge_table(graph, names))
    nodes = table(library, to_node_table(graph, names))
    back, given_names = from_edge_table(edges, nodes=nodes)
    assert list(given_names) == list(range(graph.num_nodes) if names is None else names)
    assert all(type(name) is (str if kind == "text" else int) for name in given_names)
    assert_same_graph(back, graph)


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_get_ids_in_the_order_in_which_they_occur(library):
    edges = table(
        library,
        {
            "from": ["cid", "ann", "cid"],
            "to": ["bob", "ann", "bob"],
            "w": [0.5, 1.5, 2.5],
            "k": [1, 2, 3],
        },
    )
    graph, names = from_edge_table(edges, src="from", dst="to", columns=["w"])
    assert (list(names), ends(graph)) == (["cid", "bob", "ann"], [[0, 2, 0], [1, 2, 1]])
    assert (list(graph.edata), graph.edata["w"].tolist()) == (["w"], [0.5, 1.5, 2.5])
    nodes = table(
        library,
        {"name": ["zoe", "ann", "bob", "cid"], "age": [1, 2, 3, 4], "town": ["a", "b", "c", "d"]},
    )
    graph, names = from_edge_table(edges, src="from", dst="to", nodes=nodes, node_columns=["age"])
    assert (graph.num_nodes, ends(graph), graph.ndata["age"].tolist()) == (
        4,
        [[3, 1, 3], [2, 1, 2]],
        [1, 2, 3, 4],
    )
    assert sorted(graph.edata) == ["k", "w"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_missing_entries_are_never_numbers(library):
    made = pytest.importorskip(library)
    column = made.array([1, None], dtype="Int64") if library == "pandas" else [1, None]
    edges = table(library, {"src": ["a", "b"], "dst": ["b", "a"], "w": column})
    with pytest.raises(
        ValueError, match="edges: column 'w' must have no missing entries, but row 1"
    ):
        from_edge_table(edges)
    assert from_edge_table(edges, columns=[])[0].num_edges == 2
    with pytest.raises(ValueError, match="missing"):
        from_edge_table(table(library, {"src": ["a", None], "dst": ["b", "a"]}))
    with pytest.raises(ValueError, match="missing"):
        from_edge_table(table(library, {"src": column, "dst": [1, 1]}))
    nan = from_edge_table(table(library, {"src": [0], "dst": [1], "w": np.array([np.nan])}))[0]
    assert nan.edata["w"].isnan().all()  # NaN is a number


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_categories_dates_and_text(library):
    made = pytest.importorskip(library)
    words = {
        "pandas": lambda: made.Categorical(["x", "y"]),
        "polars": lambda: made.Series(["x", "y"], dtype=made.Categorical),
        "pyarrow": lambda: made.array(["x", "y"]).dictionary_encode(),
    }[library]()
    edges = table(
        library,
        {
            "src": words,
            "dst": words,
            "day": np.array(["2020-01-01", "2020-01-02"], "M8[ms]"),
            "w": [1, 2],
        },
    )
    graph, names = from_edge_table(edges, columns=["w"])
    assert (list(names), graph.edata["w"].tolist()) == (["x", "y"], [1, 2])
    with pytest.raises(
        TypeError, match=r"column 'day' must hold numbers, got datetime64.*seconds of a date"
    ):
        from_edge_table(edges)
    with pytest.raises(
        TypeError, match=r"column 'dst' must hold numbers, got object such as str 'x' as entry"
    ):
        from_edge_table(edges, columns=["dst"])


class OnlyAStream:
    """A table of a library that exports Arrow and nothing else."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.inner.__arrow_c_stream__(requested_schema)


def test_arrow_streams(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    stream = OnlyAStream(pyarrow.table({"src": [5, 5], "dst": [7, 5], "w": [1.0, 2.0]}))
    graph, names = from_edge_table(stream)
    assert (list(names), ends(graph), graph.edata["w"].tolist()) == (
        [5, 7],
        [[0, 0], [1, 0]],
        [1, 2],
    )
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install pyarrow$"):
        from_edge_table(stream)


def test_chunked_arrow_columns():
    pyarrow = pytest.importorskip("pyarrow")
    chunks = {
        "src": pyarrow.chunked_array([[0], [1, 2]]),
        "dst": pyarrow.chunked_array([[1, 2], [0]]),
    }
    graph, names = from_edge_table(
        pyarrow.table({**chunks, "v": pyarrow.chunked_array([[[1, 2]], [[3, 4], [5, 6]]])})
    )
    assert (list(names), ends(graph)) == ([0, 1, 2], [[0, 1, 2], [1, 2, 0]])
    assert graph.edata["v"].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_dict_may_hold_tensors():
    edges = {
        "src": torch.tensor([3, 3]),
        "dst": [4, 3],
        "v": torch.ones(2, 3),
        "b": np.array([True, False]),
    }
    graph, names = from_edge_table(edges)
    assert (list(names), graph.edata["v"].shape, graph.edata["b"].dtype) == (
        [3, 4],
        (2, 3),
        torch.bool,
    )


def test_empty_tables():
    graph, names = from_edge_table({"src": [], "dst": []}, nodes={"name": ["ann", "bob"]})
    assert (graph.num_nodes, graph.num_edges, list(names)) == (2, 0, ["ann", "bob"])
    assert from_edge_table({"src": [], "dst": []})[0].num_nodes == 0


def test_names_of_known_types_and_columns_that_are_chosen():
    graph, names = from_edge_table({"src": ["a\0", "a"], "dst": ["b", "b"]})
    assert (graph.num_nodes, [*names]) == (3, ["a\0", "b", "a"])
    _, known = from_edge_table({"src": [True, False], "dst": np.array([False, False])})
    assert [*known] == [True, False]
    graph = filled(Graph.from_edges([0, 1], [1, 0]), sparse=True)
    assert list(to_node_table(graph, columns=["label"])) == ["name", "label"]
    graph.edata["src"] = torch.ones(2)
    assert "u" in to_edge_table(graph, src="u", dst="v")


def test_a_moment_has_one_name():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    moment = datetime.datetime(2024, 1, 1)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    columns = [
        *(np.array([moment], f"M8[{unit}]") for unit in ("Y", "D", "h", "s", "us", "ns")),
        *(pandas.Series([moment], dtype=f"datetime64[{unit}]") for unit in ("s", "us", "ns")),
        *(polars.Series([moment], dtype=polars.Datetime(unit)) for unit in ("us", "ns")),
        *(arrow.array([moment], arrow.timestamp(unit)) for unit in ("us", "ns")),
        [moment], [moment.date()], [pandas.Timestamp(moment)], [np.datetime64(moment, "ns")],
        arrow.array([moment.date()]),
        pandas.Series(pandas.to_datetime(["2024-01-01 02:00+02:00"])), [moment.replace(hour=2, tzinfo=zone)],
    ]  # fmt: skip
    for column in columns:
        _, names = from_edge_table({"src": column, "dst": [moment]}, nodes={"name": columns[5]})
        assert ([*names], [type(name) for name in names]) == ([moment], [datetime.datetime])
    second = datetime.timedelta(seconds=1)
    for unit in ("s", "us", "ns"):
        spans = np.array([second], f"m8[{unit}]")
        _, names = from_edge_table({"src": spans, "dst": [second]})
        assert [*names] == [second]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_ends_by_title_and_names_of_known_types(kind):
    library = pytest.importorskip(kind)
    table = library.table if kind == "pyarrow" else library.DataFrame
    graph, names = from_edge_table(
        table({"w": [1, 2, 3], "From": [1, 2, 3], "to": [2.0, 3.0, 1.0]})
    )
    assert [end.tolist() for end in graph.edges()] == [[0, 1, 2], [1, 2, 0]]
    assert (list(map(repr, names)), list(graph.edata)) == (["1", "2", "3"], ["w"])
    _, names = from_edge_table(table({"source": [b"a", "é".encode()], "target": [b"b", b"a"]}))
    assert list(names) == ["a", "b", "é"]
    for edges, words in (
        ({"src": [b"\xff"], "dst": [b"a"]}, r"column 'src', row 0: b'\\xff' is no text in UTF-8"),
        (
            {"src": ["1", "2"], "dst": [2, 1]},
            "names must all be strings, or none, but '1' is one, and 2 is not",
        ),
        (
            {"src": [1.0], "dst": [2.0**53]},
            r"column 'dst', row 0: floats of float64 do not tell integers",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            from_edge_table(table(edges))
    with pytest.raises(
        KeyError, match=r"no column 'src'; it has 'a', 'b'; src= and dst= name the ends of edges"
    ):
        from_edge_table(table({"a": ["x"], "b": ["y"]}))
