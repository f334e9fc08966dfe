"""The page on many processes: its programs, started by their lines, do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from _support.pages import ROOT, blocks, environment

PAGE = ROOT / "docs" / "distributed" / "processes.md"


@pytest.mark.slow
def test_the_programs_of_the_page_run_on_two_processes(tmp_path: Path) -> None:
    found = blocks(PAGE)
    cut = next(block.text for block in found if block.language == "python")
    programs = [block.text for block in found if block.language == "py"]
    lines = [block.text for block in found if block.language == "sh"]
    subprocess.run([sys.executable, "-c", cut], cwd=tmp_path, env=environment(), check=True)
    printed = []
    for name, program, line in zip(("train.py", "same.py"), programs, lines, strict=True):
        (tmp_path / name).write_text(program)
        command, *words = line.split()
        assert command == "torchrun"
        assert name in words
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        done = subprocess.run(
            [*torchrun, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    (share,) = re.findall(r"([\d.]+) of all nodes are right", printed[0])
    assert float(share) > 0.45  # chance is 0.25
    said = re.findall(r"rank \d: \d+ batches are the same", printed[1])  # two processes may write into one line
    assert sorted(said) == [f"rank {rank}: 2 batches are the same" for rank in (0, 1)]
