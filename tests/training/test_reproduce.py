"""A finished run is run again and compared, and runs of several seeds are summed up."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest
import torch
from _support.cli_tools import SMALL, Cli
from _support.training_tools import FAST, planted, stopped_at

from nodeflow.training import Trainer

pytestmark = pytest.mark.usefixtures("here")


TRACE = Path("run/trace.csv")


@pytest.fixture
def run(data: Path, here: None, cli: Cli) -> Path:
    """A finished run in the present folder."""
    cli.train(data, Path("run"), "--no-plot")
    return Path("run")


def change(row: int, column: int, value: str) -> None:
    rows = [line.split(",") for line in TRACE.read_text().splitlines()]
    rows[row][column] = value
    TRACE.write_text("\n".join(map(",".join, rows)))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


LINKS = ["--task link --model none --link-loss one-vs-all --inputs embedding --epochs 2"]


@pytest.mark.parametrize("options", [SMALL, LINKS], ids=["nodes", "links"])
def test_a_run_is_the_same_again(options, data, cli):
    cli("train", data, "--output run --no-plot", *options)
    before = contents(Path("run"))
    lines = cli("reproduce run").splitlines()
    assert lines[-1] == "the same, bit for bit: 2 steps and all scores"
    assert contents(Path("run")) == before


@pytest.mark.usefixtures("run")
def test_the_first_difference_is_named(cli):
    change(2, 3, "0.125")
    words = "the batches are the same, the losses not: first at epoch 2, batch 0 (loss "
    assert cli.differs("reproduce run")[-1].startswith(words)
    change(2, 2, "0" * 16)
    words = "differs first at epoch 2, batch 0: another batch (hash "
    assert cli.differs("reproduce run")[-1].startswith(words)
    TRACE.write_text("epoch,batch,hash,loss\n1,zero,aa,0.5\n")
    words = "trace.csv is no trace of a run: invalid literal for int()"
    assert words in cli.failure("reproduce run")
    TRACE.unlink()
    assert "trace.csv: only a run" in cli.failure("reproduce run")


@pytest.mark.usefixtures("run")
def test_steps_that_do_not_come_are_no_agreement(cli):
    text = TRACE.read_text()
    for changed, line in (
        (text.splitlines()[0], "of 0 steps of the earlier run, 0 came"),
        (f"{text}9,0,aa,1.0\n", "of 3 steps"),
    ):
        TRACE.write_text(changed)
        assert cli.differs("reproduce run")[-1].startswith(line)


def test_runs_of_several_processes_and_seeds_are_refused(run, cli, monkeypatch):
    settings = run / "run.toml"
    text = settings.read_text()
    settings.write_text("processes = 2\n" + text)
    words = "had 2 processes, and batches are compared with those of the first"
    assert words in cli.failure("reproduce run")
    (run / "result.json").write_text("{}")
    settings.write_text(text)
    assert "run/result.json is damaged" in cli.failure("reproduce run")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "--seeds is for one process" in cli.failure("train debian --seeds 2")


def test_other_scores_and_versions_are_said(run, cli):
    facts = json.loads((run / "result.json").read_text())
    facts["versions"]["torch"] = "1.0"
    facts["scores"]["test"]["accuracy"] = 2.0
    (run / "result.json").write_text(json.dumps(facts))
    lines = cli.differs("reproduce run")
    assert f"torch: {torch.__version__} now, 1.0 then" in lines
    assert re.fullmatch(r"test accuracy is .*, was 2\.0", lines[-1])


def test_a_run_that_goes_on_has_the_trace_of_an_undisturbed_one():
    settings = FAST.replace(epochs=3, batch_size=5)
    whole, half, other = (Trainer(planted(), settings) for _ in range(3))
    whole.run()
    assert len(whole.trace.steps) > 3
    assert stopped_at(half, 25)
    other.load_state_dict(half.state_dict())
    other.run()
    assert other.trace.steps == whole.trace.steps


def test_seeds_are_summed_up(data, cli):
    words = ["train", data, *SMALL, "--seeds 3 --seed 5 --no-plot --output runs"]
    lines = cli(*words).splitlines()[-3:]
    values = []
    for seed in (5, 6, 7):
        facts = json.loads(Path(f"runs/seed-{seed}/result.json").read_text())
        values.append(facts["scores"]["test"]["accuracy"])
    mean = statistics.mean(values)
    deviation = statistics.stdev(values)
    assert lines[0].startswith("| run | test accuracy | ")
    assert lines[2].startswith(f"| two, sage | {mean:.4f} ± {deviation:.4f} | ")
    assert json.loads(Path("runs/seeds.json").read_text())["test"]["accuracy"]["n"] == 3
    assert cli(*words).splitlines()[-3:] == lines  # finished runs stay
    assert "a run with another lr than" in cli.failure(*words, "--lr 0.5 --seeds 4")
