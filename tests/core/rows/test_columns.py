"""What a column may hold, of tensors, arrays and tables: converted exactly, or refused by name,
never changed.
"""

from __future__ import annotations

import warnings
from decimal import Decimal  # noqa: F401 (named in REFUSED)
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from nodeflow import (
    Frame,
    FullSampler,
    Graph,
    LinkSampler,
    NodeFlowLoader,
    SeedTable,
    storage,
    transform,
)
from nodeflow._core.base.dtypes import COLUMN_TYPES, WIDER
from nodeflow.convert import from_edge_table, from_networkx, from_tables
from nodeflow.graph import NodeNames

polars = pytest.importorskip("polars")
arrow = pytest.importorskip("pyarrow")

BIG = 2**53 + 1  # float64 does not have it
LISTS = [[1, BIG], [3, 4], [5, 6]]
HOLED = [[1, 2], [3, None], [5, 6]]


def in_frame(column: Any) -> torch.Tensor:
    return Graph.from_edges([0, 1], [1, 2], ndata={"x": column}).ndata["x"]


def in_table(column: Any) -> torch.Tensor:
    return from_edge_table({"src": [0, 1, 2], "dst": [1, 2, 0], "x": column})[0].edata["x"]


EXACT: dict[str, str] = {
    "np.array([0, 1, 65535], np.uint16)[::-1]": "[65535, 1, 0], torch.int32",
    "np.array([1, 2, 2 ** 32 - 1], '>u4')": "[1, 2, 2 ** 32 - 1], torch.int64",
    "np.array([1, 2, 2 ** 63 - 1], np.uint64)": "[1, 2, 2 ** 63 - 1], torch.int64",
    "np.array([1, 2, BIG], np.longlong)": "[1, 2, BIG], torch.int64",
    "np.array([1, 2, BIG], np.ulonglong)": "[1, 2, BIG], torch.int64",
    "torch.tensor([1, 2, 2 ** 32 - 1]).to(torch.uint32)": "[1, 2, 2 ** 32 - 1], torch.int64",
    "pd.array([BIG, 2, 3], 'Int64')": "[BIG, 2, 3], torch.int64",
    "pd.Series([1, 2, 3], dtype='UInt16')": "[1, 2, 3], torch.int32",
    "pd.Series([True, False, True], dtype='boolean')": "[True, False, True], torch.bool",
    "pd.Series([BIG, 2, 3], dtype='int64[pyarrow]')": "[BIG, 2, 3], torch.int64",
    ("pd.Series(LISTS, dtype=pd.ArrowDtype(arrow.list_(arrow.int64())))"): "LISTS, torch.int64",
    "pd.Series(LISTS)": "LISTS, torch.int64",
    "pd.Series([BIG, 2, 2], dtype='category')": "[BIG, 2, 2], torch.int64",
    "pd.DataFrame({'a': [1, 2, 3], 'b': [True, False, True]})": (
        "[[1, 1], [2, 0], [3, 1]], torch.int64"
    ),
    "polars.Series([1, 2, 3], dtype=polars.UInt32)": "[1, 2, 3], torch.int64",
    "polars.Series([True, False, True])": "[True, False, True], torch.bool",
    "polars.Series(LISTS)": "LISTS, torch.int64",
    "polars.Series([[]] * 3, dtype=polars.List(polars.Int64))": "[[]] * 3, torch.int64",
    "polars.Series(LISTS, dtype=polars.Array(polars.Int64, 2))": "LISTS, torch.int64",
    "polars.DataFrame({'a': [1, 2, 3], 'b': [BIG, 5, 6]})": (
        "[[1, BIG], [2, 5], [3, 6]], torch.int64"
    ),
    "arrow.array([1, 2, BIG])": "[1, 2, BIG], torch.int64",
    "arrow.array([True, False, True])": "[True, False, True], torch.bool",
    "arrow.chunked_array([[1, 2], [BIG]])": "[1, 2, BIG], torch.int64",
    "arrow.array([[0, 0], *LISTS])[1:]": "LISTS, torch.int64",
    "arrow.array(LISTS, arrow.list_(arrow.uint64(), 2))": "LISTS, torch.int64",
    "arrow.array([5, BIG, 5]).dictionary_encode()": "[5, BIG, 5], torch.int64",
    "polars.Series([1.0, float('inf'), 2.0])": "[1.0, float('inf'), 2.0], torch.float64",
}
"""Columns of three rows, and the values and type that they have as a tensor."""


