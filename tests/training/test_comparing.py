"""The command compare: a table and a picture of finished runs."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from _support.cli_tools import Cli, train

from nodeflow.training import _comparing


def test_compare_shows_what_differs(place: Path, tmp_path: Path, cli: Cli) -> None:
    picture = tmp_path / "both.png"
    printed = cli("compare", place / "sage", place / "gcn", "--output", picture)
    header, first, second, wrote = printed.splitlines()
    assert re.sub(" +", " ", header.strip()) == "run test accuracy val accuracy best epoch seconds edges model"
    for line, model in ((first, "sage"), (second, "gcn")):
        result = json.loads((place / model / "result.json").read_text())
        name, test, val, epoch, _, edges, shown = line.split()
        scores = [f"{result['scores'][part]['accuracy']:.4f}" for part in ("test", "val")]
        assert [name, test, val] == [str(place / model), *scores]
        assert (int(epoch), shown) == (result["best_epoch"], model)
        with (place / model / "log.csv").open(newline="") as file:
            drawn = [float(row["seconds"]) * float(row["edges_per_second"]) for row in csv.DictReader(file)]
        assert edges == f"{sum(drawn) / 1e6:.3g}M"
    assert wrote == f"wrote {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_names_data_sets_that_differ(place: Path, tmp_path: Path, cli: Cli) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    (other / "result.json").write_text(json.dumps({**result, "dataset": "three"}))
    header, first, second = cli("compare", place / "sage", other).splitlines()
    assert (header.split()[1], first.split()[1], second.split()[1]) == ("data", "two", "three")
    for damage in ("{", "{}", "[]"):
        (other / "result.json").write_text(damage)
        assert f"{other / 'result.json'} is damaged, or no result of a run" in cli.failure("compare", other)


def test_compare_says_what_runs_were_validated_on(
    place: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where settings leave it open, layer-wise samplers validate on all neighbours, neighbour sampling on batches."""
    drawn: list[list[str]] = []
    monkeypatch.setattr(_comparing, "plot_curves", lambda runs, path, metric: drawn.append(list(runs)))
    ladies, full = tmp_path / "ladies", tmp_path / "full"
    assert train(place / "two", ladies, "--no-plot", "--sampler", "ladies", "--fanouts", "9", "9") == 0
    assert train(place / "two", full, "--no-plot", "--validate", "full") == 0

    printed = cli("compare", place / "sage", ladies, "--output", tmp_path / "a.png")
    header, first, second, warning, _ = printed.splitlines()
    assert "validate" in header.split()
    assert "sampled" in first.split()
    assert "full" in second.split()
    assert "train all with --validate full" in warning
    names = [f"{place / 'sage'} (validation sampled)", f"{ladies} (validation full)"]
    assert drawn == [names]

    assert "validate" not in cli("compare", ladies, full, "--output", tmp_path / "b.png")
    assert drawn[1:] == [[str(ladies), str(full)]]


def test_compare_of_different_metrics_takes_one_that_all_have(place: Path, tmp_path: Path, cli: Cli) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    own = {part: {"worst recall": 0.5, **scores} for part, scores in result["scores"].items()}
    (other / "result.json").write_text(json.dumps({**result, "metric": "worst recall", "scores": own}))
    header, first, second = cli("compare", other, place / "sage").splitlines()
    assert header.split()[:5] == ["run", "best", "by", "test", "accuracy"]
    assert "worst recall" in first
    assert first.split()[3:5] == second.split()[2:4]  # the same scores: the runs differ in the name of the metric alone
    alone = {part: {"rmse": 0.5} for part in own}
    (other / "result.json").write_text(json.dumps({**result, "metric": "rmse", "scores": alone}))
    assert "different metrics, accuracy, rmse, and none in common" in cli.failure("compare", place / "sage", other)
