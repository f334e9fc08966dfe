"""Graph folders built from files of edges equal the graph of the same list in memory."""

from __future__ import annotations

import pickle
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.edge_files import same, small_pieces, write
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.datasets import _sorting, build_graph, node_names, read_edge_list

IDS = st.integers(0, 12)
WHOLE = st.integers(-(2**63), 2**63 - 1)
QUIET: dict[str, Any] = {"progress": False}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and buckets of a few edges."""
    small_pieces(monkeypatch)


def least(num_nodes: int, edges: int) -> int:
    """Memory for buckets of ``edges`` edges, with pieces of four."""
    return 16 * num_nodes + 80 * (8 + edges)


@pytest.mark.usefixtures("small")
@given(
    edges=st.lists(
        st.tuples(IDS, IDS, WHOLE, st.one_of(st.integers(0, 9), st.floats(allow_nan=False)))
    ),
    cuts=st.lists(st.integers(0, 30), max_size=2),
    delimiter=st.sampled_from([",", "\t", " ", ";", ", "]),
    packed=st.booleans(),
    header=st.booleans(),
    note=st.sampled_from(["\n", "\r\n", "\n\n", " # note\n", "\n# note\n"]),
    bucket=st.integers(1, 40),
    in_order=st.booleans(),
)
def test_text_files_are_one_list(
    tmp_path_factory,
    edges,
    cuts,
    delimiter,
    packed,
    header,
    note,
    bucket,
    in_order,
):
    place = tmp_path_factory.mktemp("text")
    edges = sorted(edges, key=lambda edge: edge[1]) if in_order else edges
    starts = [0, *sorted(min(cut, len(edges)) for cut in cuts), len(edges)]
    files = []
    for at, (start, stop) in enumerate(pairwise(starts)):
        if start == stop:
            continue
        rows = [delimiter.join(("src", "dst", "when", "how"))] * header
        rows += [delimiter.join(map(repr, edge)) for edge in edges[start:stop]]
        files.append(write(place / f"{at}.txt{'.gz' * packed}", note.join(rows) + note))
    if not files:
        files = [write(place / "none.txt", "# nothing\n")]
    how: dict[str, Any] = {
        "columns": None if header else ("src", "dst", "when", "how"),
        "num_nodes": 13,
    }
    how["delimiter"] = ";" if delimiter == ";" else None
    graph = build_graph(files, place / "g", **how, memory=least(13, bucket), **QUIET)
    src = [edge[0] for edge in edges]
    dst = [edge[1] for edge in edges]
    wanted = Graph.from_edges(src, dst, num_nodes=13)
    if edges:
        wanted.edata["when"] = torch.tensor([edge[2] for edge in edges])
        whole = all(isinstance(edge[3], int) for edge in edges)
        wanted.edata["how"] = torch.tensor(
            [edge[3] for edge in edges], dtype=torch.int64 if whole else torch.float64
        )
    same(graph, wanted)
    same(Graph.open(place / "g", verify=True), wanted)
    assert not [path for path in (place / "g").iterdir() if path.suffix == ".spool"]
    if len(files) == 1 and edges:
        same(graph, read_edge_list(files[0], **how, header=header))


@pytest.mark.usefixtures("small")
def test_a_wrong_line_of_a_later_piece_is_named_and_leaves_nothing(tmp_path):
    file = write(tmp_path / "e.csv", "src,dst\n0,1\n1,2\n2,0\n3,1\n1,1\nx,1\n")
    with pytest.raises(ValueError, match=r"e\.csv, line 7: src must be an integer"):
        build_graph(file, tmp_path / "g", **QUIET)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text", ["0 1\n2 0\n", "from,to\n0,1\n", "dst\tsrc\tw\n0\t1\t2\n", "0;1;5\n"]
)
def test_the_layout_of_a_file_is_found(tmp_path, text):
    file = write(tmp_path / "e.txt", text)
    delimiter = ";" if ";" in text else None
    graph = build_graph(file, tmp_path / "g", delimiter=delimiter, **QUIET)
    same(graph, read_edge_list(file, delimiter=delimiter, header=text[0] in "fd"))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32, np.uint64])
def test_arrays(tmp_path, dtype):
    ends: Any = np.random.default_rng(3).integers(0, 9, (40, 2)).astype(dtype)
    files = (tmp_path / "first.npy", tmp_path / "second.npy")
    np.save(files[0], ends[:17])
    np.save(files[1], ends[17:])
    graph = build_graph(files, tmp_path / "g", num_nodes=12, **QUIET)
    same(graph, Graph.from_edges(*ends.astype(np.int64).T, num_nodes=12))


def test_the_least_memory_is_that_of_the_guide(tmp_path):
    nodes = 50_000
    edges = 500_000
    np.save(tmp_path / "e.npy", np.random.default_rng(0).integers(0, nodes, (edges, 2)))
    enough = 21_000_000 + 16 * nodes + 32 * edges // 100
    graph = build_graph(tmp_path / "e.npy", tmp_path / "g", num_nodes=nodes, memory=enough, **QUIET)
    assert graph.num_edges == edges
    with pytest.raises(
        ValueError, match="memory must be at least 22 MB for 50000 nodes and 500000 edges"
    ):
        build_graph(
            tmp_path / "e.npy", tmp_path / "less", num_nodes=nodes, memory=enough - 100_000, **QUIET
        )


@pytest.mark.usefixtures("small")
def test_more_edges_into_one_node_than_memory_holds(tmp_path):
    src = np.arange(300) % 7
    dst = np.where(np.arange(300) % 3, 4, np.arange(300) % 6)
    np.save(tmp_path / "e.npy", np.stack([src, dst], 1))
    graph = build_graph(tmp_path / "e.npy", tmp_path / "g", memory=least(7, 5), **QUIET)
    same(graph, Graph.from_edges(src, dst))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_a_range_has_as_many_nodes_as_fit(degrees, most):
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    bounds = _sorting.ranges_of(indptr, most).tolist()
    assert (bounds[0], bounds[-1]) == (0, len(degrees))
    for low, high in pairwise(bounds):
        assert low < high
        assert sum(degrees[low:high]) <= most or high - low == 1
        assert high == len(degrees) or sum(degrees[low : high + 1]) > most


def test_edges_in_order_need_no_ids(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[1, 0], [0, 0], [2, 1], [0, 3]]))
    assert build_graph(tmp_path / "e.npy", tmp_path / "g", **QUIET).csc()[2] is None
    assert not [path for path in (tmp_path / "g").iterdir() if path.name.startswith("edge_ids")]


def test_columns_from_files(tmp_path):
    write(tmp_path / "e.csv", "0,1\n1,0\n")
    feat = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.save(tmp_path / "feat.npy", feat)
    np.save(tmp_path / "w.npy", np.array([0.5, 2]))
    graph = build_graph(
        tmp_path / "e.csv", tmp_path / "g", ndata={"feat": tmp_path / "feat.npy", "x": torch.arange(5).bfloat16()},
        edata={"w": str(tmp_path / "w.npy"), "list": np.array([1, 2])}, **QUIET,
    )  # fmt: skip
    wanted = Graph.from_edges([0, 1], [1, 0], num_nodes=5)
    wanted.ndata.update({"feat": feat, "x": torch.arange(5).bfloat16()})
    wanted.edata.update({"w": np.array([0.5, 2]), "list": np.array([1, 2])})
    same(graph, wanted)


@pytest.mark.usefixtures("small")
def test_named_nodes_are_numbered_in_the_order_of_their_first_edge(tmp_path):
    rows = [
        ("ann", "b,ob", 1),
        ("名", "ann", 2),
        ("b,ob", "cid", 3.5),
        ("cid", "ann", 4),
        ("Ann", "7", 5),
    ]
    for name, part in (("a.csv", rows[:3]), ("b.csv.gz", rows[3:])):
        lines = ["dst,w,src"] + [f'{dst if "," not in dst else chr(34) + dst + chr(34)},{w},{chr(34)}{src}{chr(34)}'
                                 for src, dst, w in part]  # fmt: skip
        write(tmp_path / name, "\n".join(lines))
    graph = build_graph(
        [tmp_path / "a.csv", tmp_path / "b.csv.gz"], tmp_path / "g", named=True, **QUIET
    )
    wanted, names = Graph.from_named_edges([row[0] for row in rows], [row[1] for row in rows])
    wanted.edata["w"] = torch.tensor([1, 2, 3.5, 4, 5], dtype=torch.float64)
    same(graph, wanted)
    found = node_names(tmp_path / "g")
    assert found is not None
    assert list(found) == list(names)
    assert found == tuple(names)
    assert found[-1] == names[-1]
    assert found[1:3] == tuple(names)[1:3]
    assert pickle.loads(pickle.dumps(found)) == found
    assert node_names_of_plain(tmp_path) is None


def node_names_of_plain(place: Path) -> object:
    np.save(place / "plain.npy", np.array([[0, 1]]))
    build_graph(place / "plain.npy", place / "plain", **QUIET)
    return node_names(place / "plain")


def test_a_name_may_be_a_number(tmp_path):
    write(tmp_path / "e.tsv", "900\t7\n7\tsrc\n")
    graph = build_graph(tmp_path / "e.tsv", tmp_path / "g", named=True, **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == ["900", "7", "src"]
    assert graph.edges()[0].tolist() == [0, 1]


@pytest.mark.usefixtures("small")
def test_pieces_without_edges(tmp_path):
    (tmp_path / "e.csv").write_text("# a\n# b\n0,1\n# c\n# d\n\n# e\n \n\n1,2\n")
    same(build_graph(tmp_path / "e.csv", tmp_path / "g", **QUIET), Graph.from_edges([0, 1], [1, 2]))


def test_a_spool_takes_pieces_without_edges(tmp_path):
    with closing(_sorting.Spool(tmp_path)) as spool:
        spool.append(none := np.zeros(0, np.int64), none)
        assert (spool.num_edges, spool.largest, list(spool.pieces())) == (0, -1, [])


def built(place: Path, *tables: dict[str, Any], **options: Any) -> Graph:
    """Build a graph of Parquet files with these columns."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    files = [place / f"{at}.parquet" for at in range(len(tables))]
    for file, columns in zip(files, tables, strict=True):
        parquet.write_table(sys.modules["pyarrow"].table(columns), file)
    return build_graph(files, place / "g", overwrite=True, **options, **QUIET)


