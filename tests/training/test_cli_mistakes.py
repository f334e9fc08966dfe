"""The command, given what cannot be: one line on stderr for every mistake, and nothing left
behind.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from _support.cli_tools import status, train

from nodeflow.training import Trainer, _data as data_sets, _folder as folder

pytest.importorskip("matplotlib")


def truncate(path: Path, size: int = -100) -> None:
    path.write_bytes(path.read_bytes()[:size])


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def overwrite(name: str, array: Any) -> Callable[[Path], None]:
    return lambda data: np.save(data / name, array)


def broken(name: str, size: int = -100) -> Callable[[Path], None]:
    return lambda data: truncate(data / name, size)


def lost(name: str) -> Callable[[Path], None]:
    return lambda data: remove(data / name)


BAD_DATA: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (remove, "there is no folder .*two"),
    "a file": (lambda data: (remove(data), data.touch()), "two is a file"),
    "no edges": (lost("edges.npz"), r"neither adjacency\.npz nor edges\.npz"),
    "no labels": (lost("labels.npy"), "'two' has no labels, so a model cannot be trained on it"),
    "truncated edges": (broken("edges.npz"), r"edges\.npz must be .* cut short"),
    "truncated features": (broken("features.npy"), r"features\.npy must be .* cut short"),
    "truncated labels": (broken("labels.npy"), r"labels\.npy must be .* cut short"),
    "empty labels": (broken("labels.npy", 0), r"labels\.npy must be"),
    "too few labels": (
        overwrite("labels.npy", np.zeros(7, int)),
        "must have 120 rows, one per node, got",
    ),
    "a feature that is no number": (
        overwrite("features.npy", np.where(np.arange(480).reshape(120, 4) == 280, np.nan, 1.0)),
        "the features of data set 'two' must be finite, but row 70 has NaN or inf",
    ),
    "no label anywhere": (overwrite("labels.npy", np.full(120, -1)), "'two' has no training nodes"),
    "pickled labels": (overwrite("labels.npy", np.array([{}] * 120)), "pickled objects"),
    "ids out of range": (
        overwrite("train.npy", np.array([0, 500])),
        r"train\.npy must hold ids of nodes",
    ),
}


def one_line(capsys: pytest.CaptureFixture[str], beginning: str = "nodeflow train: ") -> str:
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err[-1]) == ("", 1, "\n")
    assert err.startswith(beginning)
    assert "Traceback" not in err
    return err


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:numpy")
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case, data, tmp_path, capsys):
    damage, message = BAD_DATA[case]
    damage(data)
    assert train(data, tmp_path / "deep" / "out") == 2
    assert re.search(message, one_line(capsys))
    assert not (tmp_path / "deep").exists()


BAD_OPTIONS = {
    "--fanouts 0 5": r"fanouts\[0\] must be -1",
    "--fanouts": "--fanouts: expected at least one argument",
    "--fanouts ten": "expected integers, as in 10 10, or by name, as in a=5,b=10, got 'ten'; DATA "
    "goes before --f",
    "--hidden 100000000000000": "memory",
    "--hidden 99999999999999999999999999": "Overflow",
    "--epochs 1.5": "--epochs: invalid int value: '1.5'",
    "--seed x": "--seed: invalid int value: 'x'",
    "--sampler best": "--sampler: invalid choice: 'best'",
    "--model rgcn": "model 'rgcn' needs an edge column with types from 0: name it with edge_type",
    "--model nowhere:make": "model 'nowhere:make' cannot be imported: No module named 'nowhere'",
    "--metric best": "metric 'best' cannot be used: name must be ",
    "--task multilabel": "task 'multilabel' needs labels [nodes, labels] of 0 and 1, got",
    "--sampler-option replace": "argument --sampler-option: expected NAME=VALUE, got 'replace'",
    "--sampler-option size=3": "'size' (= 3) is no option of sampler 'neighbor' here; those are "
    "replace, prob, ",
    "--model-option width=3": "model 'sage' cannot be made: ",
    "--checkpoint-every never": "checkpoint_every must be a number of epochs, or of minutes as in "
    "'10min', got 'never'",
    "--config nowhere.toml": "no file of settings at nowhere.toml",
    "--resume nowhere": "--resume takes the settings of its folder, but ",
    "--seeds 3 --resume nowhere": "--seeds starts runs, and --resume goes on with one",
    "--unknown": "there is no option --unknown",
    "--data folder": "there is no option --data (see",
    "--learning-rate 1": "there is no option --learning-rate; it is called --lr here",
    "--threads 1": "there is no option --threads (see",
    "--hiden 1": "there is no option --hiden; it is called --hidden here",
    "another": "there is no further argument another",
    "--output": "--output: expected one argument",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_bad_options(options, data, tmp_path, capsys):
    assert train(data, tmp_path / "deep" / "out", *options.split()) == 2
    assert BAD_OPTIONS[options].replace("\\", "") in one_line(capsys, "nodeflow")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("arguments", [[], ["fly"], ["info --hidden 3"]])
def test_bad_commands(arguments, capsys):
    assert status(arguments) == 2
    assert re.fullmatch(r"nodeflow.*: .* \(see nodeflow .*--help\)\n", one_line(capsys, "nodeflow"))


def test_an_output_folder_that_is_a_file(data, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for output, why in (
        (tmp_path / "file", "it is a file"),
        (tmp_path / "file" / "out", "Not a directory"),
    ):
        assert train(data, output) == 2
        assert f"cannot write into the output folder {output}: {why}" in one_line(capsys)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_disk_that_fills_up_leaves_nothing_half_written(data, tmp_path, monkeypatch, capsys):
    def full(runs: object, path: Path, **options: object) -> None:
        path.write_bytes(b"half a picture")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "plot_curves", full)
    assert train(data, tmp_path / "new" / "out") == 2
    err = capsys.readouterr().err
    assert (
        err == f"nodeflow train: [Errno 28] No space left on device: '{tmp_path / 'new' / 'out'}'\n"
    )
    assert {file.name for file in (tmp_path / "new" / "out").iterdir()} == {
        "run.toml",
        "state.safetensors",
        "log.csv",
    }


def no_debian(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let the bundled data set fail when it is read."""
    monkeypatch.setattr(data_sets, "debian", Mock(side_effect=error))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("no column 'x'"), "no column 'x'"),
        (KeyError(), "KeyError"),
        (MemoryError(), "MemoryError"),
        (FloatingPointError("the loss became nan"), "the loss became nan"),
        (ValueError("first\nsecond"), "first"),
        (ValueError("\n"), "ValueError"),
    ],
)
def test_what_goes_wrong_inside_is_one_line_too(error, text, monkeypatch, capsys):
    no_debian(monkeypatch, error)
    assert status(["info"]) == 2
    assert one_line(capsys, "nodeflow info: ") == f"nodeflow info: {text}\n"
    with pytest.raises(type(error)):
        status(["info --traceback"])


def test_a_defect_of_the_program_is_not_called_a_mistake_of_the_user(
    monkeypatch,
):
    no_debian(monkeypatch, RuntimeError("a shape is wrong"))
    with pytest.raises(RuntimeError, match="a shape is wrong"):
        status(["info"])


def test_an_interruption_leaves_the_settings_behind(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Trainer, "step", Mock(side_effect=KeyboardInterrupt))
    assert train(data, tmp_path / "out") == 130
    how = f"nodeflow train --resume {tmp_path / 'out'}"
    assert (
        capsys.readouterr().err
        == f"nodeflow train: interrupted; goes on from its last checkpoint: {how}\n"
    )
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["run.toml"]
