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
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment(), cwd=data.parent
    )


@pytest.mark.slow
@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-"])
def test_without_standard_streams(data, redirections):
    done = started(data, redirections)
    assert done.returncode == 0, done.stdout
    assert (data.parent / "out" / "result.json").is_file()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_named(data):
    done = started(data, "> /dev/full")
    assert (
        done.stderr.splitlines()[0]
        == "nodeflow train: [Errno 28] No space left on device: 'standard output'"
    )
    assert done.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "options",
    [
        "--version",
        *(pytest.param(words, marks=pytest.mark.slow) for words in ("--help", "train --help")),
    ],
)
def test_help_that_cannot_be_printed_says_so(options, tmp_path):
    command = f"exec {sys.executable} -m nodeflow {options} > /dev/full"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.stderr.splitlines() == [
        "nodeflow: [Errno 28] No space left on device: 'standard output'"
    ]
    assert done.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "tr_TR.UTF-8"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {
            "LC_ALL": "POSIX",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONIOENCODING": "ascii",
        },
    ],
    ids=["Turkish", "C", "ASCII"],
)
def test_other_locales(tmp_path, locale):
    """Names of classes and columns with letters that the locale has not: trained, saved, read and
    shown.
    """
    folder = tmp_path / "data"
    lines = [f"{v},{'sığır' if v % 2 else 'İnek'},{v}" for v in range(40)]
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(["id,label,ışık", *lines]), encoding="utf-8")
    (folder / "edges.csv").write_text(
        "\n".join(["src,dst", *(f"{v},{(v + 2) % 40}" for v in range(40))]), encoding="utf-8"
    )
    seen = []
    for env in ({}, locale):
        flags = "-X warn_default_encoding -W error::EncodingWarning:nodeflow -m nodeflow"
        run = [sys.executable, *flags.split()]
        out = tmp_path / f"run{len(seen)}"
        for words in (
            ["info", folder],
            ["train", folder, *OPTIONS.split()[:-1], out],
            ["evaluate", out],
            ["compare", out],
        ):
            done = subprocess.run(
                [*run, *map(str, words)], capture_output=True, check=False, env=environment() | env
            )
            assert done.returncode == 0, done.stderr
        seen.append([(out / name).read_bytes() for name in ("checkpoint.safetensors", "run.toml")])
    assert seen[0] == seen[1]
