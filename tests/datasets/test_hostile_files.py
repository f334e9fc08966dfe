"""Files that are damaged, hostile or no files: the number that was written, or an error with file
and line.
"""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from nodeflow._core.base import sizes
from nodeflow.datasets import build_graph, read_edge_list, read_folder, read_ogb

PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (lambda path: path.symlink_to("nowhere"), "is a link to nowhere, where nothing is"),
    "FIFO": (os.mkfifo, "must be a file, but it is a FIFO"),
    "folder": (Path.mkdir, "must be a file, but it is a folder"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "must be a file, but it is a device"),
}
ARRAYS = ["features.npz", "labels.npy", "val.npy", "adjacency.npz", "feat.npy"]


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("name", [*ARRAYS, "nodes.csv", "edges.csv.gz", "manifest.json"])
def test_what_is_no_file_is_named(name, kind, folder):
    make, words = PLACES[kind]
    (folder / name).unlink(missing_ok=True)
    if name == "manifest.json":
        (folder / "adjacency.npz").unlink()
    make(folder / name)
    with pytest.raises(OSError, match=f"{name} {words}"):
        read_folder(folder)


def test_arrays_of_other_formats_are_named(folder):
    content = (folder / "labels.npy").read_bytes()
    with (folder / "labels.npy").open("wb") as file:
        np.savez(file, x=np.zeros(8, np.int64))
    with pytest.raises(
        ValueError,
        match=r"labels\.npy must be a \.npy file of numbers.*it begins with",
    ):
        read_folder(folder)
    (folder / "labels.npy").write_bytes(content[:6] + b"\x03" + content[7:])
    with pytest.raises(ValueError, match=r"labels\.npy .*it begins with b'.x93NUMPY.x03"):
        read_folder(folder)
    (folder / "labels.npy").write_bytes(content)


@pytest.mark.parametrize("kind", PLACES)
def test_lists_of_edges_that_are_no_files(kind, tmp_path):
    make, words = PLACES[kind]
    make(tmp_path / "edges.csv")
    (tmp_path / "raw").mkdir()
    make(tmp_path / "raw" / "num-node-list.csv.gz")
    with pytest.raises(OSError, match=f"edges.csv {words}"):
        read_edge_list(tmp_path / "edges.csv")
    with pytest.raises(OSError, match=f"edges.csv {words}"):
        build_graph([tmp_path / "edges.csv"], tmp_path / "graph")
    with pytest.raises(OSError, match=f"num-node-list.csv.gz {words}"):
        read_ogb(tmp_path)


# text

DIGITS = "9" * 100_000
EDGES = {
    "0,1,99999999999999999999": "column 'w' has '99999999999999999999', beyond 64 bits",
    f"0,1,{DIGITS}": "column 'w' has '9{30}'... of 100,000 characters, beyond 64 bits",
    "0,1,1e400": "column 'w' has '1e400', beyond 64 bits",
    "0,1,-9223372036854775809": "column 'w' has '-9223372036854775809', beyond 64 bits",
    f"0,{DIGITS},1": "dst must be an integer from 0, got '9{30}'... of 100,000 characters",
    "0,1,2\0": "line 3 has a NUL byte",
    "0,1,\ufeff2": "line 3 has a byte order mark",
    "0,1,\udcff2": "line 3 has bytes that are no UTF-8",
}