@pytest.mark.parametrize("made", EXACT)
@pytest.mark.parametrize("enter", [in_frame, in_table])
def test_what_is_exact_is_taken(made, enter):
    column = enter(eval(made))
    assert (column.tolist(), column.dtype) == eval(EXACT[made])


MISSING: dict[str, int] = {
    "pd.array([BIG, None, 3], 'Int64')": 1,
    "pd.Series([True, None, True], dtype='boolean')": 1,
    "pd.Series([1.5, 2, None], dtype='Float32')": 2,
    "pd.Series([None, 1, 2], dtype='category')": 0,
    "pd.Series([BIG, None, 3], dtype='int64[pyarrow]')": 1,
    "pd.DataFrame({'a': pd.array([1, None, 3], 'Int64')})": 1,
    "polars.Series([BIG, None, 3])": 1,
    "polars.Series([1.0, None, 3.0])": 1,
    "polars.Series(HOLED)": 1,
    (
        "polars.Series([[[1, 2]], [[3, 4]], [[5, None]]], dtype=polars.Array(polars.Int64, (1, 2)))"
    ): 2,
    "arrow.array([1, None, 3])": 1,
    "arrow.chunked_array([[1, 2], [None]])": 2,
    "arrow.array(HOLED)": 1,
    ("arrow.array([[1, 2], None, [5, 6]], arrow.list_(arrow.int8(), 2))"): 1,
    ("arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 0]), arrow.array([5, None]))"): 1,
}
"""Columns with a missing entry, and its row."""


@pytest.mark.parametrize(("made", "row"), MISSING.items())
def test_missing_entries_are_refused_with_column_and_row(made, row):
    words = rf"column 'x'.* must have no missing entries, but row {row} has one; .*fillna"
    with pytest.raises(TypeError, match=words):
        in_frame(eval(made))
    with pytest.raises(ValueError, match=f"edges: {words}"):
        in_table(eval(made))


def quantised(kind: torch.dtype, size: int = 3) -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):
        return torch.quantize_per_tensor(torch.ones(size), 0.1, 0, kind)


def halves() -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):
        return torch.ones(3).to(torch.complex32)


def nested() -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):
        return torch.nested.nested_tensor([torch.ones(1), torch.ones(2), torch.ones(1)])


def masked() -> torch.Tensor:
    with warnings.catch_warnings(action="ignore"):
        return torch.masked.masked_tensor(torch.ones(3), torch.tensor([True, False, True]))


REFUSED: dict[str, str] = {
    **{
        f"quantised(torch.{kind})": rf"numbers of type torch\.{kind}.*dequantize\(\)"
        for kind in ("qint8", "quint8", "qint32")
    },
    **{
        f"torch.ones(3).to(torch.{kind})": rf"numbers of type torch\.{kind}"
        for kind in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
    },
    "halves()": "numbers of type torch\\.complex32",
    "torch.zeros(3, dtype=torch.uint8).view(torch.bits8)": (
        "torch\\.bits8.*\\.view\\(torch\\.uint8\\)"
    ),
    ("torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)"): "float4_e2m1fn_x2",
    "nested()": "nested tensor",
    "masked()": "masked tensor",
    "torch.eye(3).to_sparse_csc()": "layout torch.sparse_csc",
    "np.array([1, 2 ** 63, 0], np.uint64)": "holds 9223372036854775808.* as entry \\[1\\]",
    "pd.Series([1, 2, 2 ** 64 - 1], dtype='UInt64')": "holds 18446744073709551615",
    "np.ones(3, np.longdouble)": "must hold numbers, got float128|got longdouble",
    "np.zeros(3, [('a', 'i4')])": "must hold numbers",
    "np.array([1, None, 2], object)": "got object such as NoneType None as entry \\[1\\]",
    "arrow.array([Decimal(1)] * 3)": "got object such as Decimal\\('1'\\)",
    "pd.Series(['a', 'b', 'c'], dtype='string')": "got object such as str 'a'",
    "polars.Series([1, 2, 3], dtype=polars.Int128)": "cannot become an array of numbers",
    "polars.Series([{'a': 1, 'b': None}] * 3)": "cannot become an array of numbers",
    "pd.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', 'z']})": "whose column 'b' has dtype",
    "pd.DataFrame({'a': [BIG, 2, 3], 'b': [0.5, 1, 2]})": f"would round {BIG}",
    "pd.Series([[BIG, 0.5], [1, 2], [3, 4]])": f"would round {BIG}",
    "pd.Series([np.array([BIG]), np.array([0.5]), np.array([1])])": f"would round {BIG}",
    "polars.Series([[1, 2], [3], [4, 5]])": "lists of one length, got \\[1, 2\\]",
    "pd.Series([np.ma.array([1, 2], mask=[0, 1])] * 3)": "row 0 is a masked array",
    "scipy.sparse.csr_array(np.eye(3, dtype=np.int64) * BIG)": f"would round {BIG}",
    "scipy.sparse.csr_array(1j * np.eye(3))": "must hold real numbers",
}
"""Columns that torch cannot have, and words of the error."""


