"""The command as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from _support.cli_tools import FILES, SMALL, two_communities

import nodeflow

pytest.importorskip("matplotlib")

SLOW = pytest.mark.slow
ROOT = Path(nodeflow.__file__).resolve().parents[1]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return two_communities(tmp_path / "two")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(), check=False)


def check_process(command: list[str], data: Path, tmp_path: Path) -> None:
    done = run([*command, "train", str(data), *SMALL], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "test accuracy" in done.stdout
    assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == FILES
    (data / "labels.npy").unlink()
    failed = run([*command, "train", str(data), "--output", "other"], tmp_path)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert re.fullmatch(
        r"nodeflow train: data set .* has no labels, so a model cannot be trained on it\n", failed.stderr
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_python_m_nodeflow(data: Path, tmp_path: Path) -> None:
    check_process([sys.executable, "-m", "nodeflow"], data, tmp_path)


@pytest.mark.slow
def test_the_installed_command(data: Path, tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "nodeflow"
    if not script.exists():
        pytest.skip("the package is not installed here")
    done = run([str(script), "info", str(data)], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "what", ["--version", *(pytest.param(what, marks=SLOW) for what in ("train", "info", "--help"))]
)
def test_a_reader_that_leaves_early_is_no_error(what: str, data: Path, tmp_path: Path) -> None:
    options = {"train": [str(data), *SMALL], "info": [str(data)]}.get(what, [])
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nodeflow", what, *options],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    if what == "train":
        assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == FILES
