"""A finished run is run again and compared, and runs of several seeds are summed up."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import pytest
from _support.cli_tools import SMALL, Cli, status, train
from _support.training_tools import FAST, planted, stopped_at

from nodeflow.training import Trainer

pytestmark = pytest.mark.usefixtures("here")


def change(run: Path, row: int, column: int, value: str) -> None:
    with (run / "trace.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    rows[row][column] = value
    with (run / "trace.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


LINKS = [
    "--task link --model none --link-loss one-vs-all --inputs embedding --epochs 2",
]


@pytest.mark.parametrize("options", [SMALL, LINKS], ids=["nodes", "links"])
def test_a_run_is_the_same_again(options: list[str], data: Path, tmp_path: Path, cli: Cli) -> None:
    cli("train", data, "--output run --no-plot", *options)
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    lines = cli("reproduce run").splitlines()
    assert lines[-1] == "the same, bit for bit: 2 steps and all scores"
    assert {
        path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()
    } == before


def test_the_first_difference_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(data, run, "--no-plot") == 0
    change(run, 2, 3, "0.125")
    capsys.readouterr()
    assert status(["reproduce", run]) == 1
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(
        "the batches are the same, the losses not: first at epoch 2, batch 0 (loss "
    )
    change(run, 2, 2, "0" * 16)
    assert status(["reproduce", run]) == 1
    assert "differs first at epoch 2, batch 0: another batch (hash " in capsys.readouterr().out
    (run / "trace.csv").write_text("epoch,batch,hash,loss\n1,zero,aa,0.5\n")
    assert status(["reproduce", run]) == 2
    assert "trace.csv is no trace of a run: invalid literal for int()" in capsys.readouterr().err
    (run / "trace.csv").unlink()
    assert status(["reproduce", run]) == 2
    assert "trace.csv: only a run" in capsys.readouterr().err


def test_steps_that_do_not_come_are_no_agreement(data: Path, tmp_path: Path, cli: Cli) -> None:
    run = tmp_path / "run"
    cli.train(data, run, "--no-plot")
    titles, *steps = (run / "trace.csv").read_text().splitlines(keepends=True)
    for kept, line in (
        ([], "of 0 steps of the earlier run, 0 came"),
        ([*steps, "9,0,aa,1.0\n"], "of 3 steps"),
    ):
        (run / "trace.csv").write_text("".join([titles, *kept]))
        cli.capsys.readouterr()
        assert status(["reproduce", run]) == 1
        assert cli.capsys.readouterr().out.splitlines()[-1].startswith(line)


def test_runs_of_several_processes_and_seeds_are_refused(
    data: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    cli.train(data, run, "--no-plot")
    text = (run / "run.toml").read_text()
    (run / "run.toml").write_text("processes = 2\n" + text)
    assert "had 2 processes, and batches are compared with those of the first" in cli.failure(
        "reproduce", run
    )
    (run / "result.json").write_text("{}")
    (run / "run.toml").write_text(text)
    assert f"{run / 'result.json'} is damaged" in cli.failure("reproduce", run)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "--seeds is for one process" in cli.failure("train", data, "--seeds 2")


def test_other_scores_and_versions_are_said(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(data, run, "--no-plot") == 0
    facts = json.loads((run / "result.json").read_text())
    facts["versions"]["torch"] = "1.0"
    facts["scores"]["test"]["accuracy"] = 2.0
    (run / "result.json").write_text(json.dumps(facts))
    capsys.readouterr()
    assert status(["reproduce", run]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("torch: ") and line.endswith(" now, 1.0 then") for line in lines)
    assert lines[-1].startswith("test accuracy is ")
    assert lines[-1].endswith(", was 2.0")


def test_a_run_that_goes_on_has_the_trace_of_an_undisturbed_one() -> None:
    settings = FAST.replace(epochs=3, batch_size=5)
    whole, half, other = (Trainer(planted(), settings) for _ in range(3))
    whole.run()
    assert len(whole.trace.steps) > 3
    assert stopped_at(half, 25)
    other.load_state_dict(half.state_dict())
    other.run()
    assert other.trace.steps == whole.trace.steps


def test_seeds_are_summed_up(data: Path, tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "runs"
    words = ["train", data, *SMALL, "--seeds 3 --seed 5 --no-plot --output", folder]
    lines = cli(*words).splitlines()
    results = [
        json.loads((folder / f"seed-{seed}" / "result.json").read_text()) for seed in (5, 6, 7)
    ]
    values = [result["scores"]["test"]["accuracy"] for result in results]
    mean = statistics.mean(values)
    deviation = statistics.stdev(values)
    assert lines[-4].startswith("| run | test accuracy | ")
    assert lines[-2].startswith(f"| two, sage | {mean:.4f} ± {deviation:.4f} | ")
    assert lines[-1].startswith(rf"two, sage & ${mean:.4f} \pm {deviation:.4f}$ & ")
    assert json.loads((folder / "seeds.json").read_text())["test"]["accuracy"]["n"] == 3
    assert cli(*words).splitlines()[-4:] == lines[-4:]  # finished runs stay
    assert "a run with another lr than" in cli.failure(*words, "--lr 0.5 --seeds 4")
