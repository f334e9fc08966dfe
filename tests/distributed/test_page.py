"""The page on many processes: its program, started by its line, trains; the other lines name what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from _support.pages import ROOT, blocks, environment

PAGE = ROOT / "docs" / "distributed" / "processes.md"


@pytest.mark.slow
def test_the_program_of_the_page_trains_on_two_processes(tmp_path: Path) -> None:
    found = blocks(PAGE)
    cut = next(block.text for block in found if block.language == "python")
    (program,) = (block.text for block in found if block.language == "py")
    (line,) = (block.text for block in found if block.language == "sh")
    subprocess.run([sys.executable, "-c", cut], cwd=tmp_path, env=environment(), check=True)
    (tmp_path / "train.py").write_text(program)
    command, *words = line.split()
    assert command == "torchrun"
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    done = subprocess.run(
        [*torchrun, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (share,) = re.findall(r"([\d.]+) of all nodes are right", done.stdout)
    assert float(share) > 0.45  # chance is 0.25
