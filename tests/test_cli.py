"""The command: what it prints and writes, that every option counts, and one line on stderr for every mistake."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nodeflow
from nodeflow import checkpoint, cli, training
from nodeflow.checkpoint import load_model
from nodeflow.cli import main

pytest.importorskip("matplotlib")

FILES = ["checkpoint.safetensors", "curves.png", "log.csv", "result.json"]
SMALL = ["--fanouts", "3", "3", "--batch-size", "40", "--hidden", "8", "--epochs", "2", "--lr", "0.02"]
ROOT = Path(nodeflow.__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny products are slower on several threads, many times so where the processors are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a graph of two communities of 60 nodes, weak features, and no split of its own."""
    folder = tmp_path / "two"
    folder.mkdir()
    random = np.random.default_rng(1)
    label = np.repeat([0, 1], 60)
    dst = np.repeat(np.arange(120), 5)
    src = 60 * label[dst] + random.integers(0, 60, len(dst))
    feat = label[:, None] + random.normal(0, 1.5, (120, 4))
    np.savez(folder / "edges.npz", src=src, dst=dst)
    np.save(folder / "features.npy", feat)  # float64, as numpy makes it
    np.save(folder / "labels.npy", label)
    return folder


def status(arguments: list[str]) -> int:
    """Return the exit status of the command, also where the parser ends the process."""
    try:
        return main(arguments)
    except SystemExit as error:
        return int(error.code or 0)


def train(data: Path, output: Path, *options: str) -> int:
    return status(["train", str(data), *SMALL, "--output", str(output), *options])


def untimed(folder: Path) -> tuple[Any, ...]:
    """Everything in the output that does not tell time."""
    rows = [line.split(",")[:3] for line in (folder / "log.csv").read_text().splitlines()]
    return (folder / "checkpoint.safetensors").read_bytes(), rows, (folder / "result.json").read_text()


# train


