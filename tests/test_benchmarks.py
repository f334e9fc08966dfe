"""The benchmark scripts run, on a graph so small that their figures mean nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("job", ["sample", "step"])
def test_compare_prints_a_table(job: str, tmp_path: Path) -> None:
    small = ["--scale", "8", "--edge-factor", "4", "--rounds", "1", "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "compare.py"), job, *small], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| nodeflow")]
    assert len(rows) == (3 if job == "sample" else 1)
    assert all(float(row.split("|")[2]) > 0 for row in rows)


def test_the_graph_is_symmetric_without_loops_or_repeats() -> None:
    sys.path.insert(0, str(SCRIPTS))
    try:
        from rmat import rmat
    finally:
        sys.path.remove(str(SCRIPTS))
    adjacency = rmat(7, 4)
    assert (adjacency != adjacency.T).nnz == 0
    assert adjacency.diagonal().sum() == 0
    assert adjacency.has_canonical_format
    assert (rmat(7, 4) != adjacency).nnz == 0
