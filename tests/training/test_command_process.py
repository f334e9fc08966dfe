"""The command as a process of its own, and from tables in text files to a described model."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from _support.cli_tools import FILES, SMALL, two_communities
from _support.pages import ROOT, blocks

from nodeflow.datasets import read_folder
from nodeflow.training import load_model
from nodeflow.training._cli import main

pytest.importorskip("matplotlib")

SLOW = pytest.mark.slow


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


pytestmark = pytest.mark.usefixtures("one_thread")


def write(folder: Path, labels: list[str]) -> None:
    """Write 60 people in two teams who mostly cite their own team, in no order, with an age and a column left out."""
    random = np.random.default_rng(0)
    folder.mkdir()
    names = [f"person {v:02d}" for v in range(60)]
    with (folder / "nodes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "label", "age", "_note"])
        rows.writerows(
            [names[v], labels[v], 0.01 * random.integers(20, 70) + v % 2, ""] for v in random.permutation(60)
        )
    with (folder / "edges.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["from", "to", "how"])
        for u, v in random.integers(0, 60, (300, 2)):
            rows.writerow([names[u], names[v if (u - v) % 2 == 0 else (v + 1) % 60], ["cites", "praises"][u % 2]])


def test_from_tables_to_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, run, table = tmp_path / "people", tmp_path / "run", tmp_path / "table.csv"
    write(data, [("red", "blue")[v % 2] if v > 3 else "" for v in range(60)])
    assert main(["info", str(data)]) == 0
    printed = capsys.readouterr().out
    assert "  how         2, largest '" in printed
    assert "; 4 nodes without label" in printed
    assert main(["train", str(data), "--output", str(run), *SMALL, "--lr", "0.1", "--epochs", "10"]) == 0
    assert main(["train", "--resume", str(run), "--epochs", "30"]) == 0
    assert main(["evaluate", str(run)]) == 0
    assert main(["predict", str(run), "--output", str(table)]) == 0
    assert main(["predict", str(run), "--nodes", "unlabelled", "--output", str(tmp_path / "new.csv")]) == 0
    with (tmp_path / "new.csv").open(newline="") as file:
        assert sorted(row["name"] for row in csv.DictReader(file)) == [f"person {v:02d}" for v in range(4)]
    assert (run / "curves.png").is_file()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    right = sum(row["class_name"] == ("red", "blue")[int(row["name"].split()[1]) % 2] for row in rows)
    assert (len(rows), right >= 54) == (60, True)


def test_numbers_to_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "people"
    write(data, [f"{v % 2 + 0.5}" if v > 3 else "" for v in range(60)])
    assert main(["train", str(data), "--output", str(tmp_path / "run"), *SMALL, "--lr", "0.1", "--epochs", "10"]) == 0
    assert "rmse" in capsys.readouterr().out


def test_the_model_of_the_page_weights_its_means_by_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name from a file, drawn by the column too; the outputs of the first layer beside dense matrices."""
    data, run = tmp_path / "people", tmp_path / "run"
    write(data, [("red", "blue")[v % 2] for v in range(60)])
    rows = list(csv.reader((data / "edges.csv").read_text().splitlines()))
    with (data / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*row[:2], "weight" if i == 0 else f"{0.5 + i % 4}"] for i, row in enumerate(rows))
    (page,) = (block.text for block in blocks(ROOT / "docs" / "training.md") if "class WeightedMean" in block.text)
    (tmp_path / "weighted_by_column.py").write_text(page)
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--direction", "in", "--sampler-option", "prob=weight", "--epochs", "2", "--no-plot"]
    arguments = ["--model", "weighted_by_column:make", "--fanouts", "3", "3", "--hidden", "8", *options]
    assert main(["train", str(data), "--output", str(run), *arguments]) == 0

    graph = read_folder(data).graph
    src, dst = graph.edges()
    dense = torch.zeros(60, 60, dtype=torch.float64)
    dense.index_put_((dst, src), graph.edata["weight"].double(), accumulate=True)
    mean = dense / dense.sum(1, keepdim=True).clamp(min=1e-12)
    model = load_model(run / "checkpoint.safetensors").model.double()
    first, second = model.convs
    x = graph.ndata["feat"].double()
    hidden = first.linear(torch.cat([x, mean @ x], 1)).relu()
    expected = second.linear(torch.cat([hidden, mean @ hidden], 1))
    torch.testing.assert_close(model.inference(graph, x), expected, rtol=1e-12, atol=1e-12)
