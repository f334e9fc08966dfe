"""Nothing that is read chooses what is imported: a model of the user's own is named again by whoever opens the file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from _support.cli_tools import SMALL, Cli, status, two_communities

from nodeflow.datasets import read_folder
from nodeflow.training import Settings, Trainer, load_model, open_trainer

NAME = "module_that_a_file_names:make"
MODULE = NAME.partition(":")[0]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a finished run with a model of the user's own, whose module lies in the present folder."""
    (tmp_path / f"{MODULE}.py").write_text("from nodeflow.nn import GraphSAGE as make\n")
    two_communities(tmp_path / "two")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    sys.modules.pop(MODULE, None)
    words = ["train", "two", *SMALL, "--no-plot", "--output", "run", "--model", NAME]
    assert status(words) == 0
    assert MODULE in sys.modules
    del sys.modules[MODULE]
    return tmp_path / "run"


COMMANDS = {
    "evaluate": ["evaluate", "run"],
    "predict": ["predict", "run", "--output", "out.csv"],
    "resume": ["train", "--resume", "run"],
    "config": ["train", "two", "--config", "run/run.toml", "--output", "other", "--no-plot"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_imports_what_its_words_name_alone(command: list[str], run: Path, cli: Cli) -> None:
    shown = cli.failure(*command)
    assert f"run.toml: its model is {NAME!r}, and no file chooses what is imported" in shown
    assert f"--model {NAME}" in shown
    assert MODULE not in sys.modules
    if command[1] != "two":  # with --config, options win
        for other in ("elsewhere:make", "sage"):
            assert f"run.toml: its model is {NAME!r}, got {other!r}" in cli.failure(*command, "--model", other)
        assert MODULE not in sys.modules
    cli(*command, "--model", NAME)
    assert MODULE in sys.modules


CALLS: dict[str, Callable[..., object]] = {
    "load_model": lambda run, **options: load_model(run / "checkpoint.safetensors", **options),
    "open_trainer": open_trainer,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_imports_what_its_arguments_name_alone(call: Callable[..., object], run: Path) -> None:
    with pytest.raises(ValueError, match=rf"its model is '{NAME}', and no file chooses .* model='{NAME}' in Python"):
        call(run)
    with pytest.raises(ValueError, match=rf"its model is '{NAME}', got 'elsewhere:make'"):
        call(run, model="elsewhere:make")
    assert MODULE not in sys.modules
    call(run, model=NAME)
    assert MODULE in sys.modules


def test_what_only_reads_imports_nothing(run: Path, cli: Cli) -> None:
    assert "val accuracy" in cli("compare", run, run)
    state = open_trainer(run, model=NAME).state_dict()
    del sys.modules[MODULE]
    with pytest.raises(ValueError, match="is of a run with model = "):
        Trainer(read_folder(run.parent / "two"), Settings(fanouts=(3, 3))).load_state_dict(state)
    with pytest.raises(ValueError, match="no file chooses"):
        Settings.from_dict({"model": NAME})
    with pytest.raises(ValueError, match="no file chooses"):
        Settings.from_dict({"model": {"name": NAME}}, hidden=8)
    assert MODULE not in sys.modules
    assert Settings.from_dict({"model": NAME}, model=NAME).model.name == NAME


def test_the_command_finds_modules_of_the_present_folder_only_for_a_model_that_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    cli.failure("evaluate", run)
    assert "" not in sys.path
    cli("evaluate", run, "--model", NAME)
    assert "" in sys.path
