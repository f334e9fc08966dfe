"""Trials of samplers, of other libraries and of this one, with tiny budgets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "trials"


def run(script: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS.parent)}
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows_of(text: str) -> list[list[str]]:
    """Cells of the table rows, without the heading."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[1:]]


def test_alarms() -> None:
    text = run("alarms.py", "--seeds", "2", "--families", "labor", "full", "--checks", "structure", "pairs")
    assert text.startswith("2 families, 2 seeds, 3 calls in 0 minutes")
    assert [row[:3] for row in rows_of(text)] == [["0.01", "0.03", "0"], ["1e-06", "3e-06", "0"]]


def test_judge() -> None:
    text = run("judge.py", "--checks", "edges", "fanouts")
    assert "DGL GraphBolt is left out: no --graphbolt PYTHON" in text
    rows = rows_of(text)
    assert {row[0].split()[0] for row in rows} == {"nodeflow"}
    assert ["NeighborSampler", "2", "", "", ""] in [row[1:] for row in rows]
