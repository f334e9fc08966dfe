"""read_folder: small folders made here, and the real data sets where they are at hand."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.text_folders import write_files
from hypothesis import given, strategies as st

from nodeflow.datasets import read_folder

# nodes, edges, largest in-degree, features, classes, sizes of the split
REAL = {
    "cora": (2708, 10556, 168, 1433, 7, (140, 500, 1000)),
    "citeseer": (3327, 9228, 99, 3703, 6, (120, 500, 1000)),
    "nell": (65755, 251550, 4549, 5414, 186, (1054, 0, 848)),
    "coauthor_cs": (18333, 163788, 136, 6805, 15, (9166, 4583, 4584)),
    "coauthor_physics": (34493, 495924, 382, 8415, 5, (17246, 8623, 8624)),
    "amazon_computers": (13752, 491722, 2992, 767, 10, (6876, 3438, 3438)),
    "facebook_pages": (22470, 341646, 709, 4714, 4, (11235, 5617, 5618)),
    "flickr_attributed": (7575, 479476, 1881, 12047, 10, (3787, 1893, 1895)),
    "cornell5": (18660, 1581554, 3156, 4735, 2, (8411, 4205, 4206)),
    "deezer_hungary": (47538, 445774, 112, None, 84, (23769, 11884, 11885)),
    "cnr2000_web": (325557, 3216152, 18235, None, 0, (0, 0, 0)),
    "mathoverflow_temporal": (24818, 506550, 5378, None, 0, (0, 0, 0)),
}


@pytest.mark.parametrize("name", REAL)
def test_real(name, real_folder):
    nodes, edges, in_degree, features, classes, split = REAL[name]
    data = read_folder(real_folder(name), labels=classes > 0)
    assert (data.name, data.graph.num_nodes, data.graph.num_edges, data.num_classes) == (
        name,
        nodes,
        edges,
        classes,
    )
    assert int(data.graph.in_degrees().max()) == in_degree
    assert tuple(map(len, data.splits.values())) == split
    if features is None:
        assert "feat" not in data.graph.ndata
    else:
        assert data.graph.ndata["feat"].layout == torch.sparse_csr
        assert data.graph.ndata["feat"].dtype == torch.float32
        assert data.graph.ndata["feat"].shape == (nodes, features)
    assert "weight" not in data.graph.edata
    for ids in data.splits.values():
        label = data.graph.ndata["label"][ids] if len(ids) else torch.zeros(0)
        assert bool((label >= 0).all())


def test_small(folder):
    data = read_folder(folder)
    assert (
        repr(data) == "Dataset(ring: 8 nodes, 8 edges, 3 features, 2 classes, train/val/test 3/1/3)"
    )
    assert data.graph.ndata["label"].tolist() == [0, 1, 0, 1, -1, 1, 0, 1]
    assert torch.equal(data.graph.ndata["feat"].to_dense(), torch.eye(8, 3))
    # of the labelled nodes, the same on every machine
    assert [ids.tolist() for ids in data.splits.values()] == [[2, 3, 5], [7], [0, 1, 6]]
    assert [ends.tolist() for ends in data.graph.edges()] == [list(range(8)), [*range(1, 8), 0]]


@pytest.mark.parametrize(
    ("files", "split"),
    [
        ({"train.npy": [3, 0]}, [[3, 0], [], []]),
        # the other labelled nodes are in no part
        ({"train.npy": [3, 0], "val.npy": [1]}, [[3, 0], [1], []]),
        ({"test.npy": [4]}, [[], [], [4]]),  # without label
    ],
)
def test_parts_are_those_of_the_files(folder, files, split):
    write_files(folder, files)
    assert [ids.tolist() for ids in read_folder(folder).splits.values()] == split


def test_without_labels(folder):
    (folder / "labels.npy").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"has no labels.npy or labels.npz; labels=False reads"
    ):
        read_folder(folder)
    data = read_folder(folder, labels=False)
    assert (data.num_classes, sum(map(len, data.splits.values()))) == (0, 0)
    assert "label" not in data.graph.ndata
    np.save(folder / "train.npy", [1, 2])
    assert read_folder(folder, labels=False).train.tolist() == [1, 2]


def test_weights(folder):
    matrix = scipy.sparse.csr_matrix(([0.5, 1.0], ([0, 3], [1, 2])), shape=(8, 8))
    scipy.sparse.save_npz(folder / "adjacency.npz", matrix)
    weight = read_folder(folder).graph.edata["weight"]
    assert (weight.dtype, weight.tolist()) == (torch.float32, [0.5, 1.0])
    times = [1_700_000_060.5, 1_700_000_061.0]  # float32 would lose a minute
    scipy.sparse.save_npz(
        folder / "adjacency.npz", scipy.sparse.csr_matrix((times, ([0, 3], [1, 2])), shape=(8, 8))
    )
    weight = read_folder(folder).graph.edata["weight"]
    assert (weight.dtype, weight.tolist()) == (torch.float64, times)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_entries_that_repeat_are_parallel_edges(folder, form):
    if form == "coo":
        matrix = scipy.sparse.coo_matrix((np.ones(3), ([0, 0, 1], [1, 1, 2])), shape=(8, 8))
    else:
        kind = scipy.sparse.csr_matrix if form == "csr" else scipy.sparse.csc_matrix
        matrix = kind(
            (np.ones(3), np.array([1, 1, 2]), np.array([0, 2, 3, *[3] * 6])), shape=(8, 8)
        )
    scipy.sparse.save_npz(folder / "adjacency.npz", matrix)
    src, dst = read_folder(folder).graph.edges()
    pairs = sorted(zip(src.tolist(), dst.tolist(), strict=True))
    assert pairs == ([(1, 0), (1, 0), (2, 1)] if form == "csc" else [(0, 1), (0, 1), (1, 2)])


def test_several_labels_per_node(folder):
    write_files(
        folder,
        {"labels.npy": None, "labels.npz": scipy.sparse.csr_matrix(np.eye(8, 5, dtype=np.int8))},
    )
    data = read_folder(folder)
    assert data.num_classes == 5
    assert torch.equal(data.graph.ndata["label"], torch.eye(8, 5))
    assert torch.cat(list(data.splits.values())).sort().values.tolist() == [0, 1, 2, 3, 4]


@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-5, 5)), min_size=1),
    dtype=st.sampled_from([np.int32, np.uint16, np.uint8, np.dtype(">i8")]),
    stated=st.booleans(),
)
def test_table_of_edges_is_read_back(
    tmp_path_factory,
    edges,
    dtype,
    stated,
):
    folder = tmp_path_factory.getbasetemp() / "written"
    folder.mkdir(exist_ok=True)
    src, dst, when = np.array(edges).T
    more = {"num_nodes": np.array(12)} if stated else {}
    ends = {"src": src.astype(dtype), "dst": dst.astype(dtype)}
    np.savez(folder / "edges.npz", **ends, when=when, row=np.array(edges), **more)
    graph = read_folder(folder, labels=False).graph
    assert graph.num_nodes == (12 if stated else max(src.max(), dst.max()) + 1)
    assert [ends.tolist() for ends in graph.edges()] == [src.tolist(), dst.tolist()]
    assert graph.edata["when"].tolist() == when.tolist()
    assert graph.edata["row"].shape == (len(edges), 3)


@pytest.mark.parametrize("name", ["adjacency.npz", "features.npz", "labels.npy"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_file(folder, name, share):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ValueError, match=re.escape(str(folder / name))):
        read_folder(folder)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(tmp_path_factory, at, byte):
    folder = tmp_path_factory.getbasetemp() / "changed"
    folder.mkdir(exist_ok=True)
    np.savez(folder / "edges.npz", src=[0, 1, 2], dst=[1, 2, 0])
    content = bytearray((folder / "edges.npz").read_bytes())
    content[at % len(content)] = byte
    (folder / "edges.npz").write_bytes(content)
    try:
        outcome: object = read_folder(folder, labels=False).graph.num_edges
    except ValueError as error:
        outcome = str(error)
    assert outcome == 3 or "edges.npz" in str(outcome)


def test_files_under_the_names_of_columns_are_read(tmp_path):
    np.savez(tmp_path / "edges.npz", src=[0, 1], dst=[1, 2])
    np.save(tmp_path / "feat.npy", np.ones((3, 2), np.float32))
    np.save(tmp_path / "label.npy", [0, 1, 0])
    data = read_folder(tmp_path)
    assert data.graph.ndata["feat"].tolist() == [[1, 1]] * 3
    assert data.graph.ndata["label"].tolist() == [0, 1, 0]
    assert data.unread_files == ()


def test_files_that_are_not_read_are_named(tmp_path):
    np.savez(tmp_path / "edges.npz", src=[0, 1], dst=[1, 2])
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    (tmp_path / "y.csv.gz").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("no data")
    data = read_folder(tmp_path, labels=False)
    assert data.unread_files == ("x.npy", "y.csv.gz")
    assert data.info().endswith("not read  x.npy, y.csv.gz")