def evaluated(arguments: str, place: Path) -> Graph:
    """Build a graph of columns that are written down as arguments of ``built``."""
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    names = {"built": built, "place": place, "arrow": arrow, "np": np}
    graph: Graph = eval(f"built(place, {arguments})", names)
    return graph


@pytest.mark.usefixtures("small")
def test_parquet(tmp_path):
    random = np.random.default_rng(1)
    src, dst = random.integers(0, 9, (2, 20))
    w = random.normal(size=20)
    wanted = Graph.from_edges(src, dst, edata={"w": w})
    same(built(tmp_path, {"src": src, "dst": dst, "w": w}), wanted)
    table = {"to": dst, "w": w, "src": src}
    same(built(tmp_path, table, columns=("dst", "w", "src")), wanted)
    none = {"a": np.zeros(0, np.int64), "b": np.zeros(0, np.int64)}
    graph = built(tmp_path, none, {"a": [0], "b": [1]}, num_nodes=3)
    same(graph, Graph.from_edges([0], [1], num_nodes=3))
    file = tmp_path / "0.parquet"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"0\.parquet must be a Parquet file"):
        build_graph(file, tmp_path / "j", **QUIET)


@pytest.mark.parametrize("kind", ["arrow.list_(arrow.int16())", "arrow.list_(arrow.int16(), 2)"])
def test_lists_of_one_length_in_parquet_are_rows(kind, tmp_path):
    columns = f"{{'src': [0, 1], 'dst': [1, 0], 'w': arrow.array([[1, 2], [3, 4]], {kind})}}"
    rows = evaluated(columns, tmp_path).edata["w"]
    assert (rows.dtype, rows[:].tolist()) == (torch.int16, [[1, 2], [3, 4]])


