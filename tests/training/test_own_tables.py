"""From tables in text files to a trained, resumed, evaluated and described model, with commands alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from _support.cli_tools import SMALL

from nodeflow.training._cli import main

pytest.importorskip("matplotlib")
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
