"""Files of edges that are wrong, and builds that are cut off."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from _support.edge_files import same, write

from nodeflow import Graph
from nodeflow.datasets import build_graph

QUIET: dict[str, Any] = {"progress": False}

# -------------------------------------------------------------------------------------------------------
# wrong input


def test_a_cut_gz_is_named(tmp_path):
    file = write(tmp_path / "e.csv.gz", "0,1\n" * 5000)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"e\.csv\.gz must be a text file"):
        build_graph(file, tmp_path / "g", **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv.gz"]


# ------------------------------------------------------------------------------------------------------------
# faults


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    write(tmp_path / "e.csv", "0,1\n")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        build_graph(tmp_path / "e.csv", tmp_path / "g", **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["e.csv"]


@pytest.mark.slow
def test_a_killed_build_leaves_no_graph(tmp_path):
    write(tmp_path / "e.csv", "0,1\n2,1\n")
    code = """
import sys, time
from nodeflow.datasets import _build
def wait(*_):
    print("sorting", flush=True)
    time.sleep(3600)
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
from nodeflow.datasets import build_graph
build_graph(sys.argv[2], sys.argv[1] + "/warm", progress=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
build_graph(sys.argv[3], sys.argv[1] + "/g", memory=sys.argv[4], progress=False)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.slow
def test_memory_is_bounded(tmp_path):
    """The list and the graph are larger than what the process holds."""
    random = np.random.default_rng(0)
    ends = random.integers(0, 100_000, (2_000_000, 2), dtype=np.int64)
    np.save(tmp_path / "e.npy", ends)
    np.save(tmp_path / "few.npy", ends[:100])
    command = [
        sys.executable,
        "-c",
        MEASURE,
        tmp_path,
        tmp_path / "few.npy",
        tmp_path / "e.npy",
        "30 MB",
    ]
    peak = int(
        subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout
    )
    assert peak < 30e6 < ends.nbytes
    assert sum(path.stat().st_size for path in (tmp_path / "g").iterdir()) > 16e6
    same(Graph.open(tmp_path / "g"), Graph.from_edges(ends[:, 0], ends[:, 1]))