REFUSED = {
    "{'a': ['x', 'y'], 'b': ['y', 'z']}": r"column 'src' must hold integers \(named=True",
    "{'a': [0, 1, None], 'b': [1, 2, 5]}": "column 'src' has no entry in row 2",
    "{'a': [0, 1, 2, 3], 'b': [1, 2, 3, -4]}": "row 3: dst must be an integer from 0, got -4",
    "{'src': [0], 'dst': [1], 'w': [2]}, columns=('src', 'dst')": (
        r"has 3 columns \(src, dst, w\), but columns names 2"
    ),
    "{'src': [0], 'dst': [1], 'w': arrow.array([2**63], 'uint64')}": (
        "column 'w' holds 9223372036854775808, beyond the largest 64-bit"
    ),
    (
        "{'src': [0], 'dst': [1], 'w': arrow.array([2], 'int32')}, "
        "{'src': [0], 'dst': [1], 'w': [2]}"
    ): r"column 'w' must be torch\.int32 as before, got torch\.int64",
    "{'src': [0, 1], 'dst': [1, 0], 'w': [[1, 2], [3]]}": "'w' .*must have lists of one length",
    "{'src': [0, 1], 'dst': [1, 0], 'w': [[1], [None]]}": "column 'w' .*no missing entries",
    (
        "{'src': [0], 'dst': [1], 'w': [[1, 2]]}, {'src': [0], 'dst': [1], 'w': [[1, 2, 3]]}"
    ): r"column 'w' must have rows \[2\] as before, got \[3\]",
    "{'src': [b'\\xff'], 'dst': [b'a']}, named=True": (
        r"column 'src', row 0: b'\\xff' is no text in UTF-8"
    ),
    "{'src': [1.0], 'dst': [2.0**53]}, named=True": (
        "column 'dst', row 0: floats of float64 do not tell integers"
    ),
    "{'src': [1.0, float('nan')], 'dst': [2, 3]}, named=True": "column 'src' has no entry in row 1",
    "{'src': arrow.array([1001], 'timestamp[ns]'), 'dst': ['a']}, named=True": (
        "'src' must hold dates to the microsecond"
    ),
    "{'src': arrow.array([1001], 'duration[ns]'), 'dst': ['a']}, named=True": (
        "'src', row 0: a duration .* is finer than microseconds"
    ),
    "{'src': [1], 'dst': [2], 'w': ['red']}": (
        "column 'w' must hold numbers or times, got string; code them"
    ),
    "{'src': [1], 'dst': [2], 't': arrow.array([1001], 'timestamp[ns]')}": (
        "'t' must hold dates to the microsecond"
    ),
    "{'src': [1], 'dst': [2], 'w': [['red']]}": (
        "column 'w' must hold numbers or times, got list<.*string>; code them"
    ),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("arguments", "words"), REFUSED.items())
