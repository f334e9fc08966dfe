"""Graphs saved into folders and opened again."""

from __future__ import annotations

import os
import pickle
import time

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.file_formats import changed_manifest, trust_stamps
from _support.graphs import sparse_column
from hypothesis import given, strategies as st
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from nodeflow import Graph, storage
from nodeflow._core.rows.rows import is_read_only
from nodeflow.testing import graphs

TYPES = [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool, torch.complex64]


class Doubled:
    """Rows made when they are fetched: row i holds 2 * i."""

    dtype = torch.float32

    def __init__(self, size: int, width: int, of: torch.dtype = torch.float32) -> None:
        self.shape = (size, width)
        self.of = of
        self.most = 0

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        self.most = max(self.most, len(ids))
        return (2 * ids)[:, None].expand(-1, self.shape[1]).to(self.of)


def same_column(a: Tensor, b: Tensor) -> bool:
    if a.layout != b.layout or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.layout == torch.sparse_csr:
        return bool(torch.equal(a.to_dense(), b.to_dense()))
    return torch.equal(*(torch.cat([x.flatten()]).view(torch.uint8) for x in (a, b)))


def same_graph(a: Graph, b: Graph) -> None:
    assert (a.num_nodes, a.num_edges) == (b.num_nodes, b.num_edges)
    for one, other in zip(a.csc(), b.csc(), strict=True):
        if one is None or other is None:
            assert one is other
        else:
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
    for frame, again in ((a.ndata, b.ndata), (a.edata, b.edata)):
        assert list(frame) == list(again)
        assert all(same_column(frame[name], again[name]) for name in frame)


def example() -> Graph:
    graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 0], num_nodes=4)
    random = np.random.default_rng(0)
    for dtype in TYPES:
        graph.ndata[str(dtype)] = torch.from_numpy(random.normal(0, 9, (4, 3))).to(dtype)
    graph.ndata["sparse"] = sparse_column(csr_array([[0, 1.5], [0, 0], [2, 0], [3, 4]]))
    graph.edata["w"] = torch.rand(4, generator=torch.Generator().manual_seed(0))
    return graph


def test_all_types_of_columns_come_back(tmp_path):
    graph = example()
    graph.save(tmp_path / "g")
    for verify in (False, True):
        opened = Graph.open(tmp_path / "g", verify=verify)
        same_graph(graph, opened)
        assert all(is_read_only(c) for c in opened.ndata.values() if c.layout == torch.strided)
        assert opened.uid != graph.uid
    assert Graph.open(tmp_path / "g").uid != Graph.open(tmp_path / "g").uid


@given(graph=graphs(), data=st.data())
def test_any_graph_comes_back(tmp_path_factory, graph, data):
    names = data.draw(st.lists(st.text(max_size=5), max_size=3, unique=True))
    for name in names:
        graph.ndata[name] = torch.rand(graph.num_nodes, 2)
    folder = tmp_path_factory.mktemp("any") / "g"
    graph.save(folder)
    same_graph(graph, Graph.open(folder, verify=True))


def test_names_of_columns_are_no_names_of_files(tmp_path):
    names = ["a/b", "..", "", "../../x", "名前", "\ud800", "nul\0", "C:\\", "indptr"]
    graph = Graph.from_edges(
        [0], [1], ndata={name: torch.tensor([i, i]) for i, name in enumerate(names)}
    )
    graph.save(tmp_path / "deep" / "g")
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"g"}
    assert all(
        path.is_file() and path.name.isascii() for path in (tmp_path / "deep" / "g").iterdir()
    )
    same_graph(graph, Graph.open(tmp_path / "deep" / "g"))


def test_edge_ids_are_left_out_where_they_are_positions(tmp_path):
    graph = Graph([0, 1, 2], [1, 0])
    graph.save(tmp_path / "g")
    assert Graph.open(tmp_path / "g").csc()[2] is None
    assert not [path for path in (tmp_path / "g").iterdir() if path.name.startswith("edge_ids")]


def test_rows_are_fetched_in_pieces(tmp_path):
    rows = Doubled(100_000, 64)
    Graph(np.zeros(100_001, np.int64), np.zeros(0, np.int64), ndata={"x": rows}).save(
        tmp_path / "g"
    )
    column = Graph.open(tmp_path / "g").ndata["x"]
    assert torch.equal(column[::999, 5], 2.0 * torch.arange(0, 100_000, 999))
    assert rows.most <= 2**24 // 256  # 16 MiB