@pytest.mark.parametrize("first", ["5", "5.5"])
@pytest.mark.parametrize(("line", "words"), EDGES.items(), ids=range(len(EDGES)))
def test_a_list_of_edges_keeps_numbers_or_names_the_line(line, words, first, tmp_path):
    file = tmp_path / "edges.csv"
    file.write_bytes(f"src,dst,w\n1,0,{first}\n{line}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=rf"edges.csv.*{words}") as caught:
        read_edge_list(file, header=True)
    assert "line 3" in str(caught.value)
    with pytest.raises(ValueError, match=rf"edges.csv.*{words}"):
        build_graph([file], tmp_path / "graph")
    file.write_bytes(f"src,dst,w\n1,0,{line.split(',')[2]}\n".encode("utf-8", "surrogateescape"))
    if "dst" not in words:
        with pytest.raises(ValueError, match=r"edges.csv.*line 2"):
            read_edge_list(file, header=True)


@pytest.mark.parametrize(("line", "words"), EDGES.items(), ids=range(len(EDGES)))
def test_a_table_of_edges_keeps_numbers_or_names_the_line(line, words, tmp_path):
    if "dst must" in words:
        return  # any word is a name here
    for first in ("5", "5.5"):
        (tmp_path / "edges.csv").write_bytes(
            f"src,dst,w\n1,0,{first}\n{line}\n".encode("utf-8", "surrogateescape")
        )
        with pytest.raises(
            ValueError, match=r"edges.csv.*line 3.*(beyond 64 bits|has a|has bytes)"
        ):
            read_folder(tmp_path, labels=False)
    (tmp_path / "edges.csv").write_text("a,b\n0,1\n1,0\n")
    (tmp_path / "nodes.csv").write_bytes(
        f"id,w\n0,{first}\n1,{line.split(',')[2]}\n".encode("utf-8", "surrogateescape")
    )
    with pytest.raises(ValueError, match=r"nodes.csv.*line 3.*(beyond 64 bits|has a|has bytes)"):
        read_folder(tmp_path, labels=False)


def test_numbers_that_fit_stay_as_they_are(tmp_path):
    words = ["9223372036854775807", "-9223372036854775808", "7"]
    lines = [f"0,1,{word}" for word in words]
    (tmp_path / "edges.csv").write_text("\n".join(["src,dst,w", *lines]))
    expected = torch.tensor([2**63 - 1, -(2**63), 7])
    assert torch.equal(read_edge_list(tmp_path / "edges.csv", header=True).edata["w"], expected)
    assert torch.equal(read_folder(tmp_path, labels=False).graph.edata["w"], expected)
    (tmp_path / "edges.csv").write_bytes(
        "\n".join(["\ufeffsrc,dst,w", "0,1,1e300", "0,1,-inf", "0,1,1e19"]).encode()
    )
    for graph in (
        read_edge_list(tmp_path / "edges.csv", header=True),
        read_folder(tmp_path, labels=False).graph,
    ):
        assert graph.edata["w"].tolist() == [1e300, -np.inf, 1e19]


def test_a_class_is_not_rounded(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\n0,1\n1,0\n")
    (tmp_path / "nodes.csv").write_text(f"id,label\n0,{2**53 + 1}\n1,\n")
    data = read_folder(tmp_path)
    assert (data.graph.ndata["label"].tolist(), data.class_names) == ([0, -1], (str(2**53 + 1),))


def test_numbers_of_ogb_are_not_infinite(tmp_path):
    files = {
        "raw/edge": "0,1\n",
        "raw/node-label": "1\n0\n",
        "raw/num-node-list": "2\n",
        "raw/node-feat": "1\n1e39\n",
    }
    for name, text in {
        **files,
        "split/a/train": "0\n",
        "split/a/valid": "1\n",
        "split/a/test": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.csv").write_text(text)
    with pytest.raises(
        ValueError, match=r"node-feat.csv, line 2: '1e39' is beyond the largest float32"
    ):
        read_ogb(tmp_path)
    (tmp_path / "raw" / "node-feat.csv").write_text("1\ninf\n")
    assert read_ogb(tmp_path).graph.ndata["feat"].tolist() == [[1.0], [np.inf]]


def test_packed_text_that_is_damaged_is_named(tmp_path):
    packed = gzip.compress(b"2\n")
    damaged = packed[:10] + b"\xff" + packed[11:]  # a block of a kind that there is not
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "num-node-list.csv.gz").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"num-node-list\.csv\.gz must be .*cannot be read"):
        read_ogb(tmp_path)
    (tmp_path / "edges.txt.gz").write_bytes(damaged)
    for read in (
        read_edge_list,
        lambda path: build_graph(path, tmp_path / "graph", progress=False),
    ):
        with pytest.raises(ValueError, match=r"edges\.txt\.gz must be .*cannot be read"):
            read(tmp_path / "edges.txt.gz")


# arrays


def npy(header: bytes, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


HEADERS = {
    "cut": (b"{'descr': '<i8', 'fortran_order': False, 'shape': (8,", "cannot be read"),
    "strange": (b"{'descr': '<i8', 'fortran_order': False, 'shape': (8,), \\\n", "cannot be read"),
    "text": (b"('" + b"\n" * 20, "cannot be read"),
    "deep": (b"(" * 5000, "cannot be read"),
    "call": (b"__import__('os').abort()\n", "cannot be read"),
    "large": (
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }\n",
        "takes 8,000,000,000,",
    ),
    "negative": (
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (-8,), }\n",
        "cannot be read",
    ),
    "longer": (
        b"{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }\n",
        "array int64 .7. takes",
    ),
}


