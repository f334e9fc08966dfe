"""Trials of faults and of long runs, on counts so small that their figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRIALS = Path(__file__).parents[1] / "trials"


def run(script: str, *arguments: str) -> list[list[str]]:
    """Run a trial that finds nothing; return the cells of its table, without the titles."""
    command = [sys.executable, str(TRIALS / script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(TRIALS.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults happen in forked processes")
def test_faults() -> None:
    kinds = ["--kinds", "kill at", "full disk", "no memory, tensor k"]
    rows = run("faults.py", "--only", "EmbeddingTable, files", "--kills", "2", "--disks", "1", *kinds)
    assert [row[1] for row in rows] == ["kill at a random moment", "full disk", "no memory, tensor k"]
    assert all(int(row[2]) >= 1 for row in rows)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_soak() -> None:
    """With one sample, which is compared with itself."""
    rows = run("soak.py", "--batches", "4", "--every", "4", "--only", "files")
    assert [row[:2] for row in rows] == [["files", "4"]]