def test_rows_of_another_type_or_shape_are_refused(tmp_path):
    rows = Doubled(3, 2, torch.float64)
    graph = Graph([0, 0, 0, 0], np.zeros(0, np.int64), ndata={"x": rows})
    with pytest.raises(
        TypeError,
        match=r"column 'x': fetch of Doubled must return torch\.float32, got torch\.float64",
    ):
        graph.save(tmp_path / "g")
    rows.of, rows.fetch = torch.float32, lambda ids, out=None: torch.zeros(1, 2)
    with pytest.raises(ValueError, match=r"must return \[3, 2\] for 3 ids, got \[1, 2\]"):
        graph.save(tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_names_the_files(tmp_path):
    graph = Graph.from_edges(np.arange(5000), np.arange(5000)[::-1].copy())
    graph.ndata["half"] = torch.rand(5000, 4).bfloat16()
    graph.ndata["sparse"] = sparse_column(eye_array(5000, 3, format="csr"))
    graph.edata["w"] = torch.rand(5000)
    graph.save(tmp_path / "g")
    opened = Graph.open(tmp_path / "g")
    pickled = pickle.dumps(opened)
    assert len(pickled) < 4000
    again = pickle.loads(pickled)
    same_graph(graph, again)
    assert again.uid == opened.uid
    assert is_read_only(again.ndata["half"])
    assert len(pickle.dumps(again)) < 4000
    assert torch.equal(
        pickle.loads(pickle.dumps(opened.ndata["half"][7:9])), graph.ndata["half"][7:9]
    )


def test_a_graph_saved_over_its_own_folder_goes_on(tmp_path):
    graph = example()
    graph.save(tmp_path / "g")
    opened = Graph.open(tmp_path / "g")
    before = pickle.dumps(opened)
    opened.ndata["new"] = torch.arange(4)
    opened.save(tmp_path / "g", overwrite=True)
    same_graph(opened, Graph.open(tmp_path / "g", verify=True))
    same_graph(graph, pickle.loads(before))  # unchanged files have their names still
    del opened.ndata["torch.float16"]
    opened.ndata["torch.bfloat16"] = opened.ndata["torch.bfloat16"] + 1
    opened.save(tmp_path / "g", overwrite=True)
    same_graph(opened, Graph.open(tmp_path / "g", verify=True))
    # never another column in its place
    with pytest.raises(FileNotFoundError, match="the pickle names it"):
        pickle.loads(before)
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["arrays"].pop("indices"), "must name the arrays"),
        (lambda m: m["arrays"].update(indptr=m["arrays"]["indices"]), "do not make a graph"),
        (lambda m: m["arrays"].update(edge_ids=m["arrays"]["indptr"]), "do not make a graph"),
        (lambda m: m["facts"].update(ndata=[{"name": "x"}]), "wrong columns in ndata"),
        (
            lambda m: m["facts"].update(ndata=m["facts"]["edata"] + [{"name": 3}]),
            "wrong columns in ndata",
        ),
        (
            lambda m: m["facts"].update(edata=[{"name": "x", "width": None, "arrays": ["indptr"]}]),
            "wrong columns",
        ),
        (
            lambda m: m["arrays"][m["facts"]["ndata"][-1]["arrays"][0]]["csr"].reverse(),
            "rows of|holds|indptr|indices",
        ),
        (
            lambda m: m["facts"]["ndata"].append(m["facts"]["ndata"][0]),
            "wrong columns in ndata: two have one name",
        ),
        (
            lambda m: m["arrays"][m["facts"]["ndata"][-1]["arrays"][0]].update(shape=[4, 1]),
            "column ids go from 0 to 0",
        ),
        (lambda m: m["arrays"]["indices"].update(shape=[-4]), "at least 0"),
        (lambda m: m.update(version=2), "version 2"),
    ],
)
def test_foreign_manifests_are_refused(tmp_path, change, message):
    example().save(tmp_path / "g")
    with changed_manifest(tmp_path / "g") as manifest:
        change(manifest)
    with pytest.raises(ValueError, match=message):
        Graph.open(tmp_path / "g")


