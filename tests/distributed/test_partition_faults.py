"""Faults of the partition buffer: a folder is as after the last epoch that ended, and another run
goes on.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.partition_tools import full_disk, random_graph, written
from _support.processes import environment

from nodeflow.distributed import PartitionBuffer, Partitions, _slots, beta_order

GRAPH = random_graph(20, 50)


@pytest.fixture
def parts(tmp_path: Path) -> Partitions:
    return written(GRAPH, tmp_path / "a", 5)


def epoch_that(folder: Path, stop: Any, **options: Any) -> None:
    """An epoch in which all rows are set to -1, and ``stop`` is called in every state with its
    number.
    """
    with PartitionBuffer(folder, 2, order="beta", writable=["x"], **options) as buffer:
        for state in buffer:
            state.graph.ndata["x"][:] = -1
            if stop(state.number):
                break


def check_as_committed(folder: Path, table: torch.Tensor) -> None:
    """The folder holds what it held, and another epoch can begin."""
    parts = Partitions.open(folder, verify=True)
    assert parts.epoch == 0
    assert parts.column("x").fetch(torch.arange(len(table))).equal(table)
    with PartitionBuffer(folder, 2, order="beta", writable=["x"]):
        assert len(list((folder / "nodes").iterdir())) == len(parts.ndata) * parts.num_parts
    epoch_that(folder, lambda number: False)
    assert bool((Partitions.open(folder).column("x").fetch(torch.arange(len(table))) == -1).all())


@pytest.mark.parametrize("number", [0, 1, 4])
def test_an_epoch_that_is_left_early_changes_nothing(parts, number):
    epoch_that(parts.folder, lambda k: k == number)
    check_as_committed(parts.folder, GRAPH.ndata["x"])


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_exception_in_the_loop_changes_nothing(parts, error):

    def fail(number: int) -> bool:
        if number == 3:
            raise error
        return False

    with pytest.raises(error):
        epoch_that(parts.folder, fail)
    check_as_committed(parts.folder, GRAPH.ndata["x"])


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("after", [0, 2, 9, 12])
def test_a_full_disk_ends_the_epoch_with_its_error(parts, after, prefetch):
    """The disk is full at a write in the background, or at the commit (from the ninth write on)."""
    assert beta_order(5, 2).swaps == 9
    with (
        full_disk("finish", min(after, 10)),
        pytest.raises(OSError, match=r"No space left on device: .*nodes"),
    ):
        epoch_that(parts.folder, lambda number: False, prefetch=prefetch)
    check_as_committed(parts.folder, GRAPH.ndata["x"])


@pytest.mark.parametrize("prefetch", [True, False])
def test_a_file_that_is_damaged_between_states_is_named(parts, prefetch, monkeypatch):
    header = _slots.read_header
    buffer = PartitionBuffer(parts.folder, 2, order="beta", prefetch=prefetch)
    missing = next(k for k in range(5) if k not in buffer.order_of(0).states[0])
    file = parts.folder / parts.manifest.arrays[f"ndata/x/{missing}"].file
    whole = file.read_bytes()
    os.truncate(file, 130)
    with pytest.raises(ValueError, match=rf"{re.escape(str(file))} is damaged or was cut off"):
        list(buffer)
    np.save(file, np.zeros(4))
    with pytest.raises(
        ValueError,
        match=rf"{re.escape(str(file))} holds float64 \[4\], but 4 rows of float32 \[3\]",
    ):
        list(buffer)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(str(file))):
        list(buffer)
    file.write_bytes(whole)
    with monkeypatch.context() as patch:
        patch.setattr(
            _slots,
            "read_header",
            lambda path: (header(path), path == file and os.truncate(path, 130))[0],
        )
        with pytest.raises(
            ValueError, match=rf"{re.escape(str(file))} was cut off while it was read"
        ):
            list(buffer)
    file.write_bytes(whole)
    edges = np.load(parts.folder / "src.npy", mmap_mode="r+")
    edges[:] = -3
    edges.flush()
    with pytest.raises(ValueError, match=r"src.npy is damaged: its contents have another checksum"):
        PartitionBuffer(parts.folder, 2, ndata=[])
    with pytest.raises(
        ValueError, match=r"src.npy is damaged: edge \d+ ends at row -3 of a part that has 4"
    ):
        list(PartitionBuffer(parts.folder, 2, ndata=[], verify=False))


KILLED = """
import os, signal, sys
from nodeflow.distributed import PartitionBuffer

with PartitionBuffer(sys.argv[1], 2, order="beta", writable=["x"]) as buffer:
    for epoch in range(2):
        for state in buffer:
            state.graph.ndata["x"][state.nodes >= 0] += 1
            if epoch == 1 and state.number == int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
"""
COMMIT = """
import os, signal
import nodeflow._files.disk.manifest as manifest

replaced, commits = os.replace, 0

def replace(draft, path):
    global commits
    commits += path.name == "manifest.json"
    if commits < 2:
        return replaced(draft, path)
    if {when!r} == "after":
        replaced(draft, path)
    os.kill(os.getpid(), signal.SIGKILL)

manifest.os.replace = replace
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "number", "epochs"),
    [
        (KILLED, 3, 1),
        pytest.param(COMMIT.format(when="before") + KILLED, 99, 1, marks=pytest.mark.slow),
        (COMMIT.format(when="after") + KILLED, 99, 2),
    ],
    ids=["in the middle of an epoch", "before the commit", "after the commit"],
)
def test_a_killed_run_leaves_a_committed_epoch_and_goes_on(parts, program, number, epochs):
    command = [sys.executable, "-c", program, str(parts.folder), str(number)]
    assert subprocess.run(command, env=environment(), check=False).returncode == -signal.SIGKILL
    states = torch.zeros(20)
    reference = PartitionBuffer(parts.folder, 2, order="beta")
    for epoch in range(epochs):
        for held in reference.order_of(epoch).states:
            states += torch.isin(parts.partition_of(range(20)), torch.tensor(held))
    found = Partitions.open(parts.folder, verify=True)
    assert found.epoch == epochs
    assert found.column("x").fetch(torch.arange(20)).equal(GRAPH.ndata["x"] + states[:, None])
    # its lock is free
    with PartitionBuffer(parts.folder, 2, order="beta", writable=["x"]) as buffer:
        assert buffer.epoch == epochs
        assert sum(path.name.startswith("0.") for path in (parts.folder / "nodes").iterdir()) == 5
        list(buffer)
    assert Partitions.open(parts.folder).epoch == epochs + 1


def test_one_buffer_writes_a_folder(parts):
    with PartitionBuffer(parts.folder, 2, writable=["x"]) as buffer:
        with pytest.raises(BlockingIOError, match="written by another process"):
            PartitionBuffer(parts.folder, 2, writable=["x"])
        with pytest.raises(BlockingIOError, match="written by another process"):
            written(GRAPH, parts.folder, 5, overwrite=True)
        assert len(list(PartitionBuffer(parts.folder, 2))) == 10  # reading is free
    with pytest.raises(RuntimeError, match="closed; make a new one"):
        list(buffer)
    forgotten = PartitionBuffer(parts.folder, 2, writable=["x"])
    del forgotten
    PartitionBuffer(parts.folder, 2, writable=["x"]).close()
