"""Files that the disk cannot hold: the error names a path, nothing of what was begun is left, what
was there stays.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from nodeflow import Graph, datasets, distributed, nn, storage
from nodeflow.control_variates import History
from nodeflow.storage import EmbeddingTable

resource = pytest.importorskip("resource")

NODES = 3000


def example() -> Graph:
    random = np.random.default_rng(0)
    graph = Graph.from_edges(
        *random.integers(0, NODES, (2, 9000)), num_nodes=NODES, edata={"w": torch.rand(9000)}
    )
    graph.ndata["x"] = torch.rand(NODES, 8)
    return graph


GRAPH = example()
SPARSE = torch.eye(NODES).to_sparse_csr()
MODEL = nn.GraphSAGE(8, 8, 2, 2)


def build(place: Path) -> object:
    np.save(place.parent / "edges.npy", np.stack([end.numpy() for end in GRAPH.edges()], 1))
    return datasets.build_graph(place.parent / "edges.npy", place, overwrite=True, progress=False)


WRITERS: dict[str, Callable[[Path], object]] = {
    "graph": lambda place: GRAPH.save(place, overwrite=True),
    "partitions": lambda place: distributed.write_partitions(
        GRAPH, place, 2, overwrite=True, progress=False
    ),
    "parts": lambda place: distributed.partition_graph(
        GRAPH, place, 2, method="random", overwrite=True, progress=False
    ),
    "built": build,
    "data set": lambda place: datasets.Dataset("d", GRAPH, *[np.zeros(0, np.int64)] * 3, 2).save(
        place, overwrite=True
    ),
    "sparse": lambda place: storage.save_sparse(place, SPARSE, overwrite=True),
    "created": lambda place: storage.create(place / "x.npy", (NODES, 8)),
    "pass": lambda place: MODEL.inference(GRAPH, GRAPH.ndata["x"], folder=place),
    "table": lambda place: EmbeddingTable(NODES, 8, lr=1.0, folder=place),
    "history": lambda place: History(GRAPH, {1: 8}, folder=place),
}
FOLDERS = ("graph", "partitions", "parts", "built", "data set", "sparse")
"""Those that may replace a folder."""


@contextmanager
def limit(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes, which is what a full disk is to a program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(folder)): f.read_bytes()
        for f in folder.rglob("*")
        if f.is_file() and f.name[0] != "."
    }


@pytest.mark.parametrize("name", list(WRITERS))
@pytest.mark.parametrize("size", [100, 5000, 20_000])
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path, name, size):
    write = WRITERS[name]
    home = tmp_path / "home"
    home.mkdir()
    if name == "built":
        build(home / "first")
    (tmp_path / "warm").mkdir()
    # loops that are compiled are kept in files, which may be larger
    write(tmp_path / "warm" / "place")
    before = {path.name for path in home.iterdir()}
    if name == "built":
        write = lambda place: datasets.build_graph(home / "edges.npy", place, progress=False)  # noqa: E731
    with limit(size), pytest.raises(OSError, match="File too large") as raised:
        write(home / "new" / "place")
    assert str(raised.value.filename).startswith(str(home)), repr(raised.value)
    assert {path.name for path in home.iterdir()} == before


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folder_that_was_there_stays(tmp_path, name, monkeypatch):
    """Also where the disk is full at the very end, when the files are flushed."""
    write = WRITERS[name]
    place = tmp_path / "place"
    write(place)
    before = contents(place)
    names = {path.name for path in tmp_path.iterdir()}

    flush = os.fsync
    calls = 0
    fails = -1

    def flush_unless_full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", flush_unless_full)
    write(place)
    # the last call, when the draft has become the folder, flushes the entry of the folder
    for at in {1, calls // 2, calls - 1}:
        calls = 0
        fails = at
        with pytest.raises(OSError, match="No space left") as raised:
            write(place)
        assert str(raised.value.filename).startswith(str(tmp_path)), repr(raised.value)
        assert contents(place) == before
        assert {path.name for path in tmp_path.iterdir()} == names
