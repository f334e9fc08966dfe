"""Files of edges that are wrong, and builds that are cut off."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.edge_files import same, write

from nodeflow import Graph
from nodeflow.datasets import _edge_files, build_graph

QUIET: dict[str, Any] = {"progress": False}

# -------------------------------------------------------------------------------------------------------
# wrong input

WRONG: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"a.csv": "src,dst\n0,1\n1,2\n2,0\nx,1\n"}, {}, r"a\.csv, line 5: src must be an integer from "
                                                     r"0, got 'x'"),
    ({"a.csv": "0,1,3\n\n1,2\n"}, {}, r"a\.csv, line 3: expected 3 columns \(src, dst, c2\), got "
                                      r"2"),
    ({"a.csv": "0,1,3\n1,2,red\n"}, {}, r"a\.csv, line 2: column 'c2' must hold numbers, got "
                                        r"'red'"),
    ({"a.csv": "0,1\n1,2\n2,0\n3,9\n"}, {"num_nodes": 9}, r"a\.csv, line 4: dst .* below "
                                                          r"num_nodes, 9, got '9'"),
    ({"a.csv": "0,1\n", "b.csv": "0,1\n5\n"}, {}, r"b\.csv, line 2: expected 2 columns"),
    ({"a.csv": "0,1\n", "b.csv": "0,1,2\n"}, {}, r"b\.csv must have the columns of the first file "
                                                 r".*\(none\), got c2"),
    ({"a.csv": "src,dst,w\n0,1,2\n", "b.csv": "src,dst,v\n0,1,2\n"}, {}, r"b\.csv must have "
                                                                         r".*\(w\), got v"),
    ({"a.csv": ""}, {}, r"a\.csv has no edges; pass num_nodes"),
    ({"a.csv": "0,1\n", "b.csv": "# none\n"}, {}, r"b\.csv has no edges"),
    ({"a.csv": "a,b\n", "b.csv": "\n"}, {"named": True}, r"b\.csv has no edges; leave it out"),
    ({"a.csv": "a,b\nc,d,1\n"}, {"named": True}, r"a\.csv, line 2: expected 2 columns"),
    ({"a.csv": "a,b\nc, \n"}, {"named": True}, r"a\.csv, line 2: the name of dst is empty"),
    ({"a.csv": "a,b,1\nc,d,x\n"}, {"named": True}, r"a\.csv, line 2: column 'c2' must hold "
                                                   r"numbers, got 'x'"),
    ({"a.csv": "a,b\n"}, {"named": True, "num_nodes": 3}, "num_nodes cannot be given"),
    ({"a.csv": "0,1\n"}, {"columns": ("src", "to")}, "columns must hold 'src', 'dst'"),
    ({"a.csv": "0,1\n"}, {"delimiter": ""}, "delimiter must be text such as"),
    ({"a.csv": "0,1\n"}, {"memory": "much"}, "memory must be a number and a unit"),
    ({"a.csv": "0,1\n"}, {"memory": 1000}, "memory must be at least 21 MB for 2 nodes and 1 edges, "
                                           "got 1000 bytes"),
    ({"a.csv": "0,1\n"}, {"ndata": {"x": torch.ones(3)}, "num_nodes": 2}, "column 'x' must have 2 "
                                                                          "rows"),
    ({"a.csv": "0,1\n0,5\n"}, {"ndata": {"x": torch.ones(3)}}, r"a\.csv, line 2: dst .* below "
                                                               r"num_nodes, 3, got '5'"),
    ({"a.csv": "0,1\n"}, {"edata": {"x": torch.ones(3)}}, "column 'x' must have 1 rows"),
    ({"a.csv": "src,dst,w\n0,1,2\n"}, {"edata": {"w": torch.ones(1)}}, "edata must not name column "
                                                                       "'w'"),
    ({"a.csv": "0,1\n"}, {"split": {"dev": [0]}}, "split must have the parts train, val and test, "
                                                  "got 'dev'"),
    ({"a.csv": "0,1\n"}, {"split": {"train": [0], "test": [1, 0]}}, r"split\['test'\] holds node "
                                                                    r"0"),
    ({"a.csv": "0,1\n"}, {"split": {"train": [0, 1, 0]}}, r"split\['train'\] holds node 0"),
    ({"a.txt.gz.csv": "0,1\n", "b.zip": "x"}, {}, r"edges must be files \.csv.*got .*b\.zip"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "options", "message"), WRONG)
def test_wrong_input_is_named(
    tmp_path: Path,
    files: dict[str, str],
    options: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_edge_files, "_ROWS", 2)
    (tmp_path / "in").mkdir()
    paths = [write(tmp_path / "in" / name, text) for name, text in files.items()]
    with pytest.raises(ValueError, match=message):
        build_graph(paths, tmp_path / "g", **options, **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_wrong_arrays_are_named(tmp_path: Path) -> None:
    saved = {
        "wide": (
            np.zeros((2, 5), np.int64),
            r"must hold integers \[edges, 2\], got int64 \[2, 5\]; save edge_index",
        ),
        "floats": (np.zeros((5, 2)), "must hold integers"),
        "turned": (np.zeros((2, 5), np.int64).T, "Fortran order"),
        "negative": (
            np.array([[0, 1], [1, -2]]),
            r"negative\.npy, row 1: dst must be an integer from 0, got -2",
        ),
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
        build_graph(
            tmp_path / "short.npy", tmp_path / "g", ndata={"x": tmp_path / "objects.npy"}, **QUIET
        )
    np.save(tmp_path / "long_double.npy", np.zeros(3, np.longdouble))
    with pytest.raises(ValueError, match=r"ndata\['x'\]: .*long_double\.npy holds float128"):
        build_graph(
            tmp_path / "ok.npy", tmp_path / "g", ndata={"x": tmp_path / "long_double.npy"}, **QUIET
        )
    with pytest.raises(FileNotFoundError, match="there is no file"):
        build_graph(tmp_path / "nowhere.npy", tmp_path / "g", **QUIET)
    np.save(tmp_path / "one.npy", np.array(3.0))
    for name, words in (
        ("one.npy", "one row per node or edge, got a single number"),
        ("x.npy", "a .npy file of num"),
    ):
        (tmp_path / "x.npy").write_text("no array")
        with pytest.raises(ValueError, match=rf"ndata\['x'\]: .*{name} must (be|have) {words}"):
            build_graph(tmp_path / "ok.npy", tmp_path / "g", ndata={"x": tmp_path / name}, **QUIET)
    with pytest.raises(FileNotFoundError, match=r"ndata\['x'\]: there is no file .*nowhere\.npy"):
        build_graph(
            tmp_path / "ok.npy", tmp_path / "g", ndata={"x": tmp_path / "nowhere.npy"}, **QUIET
        )
    with pytest.raises(ValueError, match=r"ok\.npy holds numbers, but named=True says"):
        build_graph(tmp_path / "ok.npy", tmp_path / "g", named=True, **QUIET)
    with pytest.raises(
        ValueError, match=r"a tuple must be two \.npy files.*several files make a list; got"
    ):
        build_graph(
            [(write(tmp_path / "a.csv", "0,1\n"), tmp_path / "a.csv")], tmp_path / "g", **QUIET
        )
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


# ------------------------------------------------------------------------------------------------------------
# faults


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
def test_memory_is_bounded(tmp_path: Path) -> None:
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
