"""Folders of parts: cuts, buckets and columns against slow references, and what becomes of
faults.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.partition_tools import full_disk, in_small_pieces, random_graph, written
from _support.processes import environment
from torch import Tensor

from nodeflow.distributed import (
    PartitionBuffer,
    Partitions,
    partition_graph,
    write_partitions,
)


def test_training_nodes_come_first(tmp_path):
    graph = random_graph(50, 100)
    train = [3, 9, 11, 40, 41, 42, 49, 3]
    parts = written(graph, tmp_path / "a", 10, method="train-first", train=train)
    assert set(parts.partition_of(train).tolist()) == {0, 1}
    assert parts.train is not None
    assert parts.train.tolist() == sorted(set(train))


def test_given_parts_are_kept_where_they_fit(tmp_path):
    numbers = np.array([0] * 14 + [1] * 3 + [2] * 3)
    parts = written(random_graph(20, 30), tmp_path / "a", 3, method=numbers)
    found = parts.partition_of(range(20)).numpy()
    assert (found != numbers).sum() == 7  # 14 go to 7, 7 and 6 places
    assert (found[14:] == numbers[14:]).all()


@pytest.mark.parametrize("write", [write_partitions, partition_graph])
def test_mistakes_of_any_cut(tmp_path, write):
    usual = {"graph": random_graph(20, 30), "num_parts": 2, "method": "random", "progress": False}
    failing = {"ndata": [], "columns": {"h": lambda ids: ids / (1 // 0)}}
    with pytest.raises(ZeroDivisionError, match="by zero"):
        write(folder=tmp_path / "a", **usual | failing)
    assert list(tmp_path.iterdir()) == []
    before = write(folder=tmp_path / "a", **usual)
    with pytest.raises(FileExistsError, match="exists; pass overwrite=True to replace it"):
        write(folder=tmp_path / "a", **usual | {"num_parts": 3})
    assert type(before).open(before.folder, verify=True).num_parts == 2
    assert write(folder=tmp_path / "a", overwrite=True, **usual | {"num_parts": 3}).num_parts == 3


def test_mistakes(tmp_path):
    graph = random_graph(20, 30)
    graph.edata["sparse"] = scipy.sparse.eye(graph.num_edges, format="csr")
    with pytest.raises(TypeError, match="edge column 'sparse' is sparse"):
        written(graph, tmp_path / "a", 2)
    assert list(tmp_path.iterdir()) == []
    del graph.edata["sparse"]

    def changes(ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), 2 if 0 in ids else 3)

    words = r"column 'h' must give rows of torch.float32 \[2\] for every node"
    with in_small_pieces(), pytest.raises(ValueError, match=words):
        written(graph, tmp_path / "a", 2, columns={"h": changes})


# --------------------------------------------------------------------------------------------------------------
# faults


def test_faults_in_a_folder_are_named(tmp_path):
    parts = written(random_graph(20, 30), tmp_path / "a", 3)
    folder = parts.folder

    text = json.loads((folder / "manifest.json").read_text())
    facts = text["facts"]
    signed = json.dumps({**text, "version": 9}).encode()
    del text["checksum"]

    def manifest(**changes: Any) -> tuple[str, bytes]:
        return "manifest.json", json.dumps({**text, **changes}).encode()

    file = parts.manifest.arrays["ndata/x/1"].file
    whole = (folder / file).read_bytes()
    sizes = [manifest(facts={**facts, "num_edges": n}) for n in ("9", None, float("inf"), 2**70)]
    for (name, new), match in (
        ((file, None), "missing|is not there"),
        ((file, whole[:-1]), "damaged|cut off"),
        ((file, b"PK not an array"), "damaged|no .npy"),
        ((file, whole[:-1] + bytes([whole[-1] ^ 1])), "another checksum"),
        (("manifest.json", signed), "another checksum"),
        (("manifest.json", b"{"), "damaged or foreign"),
        (manifest(version=9), "version 9"),
        (manifest(kind="graph"), "holds 'graph'"),
        (manifest(facts={**facts, "num_partitions": 4}), "do not fit together"),
        (manifest(facts={}), "do not fit together"),
        (manifest(facts={**facts, "ndata": facts["ndata"] * 2}), "do not fit together"),
        *((size, "damaged") for size in sizes),
    ):
        before = (folder / name).read_bytes()
        (folder / name).unlink()
        if new is not None:
            (folder / name).write_bytes(new)
        with pytest.raises(ValueError, match=match):
            Partitions.open(folder)
        (folder / name).write_bytes(before)
    Partitions.open(folder, verify=True)
    with pytest.raises(FileNotFoundError, match="has no partitions in it"):
        Partitions.open(tmp_path / "b")


def test_sparse_columns_are_read_only_and_checked(tmp_path):
    graph = random_graph(23, 60)
    graph.ndata["sparse"] = torch.eye(23)[:, :7].to_sparse_csr()
    parts = written(graph, tmp_path / "a", 4)
    assert parts.column("sparse").fetch(torch.arange(0)).shape == (0, 7)
    with pytest.raises(TypeError, match="writable names column 'sparse'"):
        list(PartitionBuffer(parts.folder, 2, writable=["sparse"]))
    buffer = PartitionBuffer(parts.folder, 2)
    ids = np.load(
        parts.folder / parts.manifest.arrays["ndata/sparse/0"].plain[1].file, mmap_mode="r+"
    )
    ids[0] = 9
    ids.flush()
    with pytest.raises(
        ValueError, match=r"3\.0\.0\.indices.*: damaged sparse rows: indices\[0\] is 9"
    ):
        list(buffer)


@pytest.mark.parametrize("after", [0, 3, 8])
def test_a_full_disk_leaves_no_folder(tmp_path, after):
    """The disk is full at a write of a column."""
    with full_disk("append", after), pytest.raises(OSError, match="No space left on device"):
        written(random_graph(20, 30), tmp_path / "a", 3)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
import torch
from _support.partition_tools import full_disk, in_small_pieces, random_graph, written

def rows(ids):
    if 10 in ids:
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.zeros(len(ids))

with in_small_pieces():
    written(random_graph(20, 30), sys.argv[1], 3, columns={"h": rows})
"""


