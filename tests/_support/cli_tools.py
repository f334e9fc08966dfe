"""What the tests of the command share: a small data set, and calls of the command in this
process.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nodeflow.training._cli import main

SMALL = [
    "--fanouts",
    "3",
    "3",
    "--batch-size",
    "40",
    "--hidden",
    "8",
    "--epochs",
    "2",
    "--lr",
    "0.02",
]
COMMAND = re.compile(
    r"(train|evaluate|predict|compare|reproduce|info|build|partition) |--\S+ |\S.* --"
)
FILES = [
    "checkpoint.safetensors",
    "curves.png",
    "log.csv",
    "result.json",
    "run.toml",
    "state.safetensors",
    "trace.csv",
]


def two_communities(folder: Path) -> Path:
    """A folder with a graph of two communities of 60 nodes, weak features, and no split of its
    own.
    """
    folder.mkdir()
    random = np.random.default_rng(1)
    label = np.repeat([0, 1], 60)
    dst = np.repeat(np.arange(120), 5)
    src = 60 * label[dst] + random.integers(0, 60, len(dst))
    feat = label[:, None] + random.normal(0, 1.5, (120, 4))
    np.savez(folder / "edges.npz", src=src, dst=dst)
    np.save(folder / "features.npy", feat)  # float64, as numpy makes it
    np.save(folder / "labels.npy", label)
    return folder


def status(words: Sequence[str | Path]) -> int:
    """Return the exit status of a command, also where the parser ends the process.

    A string that begins with a command, or has an option in it, is split into words.
    """
    arguments: list[str] = []
    for word in map(str, words):
        arguments += word.split() if COMMAND.match(word) else [word]
    try:
        return main(arguments)
    except SystemExit as error:
        return int(error.code or 0)


def train(data: Path, output: Path, *options: str | Path) -> int:
    return status(["train", data, *SMALL, "--output", output, *options])


def rows_of(table: Path) -> list[dict[str, str]]:
    """Return the rows of a table in a CSV file, by title."""
    with table.open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


class Cli:
    """The command, with what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str | Path) -> str:
        """Run a command that succeeds, with nothing on standard error; return what it printed."""
        printed, errors = self._run(0, words)
        assert errors == ""  # no terminal, no bar
        return printed

    def train(self, data: Path, output: Path, *options: str | Path) -> str:
        """Run a small training."""
        return self("train", data, *SMALL, "--output", output, *options)

    def differs(self, *words: str | Path) -> list[str]:
        """Run a command that ends with status 1; return the lines that it printed."""
        return self._run(1, words)[0].splitlines()

    def failure(self, *words: str | Path) -> str:
        """Run a command that fails; return its one line on standard error."""
        shown = self._run(2, words)[1]
        assert shown.count("\n") == 1
        return shown

    def _run(self, expected: int, words: tuple[str | Path, ...]) -> tuple[str, str]:
        self.capsys.readouterr()
        assert status(words) == expected
        return self.capsys.readouterr()