def test_train_prints_epochs_and_writes_the_results(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs" / "first"
    assert train(data, output) == 0
    out, err = capsys.readouterr()
    assert err == ""  # no terminal, no bar
    lines = out.splitlines()
    assert lines[0] == "Dataset(two: 120 nodes, 600 edges, 4 features, 2 classes, train/val/test 60/30/30)"
    assert lines[3].split() == ["epoch", "loss", "val", "acc", "seconds", "seeds/s", "edges/s"]
    rows = [line for line in lines if re.fullmatch(r" +\d+ +[\d.]+ +[\d.]+% +[\d.]+ +[\d,]+ +[\d,]+", line)]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    facts = json.loads((output / "result.json").read_text())
    accuracy = 100 * facts["test_accuracy"]
    assert f"best epoch {facts['best_epoch']}, test accuracy {accuracy:.2f} % (with full neighbourhoods)" in lines
    assert lines[-1].endswith(f"wrote {', '.join(str(output / f) for f in (FILES[0], *FILES[2:], FILES[1]))}")
    assert sorted(path.name for path in output.iterdir()) == FILES
    assert load_model(output / FILES[0]).convs[0].own.in_features == 4
    logged = (output / "log.csv").read_text().splitlines()
    losses = [float(line.split(",")[1]) for line in logged[1:]]
    assert losses == pytest.approx([float(row.split()[1]) for row in rows], abs=1e-4)


def test_the_picture_is_a_png_of_sane_size(data: Path, tmp_path: Path) -> None:
    assert train(data, tmp_path / "out") == 0
    content = (tmp_path / "out" / "curves.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert 400 <= width <= 4000
    assert 200 <= height <= 4000
    assert len(content) > 5000  # not blank


def test_the_same_options_give_the_same_files_for_any_number_of_workers(data: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("a", "b", "c")]
    for output in outputs[:2]:
        assert train(data, output) == 0
    assert untimed(outputs[0]) == untimed(outputs[1])
    assert train(data, outputs[2], "--workers", "3") == 0
    weights = [load_model(output / FILES[0]).state_dict() for output in outputs]
    assert all(torch.equal(weights[0][name], weights[2][name]) for name in weights[0])
    assert untimed(outputs[0])[1] == untimed(outputs[2])[1]


OPTIONS = {
    "--model": ("gcn", "model", "gcn"),
    "--fanouts": ("2", "fanouts", [2]),
    "--batch-size": ("30", "batch_size", 30),
    "--hidden": ("9", "hidden", 9),
    "--dropout": ("0.1", "dropout", 0.1),
    "--lr": ("0.01", "learning_rate", 0.01),
    "--epochs": ("3", "epochs", 3),
    "--seed": ("7", "seed", 7),
    "--direction": ("out", "direction", "out"),
    "--workers": ("2", "workers", 2),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_used(option: str, data: Path, tmp_path: Path) -> None:
    value, name, expected = OPTIONS[option]
    for folder, more in (("plain", []), ("other", [option, value])):
        assert train(data, tmp_path / folder, *more) == 0
    plain, other = untimed(tmp_path / "plain"), untimed(tmp_path / "other")
    facts = json.loads(other[2])
    assert facts[name] == expected
    assert json.loads(plain[2])[name] != expected
    assert (plain[1] == other[1]) == (option == "--workers")  # the only one that must change no number


def test_every_option_of_a_run_is_tried() -> None:
    settings = set(training.Settings.__dataclass_fields__)
    assert {name for _, name, _ in OPTIONS.values()} == settings


def test_fanouts_are_in_flow_order(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = training.NeighborSampler

    def spy(graph, fanouts, **options):
        sampler = real(graph, fanouts, **options)
        seen.append(sampler([0]).flow_sizes)
        return sampler

    monkeypatch.setattr(training, "NeighborSampler", spy)
    assert train(data, tmp_path / "out", "--fanouts", "1", "4", "--direction", "in") == 0
    assert {sizes[-1] for sizes in seen} == {4}  # the seed draws four, each node below one
    assert {sizes[0] for sizes in seen} == {5}


def test_without_a_picture(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert train(data, tmp_path / "out", "--no-plot") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [name for name in FILES if "png" not in name]


def test_a_split_without_validation_or_test_nodes(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(data / "train.npy", np.arange(0, 120, 2))
    assert train(data, tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "nan" not in out
    assert "best epoch 2, no test nodes" in out
    assert json.loads((tmp_path / "out" / "result.json").read_text())["test_accuracy"] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_only(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert train(data, tmp_path / "out") == 0
    assert "epoch 1" in terminal.getvalue()
    assert "/2 [" in terminal.getvalue()  # two batches
    assert "\r" not in capsys.readouterr().out
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert train(data, tmp_path / "out") == 0
    assert pipe.getvalue() == ""


def test_two_epochs_on_the_bundled_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--epochs", "2", "--output", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "result.json").read_text())["test_accuracy"] >= 0.7
    assert "Dataset(debian:" in capsys.readouterr().out


@pytest.mark.slow
def test_the_default_job_reaches_80_percent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    assert main(["train", "--output", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "result.json").read_text())["test_accuracy"] >= 0.8


# info


def test_info_describes_the_bundled_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("debian: packages of Debian")
    assert main(["info", "debian"]) == 0
    assert capsys.readouterr().out == plain
    subjects = [line.split()[0] for line in plain.splitlines()[1:]]
    assert subjects == ["nodes", "edges", "in-degree", "out-degree", "features", "classes", "split"]


def test_info_describes_a_folder_with_and_without_labels(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(data)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("two\n  nodes       120 (0 isolated)\n  edges       600 (")
    assert "train 60, val 30, test 30" in out
    (data / "labels.npy").unlink()
    (data / "features.npy").unlink()
    assert main(["info", str(data)]) == 0
    out = capsys.readouterr().out
    assert "  features    none\n  classes     none\n  split       train 0, val 0, test 0\n" in out


# help


@pytest.mark.parametrize("command", [[], ["train"], ["info"]])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status([*command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    words = " ".join(out.split())
    if command == ["train"]:
        assert "one number per layer in flow order: the last belongs to the seeds; -1 = all" in words
        for option in (*OPTIONS, "--output", "--no-plot"):
            assert option in out
        assert words.count("(default: ") == 12  # DATA, and all options but flags
    elif not command:
        assert "train" in words
        assert "info" in words


# mistakes


def truncate(path: Path, size: int = -100) -> None:
    path.write_bytes(path.read_bytes()[:size])


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def overwrite(name: str, array: Any) -> Callable[[Path], None]:
    return lambda data: np.save(data / name, array)


BAD_DATA: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (remove, "there is no folder .*two"),
    "a file": (lambda data: (remove(data), data.touch()), "two is a file"),
    "no edges": (lambda data: remove(data / "edges.npz"), r"neither adjacency\.npz nor edges\.npz"),
    "no labels": (
        lambda data: remove(data / "labels.npy"),
        r"data set 'two' has no labels, so a model cannot be trained on it",
    ),
    "no features": (lambda data: remove(data / "features.npy"), "'two' has no features"),
    "truncated edges": (lambda data: truncate(data / "edges.npz"), r"edges\.npz must be .* cut short"),
    "truncated features": (lambda data: truncate(data / "features.npy"), r"features\.npy must be .* cut short"),
    "truncated labels": (lambda data: truncate(data / "labels.npy"), r"labels\.npy must be .* cut short"),
    "empty labels": (lambda data: truncate(data / "labels.npy", 0), r"labels\.npy must be"),
    "too few labels": (overwrite("labels.npy", np.zeros(7, int)), "must have one row per node"),
    "no label anywhere": (overwrite("labels.npy", np.full(120, -1)), "'two' has no training nodes"),
    "pickled labels": (overwrite("labels.npy", np.array([{}] * 120)), "pickled objects"),
    "ids out of range": (overwrite("train.npy", np.array([0, 500])), r"train\.npy must hold ids of nodes"),
}


def one_line(capsys: pytest.CaptureFixture[str], command: str = "train") -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert err.startswith(f"nodeflow {command}: ")
    assert "Traceback" not in err
    return err


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:numpy")
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage, message = BAD_DATA[case]
    damage(data)
    assert train(data, tmp_path / "deep" / "out") == 2
    assert re.search(message, one_line(capsys))
    assert not (tmp_path / "deep").exists()


BAD_OPTIONS = {
    "--fanouts 0 5": r"fanouts\[0\] must be -1",
    "--fanouts 5 -2": r"fanouts\[1\] must be -1",
    "--fanouts": "--fanouts: expected at least one argument",
    "--fanouts ten": "--fanouts: invalid int value: 'ten'",
    "--batch-size 0": "batch_size must be at least 1, got 0",
    "--hidden -3": "hidden must be at least 1, got -3",
    "--hidden 100000000000000": "memory",
    "--hidden 99999999999999999999999999": "Overflow",
    "--epochs 0": "epochs must be at least 1, got 0",
    "--epochs 1.5": "--epochs: invalid int value: '1.5'",
    "--dropout 1": "dropout must be at least 0 and below 1, got 1.0",
    "--dropout nan": "dropout must be at least 0 and below 1, got nan",
    "--lr 0": "learning_rate must be a number above 0, got 0.0",
    "--lr inf": "learning_rate must be a number above 0, got inf",
    "--seed x": "--seed: invalid int value: 'x'",
    "--workers -1": "workers must be at least 0, got -1",
    "--model gat": "--model: invalid choice: 'gat'",
    "--direction up": "--direction: invalid choice: 'up'",
    "--unknown": "unrecognized arguments: --unknown",
    "--output": "--output: expected one argument",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_bad_options(options: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(data, tmp_path / "deep" / "out", *options.split()) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith("nodeflow")
    assert BAD_OPTIONS[options].replace("\\", "") in err
    assert not (tmp_path / "deep").exists()
    late = options.startswith(("--hidden 1000", "--hidden 9999"))  # found out when the model is made
    assert ("epoch" in out) == late
    assert bool(out) == late


@pytest.mark.parametrize("arguments", [[], ["fly"], ["info", "--hidden", "3"]])
def test_bad_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"nodeflow: .* \(see nodeflow --help\)\n", err)


def test_an_output_folder_that_is_a_file(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    for output, why in ((tmp_path / "file", "it is a file"), (tmp_path / "file" / "out", "Not a directory")):
        assert train(data, output) == 2
        assert f"cannot write into the output folder {output}: {why}" in one_line(capsys)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
def test_an_output_folder_where_nobody_can_write(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for output in (Path("/proc/nodeflow"), Path("/proc")):
        assert train(data, output) == 2
        assert f"cannot write into the output folder {output}: " in one_line(capsys)


def test_an_output_folder_without_permission(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint, "TemporaryFile", refuse)
    assert train(data, tmp_path / "out") == 2
    assert "output folder" in (line := one_line(capsys))
    assert line.endswith(": Permission denied\n")
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_leaves_nothing_half_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(records: object, path: Path, *, title: str) -> None:
        path.write_bytes(b"half a picture")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "draw_curves", full)
    assert train(data, tmp_path / "new" / "out") == 2
    err = capsys.readouterr().err
    assert err == "nodeflow train: [Errno 28] No space left on device\n"
    assert not (tmp_path / "new").exists()


def test_a_missing_matplotlib_is_said_before_training(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert train(data, tmp_path / "out") == 2
    assert 'pip install "nodeflow[plot]"' in one_line(capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("no column 'x'"), "no column 'x'"),
        (KeyError(), "KeyError"),
        (MemoryError(), "MemoryError"),
        (ValueError("first\nsecond"), "first"),
        (ValueError("\n"), "ValueError"),
    ],
)
def test_what_goes_wrong_inside_is_one_line_too(
    error: Exception, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "debian", fail)
    assert main(["info"]) == 2
    assert one_line(capsys, "info") == f"nodeflow info: {text}\n"
    with pytest.raises(type(error)):
        main(["info", "--traceback"])


def test_a_defect_of_the_program_is_not_called_a_mistake_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a shape is wrong")

    monkeypatch.setattr(cli, "debian", fail)
    with pytest.raises(RuntimeError, match="a shape is wrong"):
        main(["info"])


def test_an_interruption_leaves_nothing_behind(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_epoch", interrupt)
    assert train(data, tmp_path / "out") == 130
    assert capsys.readouterr().err == "nodeflow train: interrupted\n"
    assert not (tmp_path / "out").exists()


# as a process


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


def check_process(command: list[str], data: Path, tmp_path: Path) -> None:
    done = run([*command, "train", str(data), *SMALL], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "test accuracy" in done.stdout
    assert sorted(path.name for path in (tmp_path / "runs" / "latest").iterdir()) == FILES
    (data / "labels.npy").unlink()
    failed = run([*command, "train", str(data), "--output", "other"], tmp_path)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert re.fullmatch(
        r"nodeflow train: data set .* has no labels, so a model cannot be trained on it\n", failed.stderr
    )
    assert not (tmp_path / "other").exists()


def test_python_m_nodeflow(data: Path, tmp_path: Path) -> None:
    check_process([sys.executable, "-m", "nodeflow"], data, tmp_path)


def test_the_installed_command(data: Path, tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "nodeflow"
    if not script.exists():
        pytest.skip("the package is not installed here")
    check_process([str(script)], data, tmp_path)
