"""Graph folders built from files of edges equal the graph of the same list in memory."""

from __future__ import annotations

import errno
import gzip
import os
import pickle
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import Graph
from nodeflow.building import _edge_files, _sorting, build_graph, node_names
from nodeflow.datasets import read_edge_list

IDS, WHOLE = st.integers(0, 12), st.integers(-(2**63), 2**63 - 1)
QUIET: dict[str, Any] = {"progress": False}


def same(a: Graph, b: Graph) -> None:
    """Structure, ids of edges and all columns are the same."""
    assert a.num_nodes == b.num_nodes
    assert a.csc()[1].dtype == b.csc()[1].dtype
    for one, other in zip((*a.csc()[:2], a.stored_edge_ids), (*b.csc()[:2], b.stored_edge_ids), strict=True):
        assert np.array_equal(one, other)
    for frame, again in ((a.ndata, b.ndata), (a.edata, b.edata)):
        assert list(frame) == list(again)
        for name in frame:
            assert frame[name].dtype == again[name].dtype
            assert torch.equal(frame[name], again[name])


def write(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


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
    edges=st.lists(st.tuples(IDS, IDS, WHOLE, st.one_of(st.integers(0, 9), st.floats(allow_nan=False)))),
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
    how: dict[str, Any] = {"columns": None if header else ("src", "dst", "when", "how"), "num_nodes": 13}
    how["delimiter"] = ";" if delimiter == ";" else None
    graph = build_graph(files, place / "g", **how, memory=least(13, bucket), **QUIET)
    src, dst = [edge[0] for edge in edges], [edge[1] for edge in edges]
    wanted = Graph.from_edges(src, dst, num_nodes=13)
    if edges:
        wanted.edata["when"] = torch.tensor([edge[2] for edge in edges])
        whole = all(isinstance(edge[3], int) for edge in edges)
        wanted.edata["how"] = torch.tensor([edge[3] for edge in edges], dtype=torch.int64 if whole else torch.float64)
    same(graph, wanted)
    same(Graph.open(place / "g", verify=True), wanted)
    assert not [path for path in (place / "g").iterdir() if path.suffix == ".spool"]
    if len(files) == 1 and edges:
        same(graph, read_edge_list(files[0], **how, header=header))


@pytest.mark.parametrize("text", ["0 1\n2 0\n", "from,to\n0,1\n", "dst\tsrc\tw\n0\t1\t2\n", "0;1;5\n"])
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
    nodes, edges = 50_000, 500_000
    np.save(tmp_path / "e.npy", np.random.default_rng(0).integers(0, nodes, (edges, 2)))
    enough = 21_000_000 + 16 * nodes + 32 * edges // 100
    graph = build_graph(tmp_path / "e.npy", tmp_path / "g", num_nodes=nodes, memory=enough, **QUIET)
    assert graph.num_edges == edges
    with pytest.raises(ValueError, match="memory must be at least 22 MB for 50000 nodes and 500000 edges"):
        build_graph(tmp_path / "e.npy", tmp_path / "less", num_nodes=nodes, memory=enough - 100_000, **QUIET)


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
    rows = [("ann", "b,ob", 1), ("名", "ann", 2), ("b,ob", "cid", 3.5), ("cid", "ann", 4), ("Ann", "7", 5)]
    for name, part in (("a.csv", rows[:3]), ("b.csv.gz", rows[3:])):
        lines = ["dst,w,src"] + [f'{dst if "," not in dst else chr(34) + dst + chr(34)},{w},{chr(34)}{src}{chr(34)}'
                                 for src, dst, w in part]  # fmt: skip
        write(tmp_path / name, "\n".join(lines))
    graph = build_graph([tmp_path / "a.csv", tmp_path / "b.csv.gz"], tmp_path / "g", named=True, **QUIET)
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
def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    arrow = sys.modules["pyarrow"]
    random = np.random.default_rng(1)
    table = {"to": random.integers(0, 9, 20), "w": random.normal(size=20), "src": random.integers(0, 9, 20)}
    parquet.write_table(arrow.table({"src": table["src"], "dst": table["to"], "w": table["w"]}), tmp_path / "e.parquet")
    parquet.write_table(arrow.table(table), tmp_path / "f.parquet")
    wanted = Graph.from_edges(table["src"], table["to"], edata={"w": table["w"]})
    same(build_graph(tmp_path / "e.parquet", tmp_path / "g", **QUIET), wanted)
    same(build_graph(tmp_path / "f.parquet", tmp_path / "h", columns=("dst", "w", "src"), **QUIET), wanted)
    words = arrow.table({"a": ["x", "y", "z", "x"], "b": ["y", "z", "w", "y"]})
    parquet.write_table(words, tmp_path / "words.parquet")
    graph = build_graph(tmp_path / "words.parquet", tmp_path / "i", named=True, **QUIET)
    assert (graph.num_nodes, list(node_names(tmp_path / "i") or ())) == (4, ["x", "y", "z", "w"])
    with pytest.raises(ValueError, match=r"column 'src' must hold integers \(named=True"):
        build_graph(tmp_path / "words.parquet", tmp_path / "j", **QUIET)
    parquet.write_table(arrow.table({"a": [0, 1, 2, 3, None], "b": [1, 2, 3, 4, 5]}), tmp_path / "null.parquet")
    with pytest.raises(ValueError, match=r"null\.parquet, row 4: column 'src' has no entry"):
        build_graph(tmp_path / "null.parquet", tmp_path / "j", **QUIET)
    parquet.write_table(arrow.table({"a": [0, 1, 2, 3], "b": [1, 2, 3, -4]}), tmp_path / "negative.parquet")
    with pytest.raises(ValueError, match=r"negative\.parquet, row 3: dst must be an integer from 0, got -4"):
        build_graph(tmp_path / "negative.parquet", tmp_path / "j", **QUIET)
    parquet.write_table(arrow.table({"a": [0], "b": [1], "w": arrow.array([2], "int32")}), tmp_path / "narrow.parquet")
    parquet.write_table(arrow.table({"a": [0], "b": [1], "w": [2]}), tmp_path / "wide.parquet")
    with pytest.raises(ValueError, match=r"wide\.parquet: column 'w' must be torch\.int32 as before, got torch\.int64"):
        build_graph([tmp_path / "narrow.parquet", tmp_path / "wide.parquet"], tmp_path / "j", **QUIET)
    with pytest.raises(ValueError, match=r"wide\.parquet has 3 columns \(a, b, w\), but columns names 2"):
        build_graph(tmp_path / "wide.parquet", tmp_path / "j", columns=("src", "dst"), **QUIET)
    parquet.write_table(arrow.table({"a": [0], "b": [1], "w": arrow.array([2**63], "uint64")}), tmp_path / "u.parquet")
    with pytest.raises(
        ValueError, match=r"u\.parquet: column 'w' holds 9223372036854775808, beyond the largest 64-bit"
    ):
        build_graph(tmp_path / "u.parquet", tmp_path / "j", **QUIET)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "e.parquet").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"cut\.parquet must be a Parquet file"):
        build_graph(tmp_path / "cut.parquet", tmp_path / "j", **QUIET)


