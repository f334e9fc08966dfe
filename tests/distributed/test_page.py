"""The page on many processes: its program, started by its line, does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from _support.pages import ROOT, blocks, environment

PAGE = ROOT / "docs" / "distributed" / "processes.md"


@pytest.mark.slow
def test_the_program_of_the_page_runs_on_two_processes(tmp_path: Path) -> None:
    texts = {block.language: block.text for block in reversed(blocks(PAGE))}  # the first block of each language
    subprocess.run([sys.executable, "-c", texts["python"]], cwd=tmp_path, env=environment(), check=True)
    (tmp_path / "train.py").write_text(texts["py"])
    command, *words = texts["sh"].split()
    assert command == "torchrun"
    assert "train.py" in words
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (share,) = re.findall(r"([\d.]+) of all nodes are right", done.stdout)
    assert float(share) > 0.45  # chance is 0.25
