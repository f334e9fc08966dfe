"""Folders of runs that are damaged, cut off, or hold something else in the place of a file."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from _support.cli_tools import rows_of
from _support.run_files import read_state, read_tensors, write_state, write_tensors

from nodeflow.training import load_model

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def run(place: Path, tmp_path: Path) -> Path:
    shutil.copytree(place / "sage", tmp_path / "run")
    return tmp_path / "run"


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "link": (lambda path: path.symlink_to("nowhere"), "is a link to nowhere, where nothing is"),
    "FIFO": (os.mkfifo, "must be a file, but it is a FIFO"),
    "folder": (Path.mkdir, "must be a file, but it is a folder"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "must be a file, but it is a device"),
}
READERS = {
    "run.toml": ["evaluate", "train --resume", "predict --output x.csv", "compare", "info"],
    "state.safetensors": ["train --resume"],
    "checkpoint.safetensors": ["evaluate", "predict --output x.csv"],
    "log.csv": ["compare"],
    "result.json": ["compare"],
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_named(name, kind, run, monkeypatch, cli):
    monkeypatch.chdir(run.parent)
    make, words = PLACES[kind]
    (run / name).unlink()
    make(run / name)
    if name == "run.toml":
        (run / "result.json").unlink()
    for command in READERS[name]:
        assert f"{run / name} {words}" in cli.failure(*command.split(), run)
    if name == "run.toml":
        assert f"{run / name} {words}" in cli.failure("train --config", run / name)


def test_a_link_to_a_file_is_that_file(run, cli):
    for name in READERS:
        (run / name).rename(run.parent / name)
        (run / name).symlink_to(run.parent / name)
    for command in ("evaluate", "compare", "train --resume"):
        cli(*command.split(), run)


def test_a_new_run_replaces_links_and_refuses_folders(place, run, cli):
    (run / "log.csv").unlink()
    (run / "log.csv").symlink_to("nowhere")
    cli.train(place / "two", run, "--no-plot --overwrite")
    assert len(rows_of(run / "log.csv")) == 2
    (run / "state.safetensors").unlink()
    (run / "state.safetensors").mkdir()
    shown = cli.failure(
        "train", place / "two", "--fanouts 3 3 --hidden 8 --overwrite --output", run
    )
    assert "state.safetensors must be a file, but it is a folder" in shown


LOG = "epoch,loss,val_accuracy,seconds,seeds_per_second,edges_per_second\n1,0.5,0.5,1,2,3\n2,0.4,0.6,1,2,3\n"


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"", "log.csv was cut off, or is of another run than result.json"),
        (b"\n\n", "log.csv was cut off, or is of another run than result.json"),
        (
            b"\x89PNG\r\n\x1a\n",
            "log.csv, line 1 has bytes that are no UTF-8",
        ),
        (
            LOG.replace("epoch", "epic").encode(),
            "log.csv, line 2, is damaged: KeyError\\('epoch'\\)",
        ),
        (
            LOG.replace("0.4", "O.4").encode(),
            "log.csv, line 3, is damaged: could not convert string to float: 'O.4'",
        ),
        (LOG.replace("0.6,", "").encode(), "log.csv, line 3, is damaged"),
        (LOG.replace("\n2", "\n3").encode(), "log.csv, line 3, is damaged: epoch 2 is missing"),
        (LOG.replace("\n1", "\n1.5").encode(), "log.csv, line 2, is damaged: invalid literal"),
        (LOG.replace("2,3\n2", "2,\0\n2").encode(), "log.csv, line 2 has a NUL byte"),
        (
            LOG[: LOG.index("\n1") + 1].encode(),
            "log.csv was cut off, or is of another run than result.json",
        ),
    ],
    ids=range(10),
)
def test_compare_refuses_a_damaged_log(contents, words, run, cli):
    (run / "log.csv").write_bytes(LOG.encode())
    facts = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**facts, "best_epoch": 2}))
    cli("compare", run)
    (run / "log.csv").write_bytes(contents)
    assert re.search(words, cli.failure("compare", run))


@pytest.mark.parametrize(
    "change",
    [
        {"best_epoch": "1"}, {"best_epoch": -1}, {"best_epoch": None}, {"scores": []}, {"scores": {"val": 3}},
        {"scores": {"test": {"accuracy": "x"}}}, {"settings": []}, {"settings": {"hidden": "x"}},
        {"metric": ["accuracy"]}, {"dataset": 3}, {"versions": []}, {"machine": ["x"]},
    ],
)  # fmt: skip
def test_compare_refuses_a_damaged_result(change, run, cli):
    facts = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps({**facts, **change}))
    assert "result.json is damaged, or no result of a run" in cli.failure("compare", run)
    (run / "result.json").write_text("[" * 100_000)
    assert "result.json is damaged, or no result of a run" in cli.failure("compare", run)


# runs that were cut off


def test_drafts_of_a_killed_process_go(run, cli):
    data = tomllib.loads((run / "run.toml").read_text())["data"]
    small = ["--fanouts 3 --hidden 4 --epochs 1 --output", run, "--overwrite"]
    for command in (["--resume", run], [data, *small]):
        (run / ".unfinished-abc").mkdir()
        (run / ".unfinished-abc" / "log.csv").touch()
        cli("train", *command, "--no-plot")
        assert [path.name for path in run.iterdir() if path.name.startswith(".")] == []


def test_no_plot_stays_when_a_run_goes_on(data, cli):
    pytest.importorskip("matplotlib")
    cli.train(data, Path("bare"), "--no-plot")
    cli("train --resume bare")
    assert not Path("bare/curves.png").exists()
    cli.train(data, Path("drawn"))
    cli("train --resume drawn")
    assert Path("drawn/curves.png").exists()
    settings = Path("drawn/run.toml")
    assert "plot =" not in settings.read_text()
    cli("train --resume drawn --no-plot")
    assert "plot = false" in settings.read_text()
    settings.write_text(settings.read_text().replace("false", "3"))
    assert "plot must be True or False, got int 3" in cli.failure("evaluate drawn")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused_by_name(number, run, cli):
    # files whose checksums are right
    checkpoint = run / "checkpoint.safetensors"
    facts, weights = read_tensors(checkpoint)
    name = next(name for name, weight in weights.items() if weight.is_floating_point())
    weights[name].view(-1)[0] = number
    write_tensors(checkpoint, weights, facts)
    words = f"its weight {name!r} holds NaN or infinity"
    with pytest.raises(ValueError, match=words):
        load_model(checkpoint)
    assert f"{checkpoint}: {words}" in cli.failure("evaluate", run)
    file = run / "state.safetensors"
    state = read_state(file)
    state["network"][name].view(-1)[0] = number
    write_state(file, state)
    assert f"{file} cannot be gone on from: {words}" in cli.failure("train --resume", run)
    state["network"][name].view(-1)[0] = 0
    state["optimizer"]["state"][0]["exp_avg"].view(-1)[0] = number
    write_state(file, state)
    words = "its 'exp_avg' of weight 0 in the optimizer holds NaN"
    assert words in cli.failure("train --resume", run)
