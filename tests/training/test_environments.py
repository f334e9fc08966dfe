"""The command in unusual surroundings: it works, or one line says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from _support.processes import environment

OPTIONS = "--epochs 1 --fanouts 3 --hidden 4 --no-plot --output out"


def started(data: Path, redirections: str) -> subprocess.CompletedProcess[str]:
    command = f"exec {sys.executable} -m nodeflow train {data} {OPTIONS} {redirections}"
    words = ["sh", "-c", command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment(), cwd=data.parent)


@pytest.mark.slow
@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-"])
def test_without_standard_streams(data: Path, redirections: str) -> None:
    done = started(data, redirections)
    assert done.returncode == 0, done.stdout
    assert (data.parent / "out" / "result.json").is_file()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_named(data: Path) -> None:
    done = started(data, "> /dev/full")
    assert done.stderr.splitlines()[0] == "nodeflow train: [Errno 28] No space left on device: 'standard output'"
    assert done.returncode == 2