def test_what_parquet_cannot_say_of_edges(arguments, words, tmp_path):
    with pytest.raises(ValueError, match=rf"\d\.parquet.*{words}"):
        evaluated(arguments, tmp_path)


def test_a_missing_pyarrow_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write(tmp_path / "e.parquet", "")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        build_graph(tmp_path / "e.parquet", tmp_path / "g", **QUIET)


DAYS = "[0, 86_400 * 10**6, 86_400 * 10**6 + 1]"
NAMES = {
    "{'a': ['x', 'y', 'z', 'x'], 'b': ['y', 'z', 'w', 'y']}": ["x", "y", "z", "w"],
    "{'src': [1, 2, 3], 'dst': [2.0, 3.0, 1.0]}": ["1", "2", "3"],
    "{'src': [b'a', b'b'], 'dst': [b'b', 'é'.encode()]}": ["a", "b", "é"],
    "{'src': arrow.array(['007', '7']).dictionary_encode(), 'dst': ['7', '08']}": [
        "007",
        "7",
        "08",
    ],
    # a moment is one word, whatever its unit
    f"{{'src': arrow.array({DAYS}[:2], 'timestamp[us]'), 'dst': arrow.array([1, 1], 'date32')}}": [
        "1970-01-01",
        "1970-01-02",
    ],
    f"{{'a': arrow.array({DAYS}, 'timestamp[us]').cast('timestamp[ns]'), 'b': [b'x'] * 3}}": [
        "1970-01-01",
        "x",
        "1970-01-02",
        "1970-01-02 00:00:00.000001",
    ],
    f"{{'a': arrow.array({DAYS}[:2], 'duration[us]'), 'b': ['x'] * 2}}": [
        "0:00:00",
        "x",
        "1 day, 0:00:00",
    ],
}


@pytest.mark.parametrize(("columns", "names"), NAMES.items())
def test_names_of_known_types_in_parquet(columns, names, tmp_path):
    evaluated(f"{columns}, named=True", tmp_path)
    assert list(node_names(tmp_path / "g") or ()) == names


def test_times_in_parquet_are_seconds(tmp_path):
    columns = (
        "{'to': ['a', 'b'], 'weight': [1, 2], 'from': ['b', 'c'], "
        "'at': arrow.array([1500, 2000], arrow.timestamp('ms', 'Europe/Paris')), "
        "'day': arrow.array([1, 2], 'date32')}"
    )
    graph = evaluated(f"{columns}, named=True", tmp_path)
    assert list(node_names(tmp_path / "g") or ()) == ["b", "a", "c"]
    assert {name: column.tolist() for name, column in graph.edata.items()} == {
        "weight": [1, 2],
        "at": [1.5, 2],
        "day": [86400, 172800],
    }
    graph = evaluated("{'src': [1, 2, 3], 'dst': [2.0, 3.0, 1.0]}", tmp_path)
    assert graph.edges()[1].tolist() == [2, 3, 1]
