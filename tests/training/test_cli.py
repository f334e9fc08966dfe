"""The command: what it prints and writes, and that every option counts."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import struct
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import FILES, status, train
from _support.run_files import options as options_of_settings

import nodeflow
from nodeflow.nn import VRGCN, VRGraphSAGE
from nodeflow.training import Settings, load_model
from nodeflow.training._cli import add_settings

pytestmark = pytest.mark.usefixtures("here")

pytest.importorskip("matplotlib")

SLOW = pytest.mark.slow
WRITTEN = ["checkpoint.safetensors", "log.csv", "trace.csv", "result.json", "curves.png"]


UNDRAWN = [name for name in FILES if "png" not in name]


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def untimed(folder: Path) -> tuple[Any, ...]:
    """Everything in the output that does not tell time."""
    rows = [line.split(",")[:3] for line in (folder / "log.csv").read_text().splitlines()]
    return (
        (folder / "checkpoint.safetensors").read_bytes(),
        rows,
        (folder / "result.json").read_text(),
    )


# train


def test_train_prints_epochs_and_writes_the_results(data, tmp_path, cli):
    output = tmp_path / "runs" / "first"
    lines = cli.train(data, output).splitlines()
    assert (
        lines[0]
        == "Dataset(two: 120 nodes, 600 edges, 4 features, 2 classes, train/val/test 60/30/30)"
    )
    begun = r", begun \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(
        re.escape(f"run {output}: sage, sampler neighbor, fanouts [3, 3], seed 0") + begun, lines[1]
    )
    assert lines[2:4] == [
        "messages along 1,188 edges, 588 of them reverses (--direction in leaves these out); "
        "a seed draws 3; task classification (by the labels of the split)",
        "",
    ]
    assert lines[4].split() == [
        "epoch",
        "loss",
        "val",
        "accuracy",
        "seconds",
        "seeds/s",
        "edges/s",
        "run",
    ]
    rows = [
        line
        for line in lines
        if re.fullmatch(r" +\d+ +[\d.]+ +0\.[\d]+ +[\d.]+ +[\d,]+ +[\d,]+  \w+", line)
    ]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    facts = json.loads((output / "result.json").read_text())
    for part in ("train", "val", "test"):
        values = "  ".join(f"{name} {value:.4f}" for name, value in facts["scores"][part].items())
        assert f"{part:>5}  {values}" in lines
    accuracy = facts["scores"]["test"]["accuracy"]
    assert lines[-1].startswith(f"best epoch {facts['best_epoch']}, test accuracy {accuracy:.4f}; ")
    assert lines[-1].endswith(f"wrote {', '.join(str(output / file) for file in WRITTEN)}")
    assert files_of(output) == FILES
    assert load_model(output / FILES[0]).model.convs[0].own.in_features == 4
    logged = (output / "log.csv").read_text().splitlines()
    losses = [float(line.split(",")[1]) for line in logged[1:]]
    assert losses == pytest.approx([float(row.split()[1]) for row in rows], abs=1e-4)
    picture = (output / "curves.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert 400 <= width <= 4000
    assert 200 <= height <= 4000
    assert len(picture) > 5000  # not blank


@pytest.mark.parametrize("model", ["sage", "gcn"])
def test_control_variates_add_a_column_with_the_age(model, data, tmp_path, cli):
    output = tmp_path / "out"
    lines = cli.train(data, output, "--sampler cv --model", model).splitlines()
    assert lines[1].startswith(f"run {output}: {model}, sampler cv, fanouts [3, 3], seed 0, begun ")
    assert lines[4].split() == [
        "epoch",
        "loss",
        "val",
        "accuracy",
        "seconds",
        "seeds/s",
        "edges/s",
        "age",
        "run",
    ]
    rows = lines[5:7]
    shape = r" +\d+ +[\d.]+ +0\.\d+ +[\d.]+ +[\d,]+ +[\d,]+ +\d+\.\d  out"
    assert all(re.fullmatch(shape, row) for row in rows)
    # the columns stand below each other
    assert {len(line) for line in lines[4:7]} == {len(lines[4])}
    header, *logged = (line.split(",") for line in (output / "log.csv").read_text().splitlines())
    assert header[-1] == "age"
    assert [f"{float(values[-1]):.1f}" for values in logged] == [row.split()[-2] for row in rows]
    facts = json.loads((output / "result.json").read_text())
    assert facts["settings"]["sampler"] == "cv"
    assert files_of(output) == FILES
    assert type(load_model(output / FILES[0]).model) is {"sage": VRGraphSAGE, "gcn": VRGCN}[model]


def test_the_same_options_give_the_same_files_for_any_number_of_workers(data, cli):
    for output, workers in (("a", "1"), ("b", "1"), ("c", "3")):
        cli.train(data, Path(output), "--workers", workers)
    first, second, third = (untimed(Path(output)) for output in "abc")
    assert first == second
    assert first[1] == third[1]
    weights, others = (load_model(Path(output, FILES[0])).state_dict() for output in "ac")
    assert all(weights[name].equal(others[name]) for name in weights)


def test_every_setting_has_an_option_of_its_type():
    parser = argparse.ArgumentParser()
    add_settings(parser)
    assert vars(parser.parse_args([])) == {}  # what is not given is not there
    for name, (_, option, one) in options_of_settings().items():
        words = one.metadata["words"]
        if name.endswith("_options"):
            arguments = [option, "a=1", option, "b=x"]
            value = {"a": 1, "b": "x"}
        elif words.get("action") == "store_true":
            arguments = [option]
            value = True
        elif name == "fanouts":
            arguments = [option, "2", "3"]
            value = [2, 3]
        else:
            value = {int: 7, float: 0.25}.get(words.get("type"), words.get("choices", ["word"])[-1])
            arguments = [option, str(value)]
        assert vars(parser.parse_args(arguments)) == {name: value}


OF_PACKAGES = """
import runpy, sys
sys.argv = ["nodeflow", *sys.argv[1:]]
try:
    runpy.run_module("nodeflow", run_name="__main__")