def test_a_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_edge_files, "find_spec", lambda name: None)
    write(tmp_path / "e.parquet", "")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        build_graph(tmp_path / "e.parquet", tmp_path / "g", **QUIET)


# ------------------------------------------------------------------------------------------------------- wrong input

WRONG: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"a.csv": "src,dst\n0,1\n1,2\n2,0\nx,1\n"}, {}, r"a\.csv, line 5: src must be an integer from 0, got 'x'"),
    ({"a.csv": "0,1,3\n\n1,2\n"}, {}, r"a\.csv, line 3: expected 3 columns \(src, dst, c2\), got 2"),
    ({"a.csv": "0,1,3\n1,2,red\n"}, {}, r"a\.csv, line 2: column 'c2' must hold numbers, got 'red'"),
    ({"a.csv": "0,1\n1,2\n2,0\n3,9\n"}, {"num_nodes": 9}, r"a\.csv, line 4: dst .* below num_nodes, 9, got '9'"),
    ({"a.csv": "0,1\n", "b.csv": "0,1\n5\n"}, {}, r"b\.csv, line 2: expected 2 columns"),
    ({"a.csv": "0,1\n", "b.csv": "0,1,2\n"}, {}, r"b\.csv must have the columns of the first file .*\(none\), got c2"),
    ({"a.csv": "s,d,w\n0,1,2\n", "b.csv": "s,d,v\n0,1,2\n"}, {}, r"b\.csv must have .*\(w\), got v"),
    ({"a.csv": ""}, {}, r"a\.csv has no edges; pass num_nodes"),
    ({"a.csv": "0,1\n", "b.csv": "# none\n"}, {}, r"b\.csv has no edges"),
    ({"a.csv": "a,b\nc,d,1\n"}, {"named": True}, r"a\.csv, line 2: expected 2 columns"),
    ({"a.csv": "a,b\nc, \n"}, {"named": True}, r"a\.csv, line 2: the name of dst is empty"),
    ({"a.csv": "a,b,1\nc,d,x\n"}, {"named": True}, r"a\.csv, line 2: column 'c2' must hold numbers, got 'x'"),
    ({"a.csv": "a,b\n"}, {"named": True, "num_nodes": 3}, "num_nodes cannot be given"),
    ({"a.csv": "0,1\n"}, {"columns": ("src", "to")}, "columns must hold 'src', 'dst'"),
    ({"a.csv": "0,1\n"}, {"delimiter": ", "}, "delimiter must be one character"),
    ({"a.csv": "0,1\n"}, {"memory": "much"}, "memory must be a number and a unit"),
    ({"a.csv": "0,1\n"}, {"memory": 1000}, "memory must be at least 21 MB for 2 nodes and 1 edges, got 1000 bytes"),
    ({"a.csv": "0,1\n"}, {"ndata": {"x": torch.ones(3)}, "num_nodes": 2}, "column 'x' must have 2 rows"),
    ({"a.csv": "0,1\n0,5\n"}, {"ndata": {"x": torch.ones(3)}}, r"a\.csv, line 2: dst .* below num_nodes, 3, got '5'"),
    ({"a.csv": "0,1\n"}, {"edata": {"x": torch.ones(3)}}, "column 'x' must have 1 rows"),
    ({"a.csv": "s,d,w\n0,1,2\n"}, {"edata": {"w": torch.ones(1)}}, "edata must not name column 'w'"),
    ({"a.csv": "0,1\n"}, {"split": {"dev": [0]}}, "split must have the parts train, val and test, got 'dev'"),
    ({"a.csv": "0,1\n"}, {"split": {"train": [0], "test": [1, 0]}}, r"split\['test'\] holds node 0"),
    ({"a.csv": "0,1\n"}, {"split": {"train": [0, 1, 0]}}, r"split\['train'\] holds node 0"),
    ({"a.txt.gz.csv": "0,1\n", "b.zip": "x"}, {}, r"edges must be files \.csv.*got .*b\.zip"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "options", "message"), WRONG)