@pytest.mark.parametrize(("header", "words"), HEADERS.values(), ids=HEADERS.keys())
def test_headers_that_are_damaged_or_lie(header, words, folder):
    contents = npy(header, np.arange(8).tobytes())
    (folder / "labels.npy").write_bytes(contents)
    with pytest.raises(ValueError, match=rf"labels\.npy must be .*{words}"):
        read_folder(folder)
    np.save(folder / "labels.npy", np.zeros(8, np.int64))
    (folder / "adjacency.npz").unlink()
    with zipfile.ZipFile(folder / "edges.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("src.npy", contents)
    with pytest.raises(ValueError, match=rf"edges\.npz must be .*{words}"):
        read_folder(folder)
    (folder / "edges.npz").rename(folder / "adjacency.npz")
    with pytest.raises(ValueError, match=rf"adjacency\.npz must be .*{words}"):
        read_folder(folder)


def test_arrays_larger_than_memory_are_refused_before_they_are_read(folder, monkeypatch):
    (folder / "adjacency.npz").unlink()
    np.savez_compressed(
        folder / "edges.npz", src=np.zeros(10**7, np.int64), dst=np.zeros(10**7, np.int64)
    )
    assert (folder / "edges.npz").stat().st_size < 10**6
    np.save(folder / "labels.npy", np.zeros(2000, np.int64))
    for memory, words in (
        (1e8, r"edges\.npz .*takes 160 MB, and this machine has 100 MB of memory; .* build"),
        (1e4, r"labels\.npy .*takes 16.1 kB, and this machine has 10 kB of memory"),
    ):
        monkeypatch.setattr(sizes, "_machine", lambda memory=memory: memory)
        with pytest.raises(ValueError, match=words):
            read_folder(folder)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_indices_outside_of_a_matrix(kind, folder):
    matrix = scipy.sparse.csr_matrix(np.eye(8)).asformat(kind)
    matrix.indices[3] = 99
    scipy.sparse.save_npz(folder / "adjacency.npz", matrix)
    with pytest.raises(ValueError, match=r"adjacency\.npz must be a sparse matrix"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["edges.npz", "adjacency.npz", "features.npz"])
def test_sizes_beyond_memory_are_refused(name, folder):
    huge = 2**45
    corner = scipy.sparse.coo_array(
        ([1.0], ([3], [2])), shape=(huge, huge if name == "adjacency.npz" else 4)
    )
    if name == "edges.npz":
        (folder / "adjacency.npz").unlink()
        np.savez(folder / name, src=[0], dst=[1], num_nodes=huge)
    else:
        scipy.sparse.save_npz(folder / name, corner)
    for other in (
        "features.npz",
        "labels.npy",
        *(f"{part}.npy" for part in ("train", "val", "test")),
    ):
        if other != name:
            (folder / other).unlink(missing_ok=True)
    with pytest.raises(ValueError, match=rf"{name}.*takes"):
        read_folder(folder, labels=False)


@pytest.mark.skipif(
    np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 on this machine"
)
def test_numbers_that_torch_does_not_have_are_refused(folder):
    (folder / "adjacency.npz").unlink()
    np.savez(folder / "edges.npz", src=[0], dst=[1], w=np.zeros(1, np.longdouble))
    with pytest.raises(ValueError, match=r"edges\.npz, array 'w', holds float\d+, which torch"):
        read_folder(folder, labels=False)
