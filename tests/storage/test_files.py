"""Rows in files: equal to the tensor, whatever the ids; files that are damaged; processes that
share one.
"""

from __future__ import annotations

import errno
import os
import pickle
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.file_formats import changed_manifest
from _support.mutation_tools import mutated
from hypothesis import given, strategies as st
from safetensors.torch import save_file
from torch import Tensor

from nodeflow import Graph, NeighborSampler, storage
from nodeflow._kernels import reading

can_read_directly = pytest.mark.skipif(
    not hasattr(os, "O_DIRECT"), reason="this system has no O_DIRECT"
)


@pytest.fixture(scope="module")
def column() -> Tensor:
    return torch.randn(1000, 3, 7, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, column: Tensor) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "x.npy", column.numpy())
    (folder / "x.bin").write_bytes(b"head" + column.numpy().tobytes())
    save_file(
        {"x": column, "half": column.bfloat16(), "flag": column > 0}, folder / "x.safetensors"
    )
    return folder


def opened(folder: Path, kind: str, **options: Any) -> storage.FileRows:
    if kind == "npy":
        return storage.open(folder / "x.npy", **options)
    if kind == "raw":
        return storage.open(
            folder / "x.bin", shape=(1000, 3, 7), dtype=torch.float32, offset=4, **options
        )
    return storage.open(folder / "x.safetensors", "x", **options)


@pytest.mark.parametrize("kind", ["npy", "raw", "safetensors"])
@pytest.mark.parametrize("direct", [False, pytest.param(True, marks=can_read_directly)])
@pytest.mark.parametrize("threads", [1, 5])
def test_rows_are_those_of_the_tensor(folder, column, kind, direct, threads):
    rows = opened(folder, kind, direct=direct, threads=threads)
    assert (rows.shape, rows.dtype, len(rows)) == ((1000, 3, 7), torch.float32, 1000)
    generator = torch.Generator().manual_seed(1)
    for count in (0, 1, 7, 400, 3000):
        ids = torch.randint(0, 1000, (count,), generator=generator)
        assert rows.fetch(ids).equal(column[ids])
        out = torch.full((count, 3, 7), -1.0)
        assert rows.fetch(ids, out) is out
        assert out.equal(column[ids])
    assert rows.fetch(torch.arange(1000)).equal(column)
    if kind == "safetensors":
        for name, other in (("half", column.bfloat16()), ("flag", column > 0)):
            part = storage.open(folder / "x.safetensors", name, direct=direct, threads=threads)
            assert part.fetch(torch.tensor([999, 0])).equal(other[[999, 0]])


@given(st.lists(st.integers(0, 40)), st.integers(0, 9000), st.booleans())
def test_any_ids_of_any_width(ids, width, direct):
    from tempfile import TemporaryDirectory

    values = torch.arange(41 * width, dtype=torch.int64).to(torch.uint8).view(41, width)
    with TemporaryDirectory() as place:
        path = Path(place) / "x.npy"
        np.save(path, values.numpy())
        rows = storage.open(path, direct=direct and hasattr(os, "O_DIRECT"))
        assert rows.fetch(torch.tensor(ids, dtype=torch.int64)).equal(values[ids])


def test_pieces_larger_than_a_single_read(tmp_path):
    values = torch.randn(4, 700_000)
    np.save(tmp_path / "x.npy", values.numpy())
    assert storage.open(tmp_path / "x.npy").fetch(torch.tensor([3, 1, 1])).equal(values[[3, 1, 1]])


def test_short_reads_go_on_where_they_ended(folder):
    """The system may give less than it is asked for: here 700 bytes at most, for pieces and scratch
    of more.
    """
    short = mutated(reading, ("wanted - have, begin", "min(wanted - have, 700), begin"))[
        "read_pieces"
    ]
    contents = np.frombuffer((folder / "x.bin").read_bytes(), np.uint8)
    offsets = np.array([50_000, 10, 1500, len(contents) - 3, 2000])
    sizes = np.array([5000, 900, 10_000, 3, 100])
    to = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    out = np.zeros(sizes.sum(), np.uint8)
    scratch = np.zeros(4096, np.uint8)
    with (folder / "x.bin").open("rb") as file:
        read = short(
            file.fileno(), offsets, sizes, np.argsort(offsets), to, 1, scratch, out, 0, len(offsets)
        )
    assert read == sizes[:4].sum()  # the last one lies within another
    assert (
        out.tolist()
        == np.concatenate(
            [contents[a : a + n] for a, n in zip(offsets, sizes, strict=True)]
        ).tolist()
    )