finally:
    heavy = {"torch", "numpy", "numba", "scipy"} & set(sys.modules)
    print(f"loaded: {sorted(heavy)}", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        ("--version", 0, "nodeflow "),
        ("--help", 0, "nodeflow COMMAND --help shows the options of a command."),
        ("train --help", 0, "--fanouts K "),
        ("train --help-all", 0, "settings [compute]:"),
        ("partition --help", 0, "--parts N"),
        ("train --hiden 3", 2, "there is no option --hiden; it is called --hidden here"),
        ("train --sampler best", 2, "invalid choice: 'best'"),
        ("fly", 2, "invalid choice: 'fly'"),
    ],
)
def test_help_and_wrong_options_load_no_torch(words, status, shown):
    command = [sys.executable, "-c", OF_PACKAGES, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "loaded: []" in done.stderr) == (status, True)
    assert shown in done.stdout + done.stderr


def test_the_first_page_of_help_is_one_page(capsys):
    assert status(["train --help"]) == 0
    page = capsys.readouterr().out
    assert len(page.splitlines()) <= 50
    assert max(map(len, page.splitlines())) <= 110
    assert status(["train --help-all"]) == 0
    everything = capsys.readouterr().out
    options = {word for word in page.split() if word.startswith("--")} - {"--help-all"}
    assert all(f"  {option}" in everything for option in options)
    assert all(f"  {option}" in everything for _, option, _ in options_of_settings().values())
    assert f"--lr X            learning rate (default: {Settings().optimizer.lr})" in page


def test_a_file_of_settings(data, tmp_path, cli):
    first = tmp_path / "first"
    second = tmp_path / "second"
    cli.train(data, first, "--model gcn")
    again = ["--config", first / "run.toml", "--output", second]
    cli("train", *again)
    assert untimed(first) == untimed(second)
    cli("train", *again, "--seed 9 --overwrite")
    assert json.loads((second / "result.json").read_text())["settings"]["seed"] == 9
    (first / "run.toml").write_text("epochs = 1\n[link]\nmargin = 3\nloss = 'margin'\n")
    links = [
        "--task=link --model=none --embedding=4 --inputs=embedding --link-loss=logistic",
    ]
    assert (
        "run.toml: margin (= 3) is read with link_loss 'margin' or 'self-adversarial'"
        in cli.failure("train", data, *again, *links)
    )
    (first / "run.toml").write_text(
        "epochs = 1\n[run]\ntask = 'link'\n[link]\nmargin = 3\nloss = 'margin'\n"
    )
    assert f"not read by this run, and left out of {first / 'run.toml'}: margin" in cli(
        "train", data, *again, *links, "--overwrite"
    )
    (first / "run.toml").write_text("hiden = 3")
    assert "run.toml: there is no setting 'hiden' (= 3); did you mean hidden?" in cli.failure(
        "train", *again
    )


def test_fanouts_are_in_flow_order(data, tmp_path, cli):
    # the seed draws four, each node below one
    assert "a seed draws 4" in cli.train(
        data, tmp_path / "out", "--fanouts 1 4 --direction in --no-plot"
    )