def test_wrong_input_is_named(
    tmp_path: Path, files: dict[str, str], options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_edge_files, "_ROWS", 2)
    (tmp_path / "in").mkdir()
    paths = [write(tmp_path / "in" / name, text) for name, text in files.items()]
    with pytest.raises(ValueError, match=message):
        build_graph(paths, tmp_path / "g", **options, **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_wrong_arrays_are_named(tmp_path: Path) -> None:
    saved = {
        "wide": (np.zeros((2, 5), np.int64), r"must hold integers \[edges, 2\], got int64 \[2, 5\]; save edge_index"),
        "floats": (np.zeros((5, 2)), "must hold integers"),
        "turned": (np.zeros((2, 5), np.int64).T, "Fortran order"),
        "negative": (np.array([[0, 1], [1, -2]]), r"negative\.npy, row 1: dst must be an integer from 0, got -2"),
    }
    for name, (array, message) in saved.items():
        np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises(ValueError, match=message):
            build_graph(tmp_path / f"{name}.npy", tmp_path / "g", **QUIET)
    np.save(tmp_path / "ok.npy", np.array([[0, 1]]))
    np.save(tmp_path / "short.npy", np.arange(3))
    np.save(tmp_path / "long.npy", np.arange(4))
    with pytest.raises(ValueError, match="one row per edge each, got 3 and 4"):
        build_graph((tmp_path / "short.npy", tmp_path / "long.npy"), tmp_path / "g", **QUIET)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "long.npy").read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"cut\.npy must be a \.npy file of edges"):
        build_graph((tmp_path / "cut.npy", tmp_path / "long.npy"), tmp_path / "g", **QUIET)
    np.save(tmp_path / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not numbers"):
        build_graph(tmp_path / "short.npy", tmp_path / "g", ndata={"x": tmp_path / "objects.npy"}, **QUIET)
    np.save(tmp_path / "long_double.npy", np.zeros(3, np.longdouble))
    with pytest.raises(ValueError, match=r"ndata\['x'\]: .*long_double\.npy holds float128"):
        build_graph(tmp_path / "ok.npy", tmp_path / "g", ndata={"x": tmp_path / "long_double.npy"}, **QUIET)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        build_graph(tmp_path / "nowhere.npy", tmp_path / "g", **QUIET)
    np.save(tmp_path / "one.npy", np.array(3.0))
    for name, words in (("one.npy", "one row per node or edge, got a single number"), ("x.npy", "a .npy file of num")):
        (tmp_path / "x.npy").write_text("no array")
        with pytest.raises(ValueError, match=rf"ndata\['x'\]: .*{name} must (be|have) {words}"):
            build_graph(tmp_path / "ok.npy", tmp_path / "g", ndata={"x": tmp_path / name}, **QUIET)
    with pytest.raises(FileNotFoundError, match=r"ndata\['x'\]: there is no file .*nowhere\.npy"):
        build_graph(tmp_path / "ok.npy", tmp_path / "g", ndata={"x": tmp_path / "nowhere.npy"}, **QUIET)
    with pytest.raises(ValueError, match=r"ok\.npy holds numbers, but named=True says"):
        build_graph(tmp_path / "ok.npy", tmp_path / "g", named=True, **QUIET)
    with pytest.raises(ValueError, match=r"a tuple must be two \.npy files.*several files make a list; got"):
        build_graph([(write(tmp_path / "a.csv", "0,1\n"), tmp_path / "a.csv")], tmp_path / "g", **QUIET)
    with pytest.raises(TypeError, match="edges must be a file or a list of files, got int 3"):
        build_graph(3, tmp_path / "g", **QUIET)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one file at least"):
        build_graph([], tmp_path / "g", **QUIET)


def test_a_cut_gz_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "e.csv.gz", "0,1\n" * 5000)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"e\.csv\.gz must be a text file"):
        build_graph(file, tmp_path / "g", **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv.gz"]


# ------------------------------------------------------------------------------------------------------------ faults


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "e.csv", "0,1\n")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        build_graph(tmp_path / "e.csv", tmp_path / "g", **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


@pytest.mark.slow
def test_a_killed_build_leaves_no_graph(tmp_path: Path) -> None:
    write(tmp_path / "e.csv", "0,1\n2,1\n")
    code = """
import sys, time
from nodeflow.building import _build
def wait(*_):
    print("sorting", flush=True)
    time.sleep(60)
_build.sorted_by_destination = wait
_build.build_graph(sys.argv[1], sys.argv[2], progress=False)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "e.csv"), str(tmp_path / "g")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sorting\n"
        with pytest.raises(BlockingIOError, match="another process"):
            build_graph(tmp_path / "e.csv", tmp_path / "g", **QUIET)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "g").exists()
    same(build_graph(tmp_path / "e.csv", tmp_path / "g", **QUIET), Graph.from_edges([0, 2], [1, 1]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "g"]


MEASURE = """
import resource, sys
from nodeflow.building import build_graph
build_graph(sys.argv[2], sys.argv[1] + "/warm", progress=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
build_graph(sys.argv[3], sys.argv[1] + "/g", memory=sys.argv[4], progress=False)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.slow
def test_memory_is_bounded(tmp_path: Path) -> None:
    """The list and the graph are larger than what the process holds."""
    random = np.random.default_rng(0)
    ends = random.integers(0, 100_000, (2_000_000, 2), dtype=np.int64)
    np.save(tmp_path / "e.npy", ends)
    np.save(tmp_path / "few.npy", ends[:100])
    command = [sys.executable, "-c", MEASURE, tmp_path, tmp_path / "few.npy", tmp_path / "e.npy", "30 MB"]
    peak = int(subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout)
    assert peak < 30e6 < ends.nbytes
    assert sum(path.stat().st_size for path in (tmp_path / "g").iterdir()) > 16e6
    same(Graph.open(tmp_path / "g"), Graph.from_edges(ends[:, 0], ends[:, 1]))