@pytest.mark.parametrize(("made", "words"), REFUSED.items())
@pytest.mark.parametrize("enter", [in_frame, in_table])
def test_what_cannot_be_a_column_is_refused_by_name(made, words, enter):
    with pytest.raises((TypeError, ValueError), match=rf"column 'x'.*({words})"):
        enter(eval(made))


def test_the_same_check_is_at_every_entrance():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    batch = FullSampler(graph, 1)([0, 1])
    frames = graph.ndata, graph.edata, batch.layers[0].data, batch.flows[0].data, batch.seed_data
    typed = {"a": {"x": quantised(torch.qint8)}}
    for frame in frames:
        with pytest.raises(TypeError, match=r"column 'q' has numbers of type torch\.quint8"):
            frame["q"] = quantised(torch.quint8, frame.num_rows)
        frame["u"] = torch.ones(frame.num_rows).to(torch.uint16)
        assert frame["u"].dtype == torch.int32
    with pytest.raises(TypeError, match=r"column 'x' has numbers of type torch\.qint8"):
        Graph.typed(typed, {("a", "r", "a"): ([0], [1])})
    with pytest.raises(TypeError, match=r"column 'y' must have no missing entries, but row 1"):
        SeedTable(
            graph,
            None,
            "row",
            data=pd.DataFrame({"row": [0, 1], "y": pd.array([1, None], "Int64")}),
        )
    with pytest.raises(TypeError, match=r"time must have no missing entries, but row 1"):
        SeedTable(graph, None, [0, 1], time=polars.Series([BIG, None]))
    with pytest.raises(TypeError, match=r"column 'f' has numbers of type torch\.uint32"):
        graph.ndata["f"] = Wide()


class Wide:
    """Rows of numbers that torch computes little with."""

    shape = (3,)
    dtype = torch.uint32

    def fetch(self, ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        raise AssertionError("nobody reads them")


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_unsigned_columns_go_through_batches_links_and_transforms(dtype, tmp_path):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], ndata={"x": np.arange(3, dtype=dtype)})
    graph.edata["kind"] = np.array([0, 1, 0], dtype)
    (batch,) = NodeFlowLoader(FullSampler(graph, 1), [1], ndata={0: ["x"]})
    assert batch.inputs["x"].tolist() == [1, 0]
    links = LinkSampler(FullSampler(graph, 1), num_negatives=1, relation="kind")([0, 1])
    assert links.seed_data["kind"].tolist() == [0, 1]
    assert transform.reorder(graph, [2, 0, 1]).ndata["x"].tolist() == [2, 0, 1]
    assert transform.add_reverse_edges(graph).edata["kind"].tolist() == [0, 1, 0, 0, 1, 0]
    graph.save(tmp_path / "g")
    assert Graph.open(tmp_path / "g").ndata["x"].tolist() == [0, 1, 2]


def test_torch_computes_with_every_type_of_columns():
    for dtype in COLUMN_TYPES:
        column = torch.ones(3).to(dtype)
        assert Frame(3, {"x": column})["x"] is column
        ids = torch.tensor([2, 0])
        column[ids] = torch.cat([column, column]).index_select(0, ids)
        assert column.new_zeros(2).masked_scatter(torch.tensor([True, False]), column).tolist() == [
            1,
            0,
        ]
    assert not COLUMN_TYPES & WIDER.keys()
    assert set(WIDER.values()) <= COLUMN_TYPES