@pytest.mark.parametrize("words", ["2 3", "2,3", "2, 3"])
def test_fanouts_with_commas_are_understood(words):
    parser = argparse.ArgumentParser()
    add_settings(parser)
    assert parser.parse_args(["--fanouts", *words.split()]).fanouts == [2, 3]


def test_without_a_picture(data, monkeypatch, cli):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for option, told in (("--seed 0", 1), ("--no-plot", 0)):  # silence where no picture is wanted
        output = Path(f"out{told}")
        lines = cli.train(data, output, option).splitlines()
        said = [line for line in lines if "pip install matplotlib; --no-plot" in line]
        assert len(said) == told
        assert files_of(output) == UNDRAWN


def test_an_earlier_run_is_replaced_and_the_command_says_so(data, cli):
    output = Path("out")
    says = "replaces the earlier run in out"
    np.save(data / "extra.npy", np.zeros(3))
    lines = cli.train(data, output).splitlines()
    assert says not in lines
    assert lines.count(f"files of {data} that are not read: extra.npy") == 1
    lines = cli.train(data, output, "--no-plot --seed 5 --overwrite").splitlines()
    assert lines.count(says) == 1
    assert files_of(output) == UNDRAWN
    assert json.loads((output / "result.json").read_text())["settings"]["seed"] == 5


def test_a_split_without_validation_or_test_nodes(data, tmp_path, cli):
    np.save(data / "train.npy", np.arange(0, 120, 2))
    out = cli.train(data, tmp_path / "out")
    assert not re.search("[^a-z]nan", out)
    assert "best epoch 2, no test nodes; " in out
    assert json.loads((tmp_path / "out" / "result.json").read_text())["scores"]["test"] == {}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_only(data, tmp_path, capsys):
    terminal = Terminal()
    with redirect_stderr(terminal):
        assert train(data, tmp_path / "out") == 0
    shown = terminal.getvalue()
    assert "epoch 1/2" in shown
    assert "/4 [" in shown  # two batches in each of two epochs
    assert "loss " in shown
    assert " seeds/s" in shown
    assert "\r" not in capsys.readouterr().out
    pipe = io.StringIO()
    with redirect_stderr(pipe):
        assert train(data, tmp_path / "out", "--overwrite") == 0
    assert pipe.getvalue() == ""


@pytest.mark.slow
def test_the_default_job_reaches_80_percent(tmp_path, cli):
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    assert "Dataset(debian:" in cli("train --output out")
    assert (
        json.loads((tmp_path / "out" / "result.json").read_text())["scores"]["test"]["accuracy"]
        >= 0.8
    )


# info


def test_info_describes_the_bundled_graph(cli):
    plain = cli("info")
    assert plain.startswith("debian: packages of Debian")
    assert cli("info debian") == plain
    subjects = [line.split()[0] for line in plain.splitlines()[1:]]
    assert subjects == ["nodes", "edges", "names", "classes", "split"]


def test_info_describes_a_folder_with_and_without_labels(data, cli):
    out = cli("info", data)
    assert out.startswith("two\n  nodes    120; feat float64 [120, 4]; label int64 [120]\n")
    assert "train 60, val 30, test 30" in out
    (data / "labels.npy").unlink()
    (data / "features.npy").unlink()
    out = cli("info", data)
    assert "  classes  0\n  split    train 0, val 0, test 0\n" in out


# help


DATA = "adjacency.npz edges.npz edges.csv nodes.csv valid.tsv features.npy labels.npy train.npy"
HELP = {
    "--help": "train evaluate predict compare info",
    "train --help-all": f"--output --no-plot --resume --config {DATA} {' '.join(FILES)}",
    "info --help": DATA,
    "partition --help": DATA,
    "evaluate --help": "--data",
    "predict --help": "--nodes",
    "compare --help": "FOLDER",
}


@pytest.mark.parametrize("command", HELP)
def test_help(command, cli):
    text = " ".join(cli(command).split())
    assert all(word in text for word in HELP[command].split())
    if command == "train --help-all":
        assert (
            "one number per layer in flow order (10 10 or 10,10), so the last belongs to the seeds"
            in text
        )
        assert (
            "which storage partitions needs (default: none; read with storage 'partitions')" in text
        )


def test_streams_of_another_kind_and_none(data):
    with redirect_stdout(io.StringIO()) as shown:
        assert status(["info", data]) == 0
    assert "120" in shown.getvalue()
    with redirect_stdout(None):
        assert status(["info", data]) == 0
        with sys.stdout as nowhere:
            assert nowhere.name == os.devnull


def test_version(cli):
    assert cli("--version") == f"nodeflow {nodeflow.__version__} (torch {torch.__version__})\n"
