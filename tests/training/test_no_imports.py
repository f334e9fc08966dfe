"""Nothing that is read chooses what is imported: a model of the user's own is named again by
whoever opens the file.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import SMALL, status, two_communities
from _support.run_files import run_of
from _support.training_tools import FAST, planted

from nodeflow import storage
from nodeflow.datasets import build_graph, read_edge_list, read_folder
from nodeflow.training import (
    Checkpoints,
    Settings,
    Trainer,
    load_model,
    open_finished,
    open_trainer,
    save,
)

NAME = "module_that_a_file_names:make"
MODULE = NAME.partition(":")[0]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """The folder of a finished run with a model of the user's own, whose module lies in the present
    folder.
    """
    (tmp_path / f"{MODULE}.py").write_text("from nodeflow.nn import GraphSAGE as make\n")
    two_communities(tmp_path / "two")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    sys.modules.pop(MODULE, None)
    words = ["train two", *SMALL, "--no-plot --output run --model", NAME]
    assert status(words) == 0
    assert MODULE in sys.modules
    del sys.modules[MODULE]
    return tmp_path / "run"


COMMANDS = {
    "evaluate": "evaluate run",
    "predict": "predict run --output out.csv",
    "resume": "train --resume run",
    "config": "train two --config run/run.toml --output other --no-plot",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_command_imports_what_its_words_name_alone(command, run, cli):
    shown = cli.failure(command)
    assert f"run.toml: its model is {NAME!r}, and no file chooses what is imported" in shown
    assert f"--model {NAME}" in shown
    assert MODULE not in sys.modules
    if "--config" not in command:  # with which options win
        for other in ("elsewhere:make", "sage"):
            words = f"run.toml: its model is {NAME!r}, got {other!r}"
            assert words in cli.failure(command, "--model", other)
        assert MODULE not in sys.modules
    cli(command, "--model", NAME)
    assert MODULE in sys.modules


CALLS: dict[str, Callable[..., object]] = {
    "load_model": lambda run, **options: load_model(run / "checkpoint.safetensors", **options),
    "open_finished": open_finished,
    "open_trainer": open_trainer,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_imports_what_its_arguments_name_alone(call, run):
    with pytest.raises(
        ValueError, match=rf"its model is '{NAME}', and no file chooses .* model='{NAME}' in Python"
    ):
        call(run)
    with pytest.raises(ValueError, match=rf"its model is '{NAME}', got 'elsewhere:make'"):
        call(run, model="elsewhere:make")
    assert MODULE not in sys.modules
    call(run, model=NAME)
    assert MODULE in sys.modules


def test_what_only_reads_imports_nothing(run, cli):
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


def test_the_command_finds_modules_of_the_present_folder_only_for_a_model_that_is_named(run, cli):
    sys.path[:] = [place for place in sys.path if place]  # undone with the run
    cli.failure("evaluate", run)
    assert "" not in sys.path
    cli("evaluate", run, "--model", NAME)
    assert "" in sys.path


# everything else that is read


class Payload:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def hostile(marker: Path) -> dict[str, bytes]:
    """Contents that run code in a reader that unpickles, evaluates or imports what it reads."""
    objects = np.empty(2, object)
    objects[:] = [Payload(marker)] * 2
    files = {"pickle": pickle.dumps(Payload(marker))}
    writers: dict[str, Callable[[io.BytesIO], object]] = {
        "npy": lambda file: np.save(file, objects, allow_pickle=True),
        "npz": lambda file: np.savez(
            file, src=objects, dst=objects, data=objects, indices=objects, format=objects
        ),
        "torch": lambda file: torch.save(Payload(marker), file),
    }
    for name, write in writers.items():
        write(file := io.BytesIO())
        files[name] = file.getvalue()
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    words = f'"!!python/object/apply:{MODULE}.make []"'
    files |= {"code": code.encode(), "json": f'{{"kind": {words}, "dtype": "{NAME}"}}'.encode()}
    header = f"{{'descr': {code}, 'fortran_order': False, 'shape': (2,)}}\n".encode()
    files["header"] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    files["toml"] = (
        f'model = "sage"\nmodel_options = {{activation = "{NAME}", norm = {words}}}\n'.encode()
    )
    return files


def calls(place: Path) -> dict[str, Callable[[Path], object]]:
    """Every file that something of this package reads, and a call that reads it."""
    planted().save(place / "graph")
    two_communities(place / "data")
    save(
        Trainer(planted(), FAST.replace(epochs=1), checkpoints=Checkpoints(place / "run")).run(),
        place / "run",
    )
    run_of(FAST.to_dict()).write(place / "run")
    folder = dict.fromkeys(
        ("edges.npz", "adjacency.npz", "features.npy", "labels.npy", "train.npy"), "data"
    )
    folder |= dict.fromkeys(
        ("features.npz", "labels.npz", "edges.csv", "edges.csv.gz", "nodes.csv"), "data"
    )
    own = {f"data/{name}": lambda path: read_folder(path.parent) for name in folder}
    stored = [path.relative_to(place) for path in (place / "graph").rglob("*") if path.is_file()]
    own |= {str(path): lambda _: read_folder(place / "graph") for path in stored}
    return own | {
        "run/run.toml": lambda path: open_trainer(path.parent, planted()),
        "run/state.safetensors": lambda path: open_trainer(path.parent, planted()),
        "run/checkpoint.safetensors": load_model,
        "run/result.json": lambda path: expect_success(["compare", path.parent]),
        "run/log.csv": lambda path: expect_success(["compare", path.parent]),
        "rows.npy": storage.open,
        "rows.safetensors": lambda path: storage.open(path, name="x"),
        "list.csv": read_edge_list,
        "list.npy": lambda path: build_graph([path], place / "built"),
        "list.parquet": lambda path: build_graph([path], place / "built"),
    }


def expect_success(words: list[str]) -> None:
    if status(words):
        raise ValueError(words)


def test_nothing_that_is_read_runs_code(tmp_path, monkeypatch):
    marker = tmp_path / "code was run"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{MODULE}.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    for name, call in calls(tmp_path).items():
        path = tmp_path / name
        before = path.read_bytes() if path.exists() else None
        hidden = [
            path.with_name(other)
            for other in RIVALS.get(path.name, ())
            if path.with_name(other).exists()
        ]
        for other in hidden:
            other.rename(tmp_path / other.name)
        for kind, contents in hostile(marker).items():
            path.write_bytes(contents)
            with suppress(ValueError, OSError, KeyError, ImportError):
                call(path)
            assert not marker.exists(), (name, kind)
            assert MODULE not in sys.modules, (name, kind)
        path.unlink()
        if before is not None:
            path.write_bytes(before)
        for other in hidden:
            (tmp_path / other.name).rename(other)


RIVALS = {
    **dict.fromkeys(("adjacency.npz", "edges.csv", "edges.csv.gz"), ("edges.npz",)),
    **dict.fromkeys(("features.npz", "labels.npz"), ("features.npy", "labels.npy")),
}
"""Files that would be refused beside one."""