@pytest.mark.parametrize(
    "what", ["indptr", "indices", "edge_ids", "ndata6.indptr", "ndata6.indices", "ndata1"]
)
@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_damage_is_found(tmp_path, what, how):
    """Also by whoever trusts the checksums, where a compiled loop would go astray."""
    example().save(tmp_path / "g")
    (file,) = (path for path in (tmp_path / "g").iterdir() if path.name.startswith(f"{what}-"))
    contents = bytearray(file.read_bytes())
    file.unlink()
    if how == "cut":
        file.write_bytes(contents[:-3])
    elif how == "flipped":
        contents[-1] ^= 64
        file.write_bytes(contents)
    for verify in (None,) if what == "ndata1" else (None, False):
        with pytest.raises(ValueError, match=file.name):
            Graph.open(tmp_path / "g", verify=verify)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([0, 2, 1, 4], [1, 1, 0, 2], None), "must not decrease"),
        (([0, 2, 3, 4], [1, 1, 0, 3], None), r"indices\[3\] is 3"),
        (([0, 2, 3, 4], [1, 1, 0, 2], [0, 1, 1, 3]), "permutation"),
    ],
)
def test_verify_checks_the_structure(tmp_path, arrays, message):
    """Of a folder whose checksums are right, as another program may write it."""
    wrong = Graph._trusted(
        [None if a is None else np.array(a) for a in arrays], example().ndata, example().edata
    )
    wrong.ndata.restore({})
    wrong.save(tmp_path / "g")
    trusted = message == "permutation"  # which costs memory, and which no loop relies on
    for verify in (True, None, False)[: 1 if trusted else 3]:
        with pytest.raises(ValueError, match=message):
            Graph.open(tmp_path / "g", verify=verify)


@pytest.mark.parametrize("how", ["foreign", "link", "pipe", "folder"])
def test_a_stamp_that_cannot_be_trusted_is_none(tmp_path, how, monkeypatch):
    trust_stamps(monkeypatch)
    folder = tmp_path / "g"
    stamp = tmp_path / "g" / ".checked"
    example().save(folder)
    (tmp_path / "mine").write_text("precious")
    if how == "foreign":
        stamp.write_text("12\n{}")
    elif how == "link":
        stamp.symlink_to(tmp_path / "mine")
    elif how == "pipe":
        os.mkfifo(stamp)
    else:
        stamp.mkdir()
    time.sleep(0.02)
    same_graph(Graph.open(folder), example())
    assert (tmp_path / "mine").read_text() == "precious"
    (file,) = folder.glob("ndata0-*")
    contents = bytearray(file.read_bytes())
    contents[-1] ^= 1
    file.write_bytes(contents)
    with pytest.raises(ValueError, match=file.name):
        Graph.open(folder)


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Graph.open(tmp_path / "nowhere")
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileNotFoundError, match="has no graph in it"):
        Graph.open(tmp_path / "mine")


def test_sparse_rows_in_a_file_are_written_piece_by_piece(tmp_path):
    storage.save_sparse(tmp_path / "x", scipy.sparse.eye_array(3, format="csr"))
    graph = Graph.from_edges([0, 1], [1, 2], ndata={"x": storage.open(tmp_path / "x")})
    graph.save(tmp_path / "graph")
    assert (
        Graph.open(tmp_path / "graph")
        .ndata["x"]
        .to_dense()
        .equal(torch.eye(3, dtype=torch.float64))
    )


def test_a_column_of_several_arrays_is_refused(tmp_path):
    """As snapshots before the first version wrote sparse columns."""
    graph = Graph.from_edges([0, 1], [1, 2], ndata={"x": torch.eye(3).to_sparse_csr()})
    graph.save(tmp_path / "g")

    with changed_manifest(tmp_path / "g") as manifest:
        array = manifest["arrays"].pop("ndata0")
        indptr, indices = array.pop("csr")
        manifest["arrays"] |= {"a": indptr, "b": indices, "c": {**array, "shape": indices["shape"]}}
        manifest["facts"]["ndata"] = [{"name": "x", "width": 3, "arrays": ["a", "b", "c"]}]
    for verify in (False, True):
        with pytest.raises(ValueError, match="its manifest describes wrong columns in ndata"):
            Graph.open(tmp_path / "g", verify=verify)
