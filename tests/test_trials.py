"""The trials run, on counts so small that their figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TRIALS = Path(__file__).parents[1] / "trials"


def run(script: str, *arguments: str) -> tuple[str, list[list[str]]]:
    """Run a trial that finds nothing; return what it prints, and the cells of its table without the
    titles.
    """
    command = [sys.executable, str(TRIALS / script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(TRIALS.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    return done.stdout, [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults happen in forked processes")
def test_faults():
    kinds = ["--kinds", "kill at", "full disk", "no memory, tensor k"]
    _, rows = run(
        "faults.py", "--only", "EmbeddingTable, files", "--kills", "2", "--disks", "1", *kinds
    )
    assert [row[1] for row in rows] == [
        "kill at a random moment",
        "full disk",
        "no memory, tensor k",
    ]
    assert all(int(row[2]) >= 1 for row in rows)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_soak():
    """With one sample, which is compared with itself."""
    _, rows = run("soak.py", "--batches", "4", "--every", "4", "--only", "files")
    assert [row[:2] for row in rows] == [["files", "4"]]


def test_alarms():
    text, rows = run(
        "alarms.py", "--seeds", "2", "--families", "labor", "full", "--checks", "structure", "pairs"
    )
    assert text.startswith("2 families, 2 seeds, 3 calls in 0 minutes")
    assert [row[:3] for row in rows] == [["0.01", "0.03", "0"], ["1e-06", "3e-06", "0"]]


def test_judge():
    text, rows = run("judge.py", "--checks", "edges", "fanouts")
    assert "DGL GraphBolt is left out: no --graphbolt PYTHON" in text
    assert {row[0].split()[0] for row in rows} == {"nodeflow"}
    assert ["NeighborSampler", "2", "", "", ""] in [row[1:] for row in rows]