def test_sparse_unsigned_and_large_integers():
    values = torch.tensor([1, 2**32 - 1, 3]).to(torch.uint32)
    wide = torch.sparse_csr_tensor([0, 1, 2, 3], [0, 1, 2], values, (3, 3), check_invariants=False)
    assert in_frame(wide).values().tolist() == [1, 2**32 - 1, 3]
    matrix = in_frame(scipy.sparse.csr_array(np.diag([1, 2**24 + 1, 3])))
    assert matrix.values().tolist() == [1, 2**24 + 1, 3]  # float32 would say 2**24


def test_columns_of_tables_that_are_not_there_and_masked_lists():
    with pytest.raises(KeyError, match="edges has no column 'src'; it has 'wer', 'wen'"):
        from_edge_table(pd.DataFrame({"wer": ["ann"], "wen": ["bob"]}))
    for name in ("src", "x"):
        table = {"src": [0, 1], "dst": [1, 0], "x": [0, 1], name: np.ma.array([1, 2], mask=[0, 1])}
        with pytest.raises(TypeError, match=f"edges: column '{name}' must have no missing entries"):
            from_edge_table(table)


def test_rows_of_attributes_are_exact():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([(0, 1)])
    for rows in ([np.array([BIG]), np.array([0.5])], [torch.tensor([BIG]), torch.tensor([0.5])]):
        networkx.set_node_attributes(graph, dict(enumerate(rows)), "x")
        with pytest.raises(ValueError, match=f"node attribute 'x'.*would round {BIG}"):
            from_networkx(graph, node_columns=["x"])
    networkx.set_node_attributes(graph, dict(enumerate(np.array([[1], [2]], np.ulonglong))), "x")
    assert from_networkx(graph, node_columns=["x"])[0].ndata["x"].tolist() == [[1], [2]]


def test_seed_times_of_any_unsigned_type_and_keys_of_float16():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    table = SeedTable(graph, None, [0, 1], time=np.array([5, 2**40], np.ulonglong))
    assert table.time is not None
    assert table.time.tolist() == [5, 2**40]
    assert table.time.dtype == table.data["time"].dtype == torch.int64
    half = (
        pd.DataFrame({"id": np.array([1, 2, 3], np.float16)}),
        pd.DataFrame({"a": np.array([3, 1], np.float16)}),
    )
    typed, _ = from_tables(
        dict(zip("ab", half, strict=True)), keys={"a": "id"}, links={"b": {"a": "a"}}
    )
    assert [end.tolist() for end in typed.edges()] == [[3, 4, 2, 0], [2, 0, 3, 4]]


@pytest.mark.parametrize("dtype", [torch.qint8, torch.uint32])
def test_storage_refuses_them_too(dtype):
    rows = quantised(dtype) if dtype == torch.qint8 else torch.ones(3).to(dtype)
    with pytest.raises(TypeError, match=f"rows has numbers of type {dtype}"):
        storage.Cached(rows, [1, 2, 3], "1 KB")
    with pytest.raises(TypeError, match=rf"tiers\[0\] has numbers of type {dtype}"):
        storage.Tiered([rows])


def test_long_names_are_cut_in_messages_and_reprs():
    name = "n" * 10**6
    graph = Graph.from_edges([0], [1], ndata={name: torch.ones(2)})
    batch = FullSampler(graph, 1)([1])
    batch.copy_from_parent()
    names = NodeNames([name])
    for shown in (graph, graph.ndata, batch.layers[0], names):
        assert "of 1,000,002 characters" in repr(shown)
        assert len(repr(shown)) < 300
    for wrong in (
        lambda: graph.edata[name],
        lambda: graph.ndata["y"],
        lambda: NodeNames(["a"]).index(name),
    ):
        with pytest.raises(KeyError, match="of 1,000,002 characters") as error:
            wrong()
        assert len(str(error.value)) < 400
    with pytest.raises(TypeError, match="of 1,000,002 characters must be a tensor"):
        graph.ndata[name] = [1, 2]