@can_read_directly
def test_rows_in_one_block_are_read_once(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4096, 16), np.float32))
    rows = storage.open(tmp_path / "x.npy", direct=True, threads=1)
    rows.fetch(torch.arange(8))  # 128 + 8 * 64 bytes
    block = rows._block
    assert rows.bytes_read == max(1024, block)
    rows.fetch(torch.tensor([0, (2 * block - 128) // 64]))  # the block between them is not read
    assert rows.bytes_read == max(1024, block) + 2 * block
    plain = storage.open(tmp_path / "x.npy")
    plain.fetch(torch.tensor([5, 0, 0, 900]))
    assert plain.bytes_read == 4 * 64 - 64 or plain.bytes_read == 3 * 64


@pytest.mark.parametrize("kind", ["npy", "safetensors"])
@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "scalar"])
def test_damaged_files_are_refused(tmp_path, kind, damage):
    path = tmp_path / f"x.{kind}"
    value = np.zeros(()) if damage == "scalar" else np.zeros((50, 4))
    np.save(path, value) if kind == "npy" else save_file({"x": torch.from_numpy(value)}, path)
    if damage != "scalar":
        contents = path.read_bytes()
        path.write_bytes({"cut": contents[:-1], "foreign": b"a,b\n1,2\n" * 9, "empty": b""}[damage])
    with pytest.raises(ValueError, match=rf"x\.{kind}"):
        storage.open(path)


def test_a_file_cut_off_later_is_an_error(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5000, 4)))
    rows = storage.open(tmp_path / "x.npy")
    os.truncate(tmp_path / "x.npy", 50_000)
    assert rows.fetch(torch.tensor([0])).tolist() == [[0.0] * 4]
    with pytest.raises(OSError, match=r"byte 160096 cannot be read: .* the file was cut off"):
        rows.fetch(torch.tensor([0, 4999]))
    # in the middle of a row
    with pytest.raises(OSError, match=r"byte 50000 cannot be read: .* the file was cut off"):
        rows.fetch(torch.tensor([1558]))


def fetched_elsewhere(rows: storage.FileRows, ids: list[int]) -> list[list[float]]:
    return rows.fetch(torch.tensor(ids)).flatten(1).tolist()


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_share_a_file(folder, column, method):
    rows = storage.open(folder / "x.npy")
    ids = list(range(0, 900, 3))
    rows.fetch(torch.tensor(ids))  # so that its threads run
    assert len(pickle.dumps(rows)) < 1000
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a forked child may not wait for torch's threads
    try:
        with get_context(method).Pool(1) as pool:
            assert pool.apply(fetched_elsewhere, (rows, ids)) == column[ids].flatten(1).tolist()
    finally:
        torch.set_num_threads(threads)


def check_column(graph: Graph, dense: Tensor) -> None:
    batch = NeighborSampler(graph, [1])([3, 1])
    batch.copy_from_parent({0: ["x"]}, None)
    assert batch.ldata[0]["x"].to_dense().equal(dense[batch.layers[0].parent_nid])


def test_a_column_of_a_graph(folder, column):
    graph = Graph.from_edges(
        [0, 1, 2], [1, 2, 3], num_nodes=1000, ndata={"x": storage.open(folder / "x.npy")}
    )
    check_column(graph, column)
    assert "x" in repr(graph)
    assert "1000, 3, 7" in repr(graph.ndata)


def test_a_mapped_column_of_an_opened_graph(tmp_path, column):
    graph = Graph.from_edges(
        [0, 1], [1, 2], num_nodes=1000, ndata={"x": column, "half": column.bfloat16()}
    )
    graph.save(tmp_path / "g")
    mapped = Graph.open(tmp_path / "g")
    for name in ("x", "half"):
        rows = storage.open(mapped.ndata[name])
        assert rows.fetch(torch.tensor([7, 999])).equal(graph.ndata[name][[7, 999]])
        assert (
            storage.open(mapped.ndata[name][5:])
            .fetch(torch.tensor([2]))
            .equal(graph.ndata[name][[7]])
        )
    with pytest.raises(TypeError, match="leave it out"):
        storage.open(mapped.ndata["x"], "x")


