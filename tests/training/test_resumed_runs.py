"""A run that is cut off goes on bit for bit: after stop, SIGTERM, kill -9, and a disk that is
full.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from _support.cli_tools import SMALL, Cli, status
from _support.effort import examples
from _support.pages import environment
from _support.run_files import read_state, write_state, write_tensors
from _support.training_tools import FAST, check_goes_on, planted, same_result, stopped_at, without
from hypothesis import given, strategies as st

from nodeflow import NodeFlow
from nodeflow.metrics import named
from nodeflow.nn import GraphSAGE
from nodeflow.training import Checkpoints, Trainer, open_trainer

RUNS = {
    "plain": FAST,
    "history": FAST.replace(sampler="cv"),
    "dependent": FAST.replace(sampler="labor", sampler_options={"batch_dependency": 3}, batch_size=16),
    "subgraphs": FAST.replace(sampler="saint", model="gcn"),
    "schedule": FAST.replace(
        accumulate=3, schedule="cosine", warmup=1.0, clip=1.0, optimizer="adamw", batch_size=16, norm="batch"
    ),
    "early": FAST.replace(patience=2, optimizer="sgd", batch_size=16, workers=3, inputs="both", lr=0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_from_any_step(name, tmp_path):
    run = RUNS[name].replace(epochs=3)
    steps = 3 * len(Trainer(planted(), run).batches)
    for workers, step in enumerate({1, 2, steps // 2, steps - 1}):
        check_goes_on(planted, run, [step], tmp_path, workers=workers)


def test_early_stopping_stops():
    trainer = Trainer(planted(), FAST.replace(patience=2, epochs=40))
    result = trainer.run()
    assert len(result.records) == result.best_epoch + 2 < 40
    assert trainer.is_finished


def test_a_stop_within_accumulated_gradients_waits_for_the_step(tmp_path):
    trainer = Trainer(planted(), RUNS["schedule"], checkpoints=Checkpoints(tmp_path, epochs=0))
    assert stopped_at(trainer, 4)
    assert trainer.batches_done == 6


def test_states_of_other_runs_are_refused():
    cosine = FAST.replace(schedule="cosine")
    for data, first, other, message in (
        (
            planted(),
            FAST,
            FAST.replace(hidden=17),
            "the state is of a run with hidden = 16, got 17",
        ),
        (
            planted(),
            cosine,
            cosine.replace(epochs=7),
            "the state is of a run with epochs = 6, got 7",
        ),
        (planted(val=12), FAST, FAST, "the state is of another data set, or of a changed one"),
    ):
        state = Trainer(planted(), first).state_dict()
        with pytest.raises(ValueError, match=message):
            Trainer(data, other).load_state_dict(state)


def crude(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (1 - outputs.softmax(1).gather(1, labels[:, None])[:, 0]) ** 2


def gentle(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


def test_a_run_with_parts_of_ones_own_goes_on_with_them_only(tmp_path):
    own: dict[str, Any] = {"loss": crude, "optimizer": gentle, "metrics": [named("f1_macro")]}
    settings = without(FAST, "lr")
    wanted = Trainer(planted(), settings, **own).run()
    checkpoints = Checkpoints(tmp_path / "made" / "here")
    stopped_at(Trainer(planted(), settings, **own, checkpoints=checkpoints), 3)
    for name, part in (("loss", "crude"), ("optimizer", "gentle"), ("metrics", "f1_macro")):
        fewer = {other: value for other, value in own.items() if other != name}
        with pytest.raises(ValueError, match=f"parts of your own: .*'{name}': '{part}'.*, got"):
            checkpoints.restore(Trainer(planted(), settings, **fewer))
    with pytest.raises(
        ValueError, match=r"parts of your own: {}, got {'loss': 'crude'}; pass them"
    ):
        Trainer(planted(), FAST, loss=crude).load_state_dict(Trainer(planted(), FAST).state_dict())
    trainer = Trainer(planted(), settings, **own)
    assert checkpoints.restore(trainer)
    assert same_result(trainer.run(), wanted)


@pytest.mark.parametrize(
    ("interval", "epochs", "minutes"),
    [("2", 2, 0), ("10min", 0, 10), ("0.5 min", 0, 0.5), ("0", 0, 0)],
)
def test_intervals(interval, epochs, minutes, tmp_path):
    made = Checkpoints.every(tmp_path, interval)
    assert (made.epochs, made.minutes) == (epochs, minutes)


def test_states_are_saved_when_it_is_time(tmp_path, monkeypatch):
    saved: list[tuple[int, int]] = []

    class Noted(Checkpoints):
        def save(self, run):
            saved.append((run.epoch, run.batches_done))

    Trainer(planted(), FAST.replace(epochs=5), checkpoints=Noted(tmp_path, epochs=2)).run()
    assert saved == [(2, 0), (4, 0)]
    saved.clear()
    now = itertools.count(0, 40)  # every look at the clock is 40 seconds later
    monkeypatch.setattr("nodeflow.training._checkpoints.time.monotonic", lambda: next(now))
    Trainer(
        planted(), FAST.replace(epochs=1), checkpoints=Noted(tmp_path, epochs=0, minutes=1)
    ).run()
    assert saved == [(0, 2)]


# the file

STATE = "state.safetensors"

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=8,
)


@examples(60)
@given(
    tree=trees,
    shape=st.lists(st.integers(0, 3), max_size=3),
    kind=st.sampled_from(["float32", "int64", "uint8"]),
)
def test_a_state_comes_back_as_it_was(tree, shape, kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "s.safetensors"
    tensor = torch.arange(torch.Size(shape).numel()).reshape(shape).to(getattr(torch, kind))
    write_state(
        path, {"tree": tree, "tensors": [tensor, {"x": tensor.T if tensor.ndim == 2 else tensor}]}
    )
    back = read_state(path)
    assert back["tree"] == tree
    assert type(back["tree"]) is type(tree)
    assert torch.equal(back["tensors"][0], tensor)
    assert back["tensors"][0].dtype == tensor.dtype


@pytest.mark.parametrize("tree", [{"tensor": "none"}, {"dict": 3}, {"a": 1, "b": 2}])
def test_a_state_that_is_none_is_named(tree, tmp_path):
    write_tensors(tmp_path / "s.safetensors", {}, tree)
    with pytest.raises(
        ValueError, match=r"s\.safetensors does not hold the state that it says it holds"
    ):
        read_state(tmp_path / "s.safetensors")


def test_what_a_state_cannot_hold(tmp_path):
    with pytest.raises(
        TypeError, match=r"a state holds tensors, numbers, strings and None, got set at state\.a\.1"
    ):
        write_state(tmp_path / "s", {"a": [1, {2}]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("place", "name"), [(Path, "open"), (os, "fsync"), (Path, "replace")])
def test_a_full_disk_keeps_the_last_state(place, name, tmp_path, monkeypatch):
    trainer = Trainer(planted(), FAST.replace(epochs=1), checkpoints=Checkpoints(tmp_path))

    trainer.run()
    before = (tmp_path / STATE).read_bytes()
    monkeypatch.setattr(place, name, Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device; a state saved before stays"):
        Checkpoints(tmp_path).save(trainer)
    monkeypatch.undo()
    assert (tmp_path / STATE).read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [STATE]


# the command


QUICK = {"--batch-size": 4, "--hidden": 8, "--epochs": 6, "--lr": 0.02, "--workers": 2}
LONG = [*SMALL[:3], "--no-plot", *(str(word) for pair in QUICK.items() for word in pair)]


def start(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "nodeflow", "train", *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def check_cut_run(tmp_path: Path, cli: Cli) -> None:
    """The run in "cut" says that it is not finished, and goes on to the results of "whole"."""
    assert not (tmp_path / "cut" / "checkpoint.safetensors").exists()
    for command in (["evaluate"], ["compare"]):
        assert "is not finished: nodeflow train --resume" in cli.failure(*command, tmp_path / "cut")
    assert "goes on after epoch " in cli("train", "--resume", tmp_path / "cut", "--no-plot")
    for name in ("checkpoint.safetensors", "result.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert "is finished; its files are written again" in cli(
        "train", "--resume", tmp_path / "cut", "--no-plot"
    )


def test_sigterm_saves_the_state_and_resume_goes_on(data, tmp_path, cli, monkeypatch):
    options = [str(data), *SMALL, "--no-plot", "--workers", "2"]
    assert status(["train", *options, "--output", str(tmp_path / "whole")]) == 0
    step = Trainer.step
    count = itertools.count(1)

    def terminated(trainer: Trainer, batch: NodeFlow) -> float:
        if next(count) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(trainer, batch)

    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as change:
        change.setattr(Trainer, "step", terminated)
        assert status(["train", *options, "--output", str(tmp_path / "cut")]) == 143
    assert signal.getsignal(signal.SIGTERM) == before
    err = cli.capsys.readouterr().err
    assert err.startswith("nodeflow train: stopped in epoch ")
    assert err.endswith(f"its state is saved: nodeflow train --resume {tmp_path / 'cut'}\n")
    check_cut_run(tmp_path, cli)


@pytest.mark.slow
def test_fifty_kills_at_random_moments_change_nothing(data, tmp_path):
    assert status(["train", str(data), *LONG, "--output", str(tmp_path / "whole")]) == 0
    wanted = (tmp_path / "whole" / "checkpoint.safetensors").read_bytes()
    before = time.monotonic()
    start(str(data), *LONG, "--output", str(tmp_path / "timed")).communicate(timeout=1200)
    length = time.monotonic() - before
    draw = random.Random(3)
    cut = tmp_path / "cut"
    kills = 0
    while kills < 50:
        if not (cut / "run.toml").exists():
            process = start(str(data), *LONG, "--output", str(cut))
        else:
            process = start("--resume", str(cut), "--no-plot")
        try:
            _, err = process.communicate(timeout=draw.uniform(0, 1.1 * length))
            assert process.returncode == 0, err
            assert (cut / "checkpoint.safetensors").read_bytes() == wanted
            for file in cut.iterdir():
                file.unlink()
        except subprocess.TimeoutExpired:
            process.kill()  # SIGKILL
            process.communicate()
            kills += 1
    assert (
        status(
            ["train", "--resume", str(cut), "--no-plot"]
            if (cut / "run.toml").exists()
            else ["info"]
        )
        == 0
    )
    if (cut / "checkpoint.safetensors").exists():
        assert (cut / "checkpoint.safetensors").read_bytes() == wanted


def test_a_state_that_is_gone_is_said(data, tmp_path, cli):
    run = tmp_path / "run"
    cli.train(data, run, "--no-plot", "--checkpoint-every", "2")
    (run / STATE).unlink()
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    words = f"{run / STATE} is gone, which the run had saved: 2 epochs are in log.csv"
    assert words in cli.failure("train", "--resume", run)
    with pytest.raises(FileNotFoundError, match="is gone, which the run had saved"):
        open_trainer(run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == files
    # in the first epoch none was saved
    log = (run / "log.csv").read_text().splitlines(keepends=True)
    (run / "log.csv").write_text("".join(log[:2]) + "2,0.")
    assert open_trainer(run).epoch == 0
    again = ["--config", run / "run.toml", "--output", run, "--overwrite"]
    cli("train", *again)
    assert (run / "checkpoint.safetensors").read_bytes() == files["checkpoint.safetensors"]


def test_a_model_of_the_users_own_goes_on(tmp_path):
    def trainer(**options: Any) -> Trainer:
        torch.manual_seed(4)
        return Trainer(
            planted(),
            without(FAST.replace(epochs=2), "hidden", "dropout"),
            model=GraphSAGE(3, 8, 3, dropout=0.5),
            **options,
        )

    wanted = trainer().run()
    assert stopped_at(trainer(checkpoints=Checkpoints(tmp_path)), 3)
    again = trainer()
    assert Checkpoints(tmp_path).restore(again)
    assert same_result(again.run(), wanted)
