"""Programs that are killed while they write."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def killed(code: str, folder: Path, seconds: float, opened: Callable[[Path], object]) -> None:
    """Run a program that writes ``folder`` and prints "ready" when it begins, and kill it some seconds later.

    The program gets the folder and the folder of the tests as arguments. Meanwhile ``opened(folder)`` must be refused.
    """
    command = [sys.executable, "-c", code, str(folder), str(Path(__file__).parents[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(BlockingIOError, match="written by another process"):
            opened(folder)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        else:
            raise AssertionError("the program ended by itself")
