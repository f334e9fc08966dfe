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
from _support.edge_files import same, write
from hypothesis import given, strategies as st

from nodeflow import Graph
from nodeflow.datasets import _edge_files, _sorting, build_graph, node_names, read_edge_list

IDS = st.integers(0, 12)
WHOLE = st.integers(-(2**63), 2**63 - 1)
QUIET: dict[str, Any] = {"progress": False}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and buckets of a few edges."""
    monkeypatch.setattr(_edge_files, "_ROWS", 3)
    monkeypatch.setattr(_edge_files, "_EDGES", 3)
    monkeypatch.setattr(_sorting, "_PIECE", 4)


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
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[tuple[int, int, int, float]],
    cuts: list[int],
    delimiter: str,
    packed: bool,
    header: bool,
    note: str,
    bucket: int,
    in_order: bool,
) -> None:
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


@pytest.mark.parametrize(
    "text", ["0 1\n2 0\n", "from,to\n0,1\n", "dst\tsrc\tw\n0\t1\t2\n", "0;1;5\n"]
)
def test_the_layout_of_a_file_is_found(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "e.txt", text)
    delimiter = ";" if ";" in text else None
    graph = build_graph(file, tmp_path / "g", delimiter=delimiter, **QUIET)
    same(graph, read_edge_list(file, delimiter=delimiter, header=text[0] in "fd"))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int32, np.uint64])
def test_arrays_and_pairs_of_arrays(tmp_path: Path, dtype: type) -> None:
    ends: Any = np.random.default_rng(3).integers(0, 9, (40, 2)).astype(dtype)
    np.save(tmp_path / "both.npy", ends[:17])
    np.save(tmp_path / "src.npy", ends[17:, 0])
    np.save(tmp_path / "dst.npy", ends[17:, 1])
    pair = (tmp_path / "src.npy", tmp_path / "dst.npy")
    same(
        build_graph([tmp_path / "both.npy", pair], tmp_path / "g", **QUIET),
        Graph.from_edges(*ends.astype(np.int64).T),
    )
    same(build_graph(pair, tmp_path / "h", num_nodes=12, **QUIET),
         Graph.from_edges(*ends[17:].astype(np.int64).T, num_nodes=12))  # fmt: skip


def test_the_least_memory_is_that_of_the_guide(tmp_path: Path) -> None:
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
def test_more_edges_into_one_node_than_memory_holds(tmp_path: Path) -> None:
    src = np.arange(300) % 7
    dst = np.where(np.arange(300) % 3, 4, np.arange(300) % 6)
    np.save(tmp_path / "e.npy", np.stack([src, dst], 1))
    graph = build_graph(tmp_path / "e.npy", tmp_path / "g", memory=least(7, 5), **QUIET)
    same(graph, Graph.from_edges(src, dst))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_a_range_has_as_many_nodes_as_fit(degrees: list[int], most: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    bounds = _sorting.ranges_of(indptr, most).tolist()
    assert (bounds[0], bounds[-1]) == (0, len(degrees))
    for low, high in pairwise(bounds):
        assert low < high
        assert sum(degrees[low:high]) <= most or high - low == 1
        assert high == len(degrees) or sum(degrees[low : high + 1]) > most


def test_edges_in_order_need_no_ids(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([[1, 0], [0, 0], [2, 1], [0, 3]]))
    assert build_graph(tmp_path / "e.npy", tmp_path / "g", **QUIET).csc()[2] is None
    assert not [path for path in (tmp_path / "g").iterdir() if path.name.startswith("edge_ids")]


def test_columns_from_files(tmp_path: Path) -> None:
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
def test_named_nodes_are_numbered_in_the_order_of_their_first_edge(tmp_path: Path) -> None:
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


def test_a_name_may_be_a_number(tmp_path: Path) -> None:
    write(tmp_path / "e.tsv", "900\t7\n7\tsrc\n")
    graph = build_graph(tmp_path / "e.tsv", tmp_path / "g", named=True, **QUIET)
    assert list(node_names(tmp_path / "g") or ()) == ["900", "7", "src"]
    assert graph.edges()[0].tolist() == [0, 1]


@pytest.mark.usefixtures("small")
def test_pieces_without_edges(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("# a\n# b\n0,1\n# c\n# d\n\n# e\n \n\n1,2\n")
    same(build_graph(tmp_path / "e.csv", tmp_path / "g", **QUIET), Graph.from_edges([0, 1], [1, 2]))


def test_a_spool_takes_pieces_without_edges(tmp_path: Path) -> None:
    with closing(_sorting.Spool(tmp_path)) as spool:
        spool.append(none := np.zeros(0, np.int64), none)
        assert (spool.num_edges, spool.largest, list(spool.pieces())) == (0, -1, [])


@pytest.mark.usefixtures("small")
def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    arrow = sys.modules["pyarrow"]
    random = np.random.default_rng(1)
    table = {
        "to": random.integers(0, 9, 20),
        "w": random.normal(size=20),
        "src": random.integers(0, 9, 20),
    }
    parquet.write_table(
        arrow.table({"src": table["src"], "dst": table["to"], "w": table["w"]}),
        tmp_path / "e.parquet",
    )
    parquet.write_table(arrow.table(table), tmp_path / "f.parquet")
    wanted = Graph.from_edges(table["src"], table["to"], edata={"w": table["w"]})
    same(build_graph(tmp_path / "e.parquet", tmp_path / "g", **QUIET), wanted)
    same(
        build_graph(tmp_path / "f.parquet", tmp_path / "h", columns=("dst", "w", "src"), **QUIET),
        wanted,
    )
    words = arrow.table({"a": ["x", "y", "z", "x"], "b": ["y", "z", "w", "y"]})
    parquet.write_table(words, tmp_path / "words.parquet")
    graph = build_graph(tmp_path / "words.parquet", tmp_path / "i", named=True, **QUIET)
    assert (graph.num_nodes, list(node_names(tmp_path / "i") or ())) == (4, ["x", "y", "z", "w"])
    with pytest.raises(ValueError, match=r"column 'src' must hold integers \(named=True"):
        build_graph(tmp_path / "words.parquet", tmp_path / "j", **QUIET)
    parquet.write_table(
        arrow.table({"a": [0, 1, 2, 3, None], "b": [1, 2, 3, 4, 5]}), tmp_path / "null.parquet"
    )
    with pytest.raises(ValueError, match=r"null\.parquet, row 4: column 'src' has no entry"):
        build_graph(tmp_path / "null.parquet", tmp_path / "j", **QUIET)
    parquet.write_table(
        arrow.table({"a": [0, 1, 2, 3], "b": [1, 2, 3, -4]}), tmp_path / "negative.parquet"
    )
    with pytest.raises(
        ValueError, match=r"negative\.parquet, row 3: dst must be an integer from 0, got -4"
    ):
        build_graph(tmp_path / "negative.parquet", tmp_path / "j", **QUIET)
    parquet.write_table(
        arrow.table({"src": [0], "dst": [1], "w": arrow.array([2], "int32")}),
        tmp_path / "narrow.parquet",
    )
    parquet.write_table(arrow.table({"src": [0], "dst": [1], "w": [2]}), tmp_path / "wide.parquet")
    with pytest.raises(
        ValueError,
        match=r"wide\.parquet: column 'w' must be torch\.int32 as before, got torch\.int64",
    ):
        build_graph(
            [tmp_path / "narrow.parquet", tmp_path / "wide.parquet"], tmp_path / "j", **QUIET
        )
    with pytest.raises(
        ValueError, match=r"wide\.parquet has 3 columns \(src, dst, w\), but columns names 2"
    ):
        build_graph(tmp_path / "wide.parquet", tmp_path / "j", columns=("src", "dst"), **QUIET)
    parquet.write_table(
        arrow.table({"src": [0], "dst": [1], "w": arrow.array([2**63], "uint64")}),
        tmp_path / "u.parquet",
    )
    with pytest.raises(
        ValueError,
        match=r"u\.parquet: column 'w' holds 9223372036854775808, beyond the largest 64-bit",
    ):
        build_graph(tmp_path / "u.parquet", tmp_path / "j", **QUIET)
    ends = {"src": [0, 1], "dst": [1, 0]}
    for kind in (arrow.list_(arrow.int16()), arrow.list_(arrow.int16(), 2)):
        rows = arrow.array([[1, 2], [3, 4]], kind)
        parquet.write_table(arrow.table({**ends, "w": rows}), tmp_path / "rows.parquet")
        graph = build_graph(tmp_path / "rows.parquet", tmp_path / str(kind), **QUIET)
        assert (graph.edata["w"].dtype, graph.edata["w"][:].tolist()) == (
            torch.int16,
            [[1, 2], [3, 4]],
        )
    for rows, words in (
        ([[1, 2], [3]], "must have lists of one length"),
        ([[1], [None]], "no missing entries"),
    ):
        parquet.write_table(
            arrow.table({**ends, "w": arrow.array(rows)}), tmp_path / "wrong.parquet"
        )
        with pytest.raises(ValueError, match=rf"wrong\.parquet: column 'w' .*{words}"):
            build_graph(tmp_path / "wrong.parquet", tmp_path / "j", **QUIET)
    wider = arrow.table(
        {**ends, "w": arrow.array([[1, 2, 3], [4, 5, 6]], arrow.list_(arrow.int16()))}
    )
    parquet.write_table(wider, tmp_path / "wider.parquet")
    with pytest.raises(
        ValueError, match=r"wider\.parquet: column 'w' must have rows \[2\] as before, got \[3\]"
    ):
        build_graph(
            [tmp_path / "rows.parquet", tmp_path / "wider.parquet"], tmp_path / "j", **QUIET
        )
    parquet.write_table(
        arrow.table({"a": np.zeros(0, np.int64), "b": np.zeros(0, np.int64)}),
        tmp_path / "no.parquet",
    )
    wanted = Graph.from_edges([0], [1], num_nodes=3)
    parquet.write_table(arrow.table({"a": [0], "b": [1]}), tmp_path / "one.parquet")
    both = [tmp_path / "no.parquet", tmp_path / "one.parquet"]
    same(build_graph(both, tmp_path / "k", num_nodes=3, **QUIET), wanted)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "e.parquet").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"cut\.parquet must be a Parquet file"):
        build_graph(tmp_path / "cut.parquet", tmp_path / "j", **QUIET)


def test_a_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_edge_files, "find_spec", lambda name: None)
    write(tmp_path / "e.parquet", "")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        build_graph(tmp_path / "e.parquet", tmp_path / "g", **QUIET)


def test_parquet_names_of_known_types_and_times(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    arrow = sys.modules["pyarrow"]
    file = tmp_path / "e.parquet"

    def built(named: bool = True, **columns: Any) -> Graph:
        parquet.write_table(arrow.table(columns), file)
        return build_graph(file, tmp_path / "g", named=named, overwrite=True, **QUIET)

    ring: dict[str, Any] = {"src": [1, 2, 3], "dst": [2.0, 3.0, 1.0]}
    assert (built(**ring).num_nodes, list(node_names(tmp_path / "g") or ())) == (3, ["1", "2", "3"])
    assert built(named=False, **ring).edges()[1].tolist() == [2, 3, 1]
    built(src=[b"a", b"b"], dst=[b"b", "é".encode()])
    assert list(node_names(tmp_path / "g") or ()) == ["a", "b", "é"]
    built(src=arrow.array(["007", "7"]).dictionary_encode(), dst=["7", "08"])
    assert list(node_names(tmp_path / "g") or ()) == ["007", "7", "08"]
    stamps = arrow.array([1500, 2000], arrow.timestamp("ms", "Europe/Paris"))
    graph = built(
        to=["a", "b"],
        weight=[1, 2],
        **{"from": ["b", "c"]},
        at=stamps,
        day=arrow.array([1, 2], "date32"),
    )
    assert list(node_names(tmp_path / "g") or ()) == ["b", "a", "c"]
    assert {name: column.tolist() for name, column in graph.edata.items()} == {
        "weight": [1, 2], "at": [1.5, 2], "day": [86400, 172800]
    }  # fmt: skip
    # a moment is one word, whatever its unit
    days = [0, 86_400 * 10**9, 86_400 * 10**9 + 1000]
    for unit, scale in (("ns", 1), ("us", 1000)):
        times = arrow.array([time // scale for time in days], arrow.timestamp(unit))
        built(src=times[:2], dst=arrow.array([1, 1], "date32"))
        assert list(node_names(tmp_path / "g") or ()) == ["1970-01-01", "1970-01-02"]
        built(src=times[1:], dst=times[:2])
        assert list(node_names(tmp_path / "g") or ())[2] == "1970-01-02 00:00:00.000001"
        spans = arrow.array([time // scale for time in days[:2]], arrow.duration(unit))
        built(src=spans, dst=spans)
        assert list(node_names(tmp_path / "g") or ()) == ["0:00:00", "1 day, 0:00:00"]
    for columns, words in (
        ({"src": [b"\xff"], "dst": [b"a"]}, r"column 'src', row 0: b'\\xff' is no text in UTF-8"),
        (
            {"src": [1.0], "dst": [2.0**53]},
            r"column 'dst', row 0: floats of float64 do not tell integers",
        ),
        ({"src": [1.0, float("nan")], "dst": [2, 3]}, "row 1: column 'src' has no entry"),
        (
            {"src": arrow.array([1001], "timestamp[ns]"), "dst": ["a"]},
            "'src' must hold dates to the microsecond",
        ),
        (
            {"src": arrow.array([1001], "duration[ns]"), "dst": ["a"]},
            "'src', row 0: a duration .* is finer than microseconds",
        ),
        (
            {"src": [1], "dst": [2], "w": ["red"]},
            r"column 'w' must hold numbers or times, got string; code them",
        ),
        (
            {"src": [1], "dst": [2], "t": arrow.array([1001], "timestamp[ns]")},
            "'t' must hold dates to the microsecond",
        ),
        (
            {"src": [1], "dst": [2], "w": [["red"]]},
            r"column 'w' must hold numbers or times, got list<.*string>; code them",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            built(**columns)