@pytest.mark.slow
def test_a_killed_process_leaves_no_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "a")], env=environment(), check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "a").exists()
    written(random_graph(20, 30), tmp_path / "a", 3)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


MEMORY = """
import sys, threading, time
import numpy as np
import torch
from pathlib import Path
from nodeflow import Graph
from nodeflow.distributed import write_partitions

def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) * 1024

folder = Path(sys.argv[1])
indptr, indices, w, x = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "w", "x"))
graph = Graph(indptr, indices, ndata={"x": x}, edata={"w": w})
small = Graph.from_edges([0, 1], [1, 0], ndata={"x": torch.zeros(2, 64)}, edata={"w": torch.zeros(2)})
small = Graph(small.indptr, small.indices.astype(np.int64), copy=False, ndata=small.ndata, edata=small.edata)
write_partitions(small, folder / "small", 2, progress=False)  # what is compiled and imported is not counted
before, most, over = anonymous(), 0, False

def watch():
    global most
    while not over:
        most = max(most, anonymous())
        time.sleep(0.002)

thread = threading.Thread(target=watch)
thread.start()
write_partitions(graph, folder / "out", 16, progress=False)
over = True
thread.join()
print(most - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc"
)
def test_mapped_graphs_are_written_in_bounded_memory(tmp_path):
    """150 MB of edges and rows: about 40 bytes a node and 64 MB are in memory."""
    n = 100_000
    m = 4_000_000
    random = np.random.default_rng(0)
    np.save(tmp_path / "indptr.npy", np.linspace(0, m, n + 1).astype(np.int64))
    np.save(tmp_path / "indices.npy", np.tile(random.integers(0, n, m // 20), 20))
    np.save(tmp_path / "w.npy", np.zeros(m, np.float32))
    np.save(tmp_path / "x.npy", np.zeros((n, 64), np.float32))
    command = [sys.executable, "-c", MEMORY, str(tmp_path)]
    done = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    print(done.stdout)
    assert int(done.stdout) < 40 * n + 64 * 2**20
    assert Partitions.open(tmp_path / "out").num_edges == m