def test_rows_of_a_file_that_is_gone_are_not_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    data = pickle.dumps(rows := storage.open(tmp_path / "x.npy"))
    assert repr(rows) == f"FileRows(float32 [2, 3], {str(tmp_path / 'x.npy')!r})"
    (tmp_path / "x.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.npy"):
        pickle.loads(data)


def test_files_are_closed(folder):
    rows = storage.open(folder / "x.npy")
    file = rows._file
    os.fstat(file)
    del rows
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)


# ---- sparse


@given(st.integers(0, 60).map(np.random.default_rng))
def test_sparse_rows_are_those_of_the_matrix(rng):
    from tempfile import TemporaryDirectory

    matrix = scipy.sparse.random(30, 9, 0.2, "csr", rng=rng, dtype=np.float32)
    ids = rng.integers(0, 30, rng.integers(0, 70))
    with TemporaryDirectory() as place:
        storage.save_sparse(Path(place) / "x", matrix)
        rows = storage.open(Path(place) / "x", threads=3)
        assert rows.shape == (30, 9)
        assert repr(rows) == f"SparseFileRows(sparse float32 [30, 9], {str(Path(place) / 'x')!r})"
        found = rows.fetch(torch.from_numpy(ids))
        assert (rows.bytes_read > 0) is (found.values().numel() > 0)
        before = rows.bytes_read
        rows.fetch(torch.arange(30))
        assert rows.bytes_read - before == matrix.nnz * (8 + 4)
    assert found.layout == torch.sparse_csr
    assert found.to_dense().tolist() == matrix.toarray()[ids].tolist()


def test_a_sparse_column_of_a_graph(tmp_path):
    dense = (torch.arange(40).view(8, 5) % 3).float()
    storage.save_sparse(tmp_path / "x", scipy.sparse.csr_array(dense.numpy()))
    graph = Graph.from_edges(
        [0, 1, 2], [1, 2, 3], num_nodes=8, ndata={"x": storage.open(tmp_path / "x")}
    )
    check_column(graph, dense)
    graph.save(tmp_path / "g")
    mapped = Graph.open(tmp_path / "g").ndata["x"]
    assert mapped.to_dense().equal(dense)
    assert storage.open(mapped).fetch(torch.tensor([7, 0])).to_dense().equal(dense[[7, 0]])


@can_read_directly
@pytest.mark.parametrize("lack", ["O_DIRECT", "open", "preadv"])
def test_files_that_cannot_be_read_directly_are_named(lack, folder, monkeypatch):
    """The system has no such reads, its file system refuses them, or no block can be read."""
    flag = os.O_DIRECT
    plain = os.open

    def refuse(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if lack == "open" and not flags & flag:
            return plain(path, flags, *rest, **more)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    if lack == "O_DIRECT":
        monkeypatch.delattr(os, lack)
    else:
        monkeypatch.setattr(os, lack, refuse)
    with pytest.raises(
        OSError, match=r"x\.npy cannot be read past the page cache: open it with direct=False"
    ):
        storage.open(folder / "x.npy", direct=True)
    assert len(storage.open(folder / "x.npy")) == 1000


def test_sparse_mistakes_are_named(tmp_path):
    storage.save_sparse(tmp_path / "bare", scipy.sparse.eye(3, format="csr"))
    with changed_manifest(tmp_path / "bare") as manifest:
        manifest["arrays"] = {}
    with pytest.raises(ValueError, match="bare has a manifest without sparse rows: it is damaged"):
        storage.open(tmp_path / "bare")
    storage.save_sparse(tmp_path / "x", scipy.sparse.eye(3, format="csr"))
    rows = storage.open(tmp_path / "x")
    with pytest.raises(IndexError, match="3"):
        rows.fetch(torch.tensor([3]))
    with pytest.raises(TypeError, match="out"):
        rows.fetch(torch.tensor([1]), torch.zeros(1, 3))
    (file,) = (tmp_path / "x").glob("rows.indices-*.npy")
    ids = np.lib.format.open_memmap(file, "r+")
    ids[1] = 7
    ids.flush()
    with pytest.raises(
        ValueError, match=r"rows\.indices.* is damaged: it names columns outside of 0 to 2"
    ):
        rows.fetch(torch.tensor([1]))
