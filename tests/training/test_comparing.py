"""The command compare: a table and a picture of finished runs."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from _support.cli_tools import failure, finished_runs, status, train

from nodeflow.training import _run_commands

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data set "two" and its finished runs "sage" and "gcn"."""
    return finished_runs(tmp_path_factory.mktemp("runs"))


def test_compare_shows_what_differs(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "both.png"
    assert status(["compare", str(place / "sage"), str(place / "gcn"), "--output", str(picture)]) == 0
    header, first, second, wrote = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "run",
        "test",
        "accuracy",
        "val",
        "accuracy",
        "best",
        "epoch",
        "seconds",
        "edges",
        "model",
    ]
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


def test_compare_names_data_sets_that_differ(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    (other / "result.json").write_text(json.dumps({**result, "dataset": "three"}))
    assert status(["compare", str(place / "sage"), str(other)]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert (header.split()[1], first.split()[1], second.split()[1]) == ("data", "two", "three")
    for damage in ("{", "{}", "[]"):
        (other / "result.json").write_text(damage)
        assert f"{other / 'result.json'} is damaged, or no result of a run" in failure(["compare", other], capsys)


def test_compare_says_what_runs_were_validated_on(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where settings leave it open, layer-wise samplers validate on all neighbours, neighbour sampling on batches."""
    drawn: list[list[str]] = []
    monkeypatch.setattr(_run_commands, "plot_curves", lambda runs, path, metric: drawn.append(list(runs)))
    ladies, full = tmp_path / "ladies", tmp_path / "full"
    assert train(place / "two", ladies, "--no-plot", "--sampler", "ladies", "--fanouts", "9", "9") == 0
    assert train(place / "two", full, "--no-plot", "--validate", "full") == 0
    capsys.readouterr()

    assert status(["compare", str(place / "sage"), str(ladies), "--output", str(tmp_path / "a.png")]) == 0
    header, first, second, warning, _ = capsys.readouterr().out.splitlines()
    assert "validate" in header.split()
    assert "sampled" in first.split()
    assert "full" in second.split()
    assert "train all with --validate full" in warning
    names = [f"{place / 'sage'} (validation sampled)", f"{ladies} (validation full)"]
    assert drawn == [names]

    assert status(["compare", str(ladies), str(full), "--output", str(tmp_path / "b.png")]) == 0
    assert "validate" not in capsys.readouterr().out
    assert drawn[1:] == [[str(ladies), str(full)]]


def test_compare_of_different_metrics_takes_one_that_all_have(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    own = {part: {"worst recall": 0.5, **scores} for part, scores in result["scores"].items()}
    (other / "result.json").write_text(json.dumps({**result, "metric": "worst recall", "scores": own}))
    assert status(["compare", str(other), str(place / "sage")]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["run", "best", "by", "test", "accuracy"]
    assert "worst recall" in first
    assert first.split()[3:5] == second.split()[2:4]  # the same scores: the runs differ in the name of the metric alone
    alone = {part: {"rmse": 0.5} for part in own}
    (other / "result.json").write_text(json.dumps({**result, "metric": "rmse", "scores": alone}))
    assert "different metrics, accuracy, rmse, and none in common" in failure(
        ["compare", place / "sage", other], capsys
    )
