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
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.cli_tools import FILES, Cli, status, train

import nodeflow
from nodeflow import NeighborSampler
from nodeflow.nn import VRGCN, VRGraphSAGE
from nodeflow.training import Settings, _samplers as methods, load_model
from nodeflow.training._cli import add_settings, main
from nodeflow.training._fields import option_of
from nodeflow.training._settings import FIELDS

pytest.importorskip("matplotlib")

SLOW = pytest.mark.slow
WRITTEN = ["checkpoint.safetensors", "log.csv", "trace.csv", "result.json", "curves.png"]


def untimed(folder: Path) -> tuple[Any, ...]:
    """Everything in the output that does not tell time."""
    rows = [line.split(",")[:3] for line in (folder / "log.csv").read_text().splitlines()]
    return (
        (folder / "checkpoint.safetensors").read_bytes(),
        rows,
        (folder / "result.json").read_text(),
    )


# train


def test_train_prints_epochs_and_writes_the_results(data: Path, tmp_path: Path, cli: Cli) -> None:
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
    assert sorted(path.name for path in output.iterdir()) == FILES
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
def test_control_variates_add_a_column_with_the_age(
    model: str, data: Path, tmp_path: Path, cli: Cli
) -> None:
    output = tmp_path / "out"
    lines = cli.train(data, output, "--sampler", "cv", "--model", model).splitlines()
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
    assert all(
        re.fullmatch(r" +\d+ +[\d.]+ +0\.\d+ +[\d.]+ +[\d,]+ +[\d,]+ +\d+\.\d  out", row)
        for row in rows
    )
    # the columns stand below each other
    assert {len(line) for line in lines[4:7]} == {len(lines[4])}
    header, *logged = (line.split(",") for line in (output / "log.csv").read_text().splitlines())
    assert header[-1] == "age"
    assert [f"{float(values[-1]):.1f}" for values in logged] == [row.split()[-2] for row in rows]
    facts = json.loads((output / "result.json").read_text())
    assert facts["settings"]["sampler"] == "cv"
    assert sorted(path.name for path in output.iterdir()) == FILES
    assert type(load_model(output / FILES[0]).model) is {"sage": VRGraphSAGE, "gcn": VRGCN}[model]


def test_the_same_options_give_the_same_files_for_any_number_of_workers(
    data: Path, tmp_path: Path
) -> None:
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
    "--sampler": ("cv", "sampler", "cv"),
    "--fanouts": ("2", "fanouts", [2]),
    "--batch-size": ("30", "batch_size", 30),
    "--dropout": ("0.1", "dropout", 0.1),
    "--lr": ("0.01", "lr", 0.01),
    "--residual": (None, "residual", True),
    "--norm": ("batch", "norm", "batch"),
    "--sampler-option": ("replace=true", "sampler_options", {"replace": True}),
    "--model-option": ("aggregator=pool", "model_options", {"aggregator": "pool"}),
    "--workers": ("2", "workers", 2),
}


QUICK = ("--model", "--fanouts", "--sampler-option")


@pytest.mark.parametrize(
    "option", [pytest.param(name, marks=[] if name in QUICK else SLOW) for name in OPTIONS]
)
def test_an_option_is_used(option: str, data: Path, tmp_path: Path) -> None:
    value, name, expected = OPTIONS[option]
    for folder, more in (("plain", []), ("other", [option, *([] if value is None else [value])])):
        assert train(data, tmp_path / folder, *more) == 0
    plain = untimed(tmp_path / "plain")
    other = untimed(tmp_path / "other")
    assert json.loads(other[2])["settings"][name] == expected
    assert json.loads(plain[2])["settings"][name] != expected
    # the only one that must change no number
    assert (plain[1] == other[1]) == (option == "--workers")


def test_every_setting_has_an_option_of_its_type() -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser)
    assert vars(parser.parse_args([])) == {}  # what is not given is not there
    for name, (_, one) in FIELDS.items():
        option = option_of(one)
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
def test_help_and_wrong_options_load_no_torch(words: str, status: int, shown: str) -> None:
    command = [sys.executable, "-c", OF_PACKAGES, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "loaded: []" in done.stderr) == (status, True)
    assert shown in done.stdout + done.stderr


def test_the_first_page_of_help_is_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["train", "--help"]) == 0
    page = capsys.readouterr().out
    assert len(page.splitlines()) <= 50
    assert max(map(len, page.splitlines())) <= 110
    assert status(["train", "--help-all"]) == 0
    everything = capsys.readouterr().out
    options = {word for word in page.split() if word.startswith("--")} - {"--help-all"}
    assert all(f"  {option}" in everything for option in options)
    assert all(f"  {option_of(one)}" in everything for _, one in FIELDS.values())
    assert f"--lr X            learning rate (default: {Settings().optimizer.lr})" in page


def test_a_file_of_settings(data: Path, tmp_path: Path, cli: Cli) -> None:
    first = tmp_path / "first"
    second = tmp_path / "second"
    assert train(data, first, "--model", "gcn") == 0
    again = ["train", "--config", str(first / "run.toml"), "--output"]
    assert status([*again, str(second)]) == 0
    assert untimed(first) == untimed(second)
    assert status([*again, str(second), "--seed", "9", "--overwrite"]) == 0
    assert json.loads((second / "result.json").read_text())["settings"]["seed"] == 9
    (first / "run.toml").write_text("epochs = 1\n[link]\nmargin = 3\nloss = 'margin'\n")
    links = [
        "--task=link",
        "--model=none",
        "--embedding=4",
        "--inputs=embedding",
        "--link-loss=logistic",
    ]
    assert (
        "run.toml: margin (= 3) is read with link_loss 'margin' or 'self-adversarial'"
        in cli.failure("train", data, *again[1:], second, *links)
    )
    (first / "run.toml").write_text(
        "epochs = 1\n[run]\ntask = 'link'\n[link]\nmargin = 3\nloss = 'margin'\n"
    )
    assert f"not read by this run, and left out of {first / 'run.toml'}: margin" in cli(
        "train", data, *again[1:], second, *links, "--overwrite"
    )
    (first / "run.toml").write_text("hiden = 3")
    assert "run.toml: there is no setting 'hiden' (= 3); did you mean hidden?" in cli.failure(
        *again, second
    )


def test_fanouts_are_in_flow_order(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Spy(NeighborSampler):
        def __init__(self, graph, fanouts, **options):
            super().__init__(graph, fanouts, **options)
            seen.append(NeighborSampler(graph, fanouts, **options)([0]).flow_sizes)

    monkeypatch.setattr(methods.METHODS["neighbor"], "make", Spy)
    assert train(data, tmp_path / "out", "--fanouts", "1", "4", "--direction", "in") == 0
    assert {sizes[-1] for sizes in seen} == {4}  # the seed draws four, each node below one
    assert {sizes[0] for sizes in seen} == {5}


def test_fanouts_with_commas_are_understood(data: Path, tmp_path: Path) -> None:
    for name, words in (("spaces", ["2", "3"]), ("commas", ["2,3"]), ("both", ["2,", "3"])):
        assert (
            train(data, tmp_path / name, "--epochs", "1", "--hidden", "4", "--fanouts", *words) == 0
        )
    results = [
        (tmp_path / name / "result.json").read_text() for name in ("spaces", "commas", "both")
    ]
    assert results[0] == results[1] == results[2]


def test_without_a_picture(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for options in ([], ["--no-plot"]):
        output = tmp_path / f"out{len(options)}"
        said = [
            line for line in cli.train(data, output, *options).splitlines() if "matplotlib" in line
        ]
        assert sorted(path.name for path in output.iterdir()) == [
            name for name in FILES if "png" not in name
        ]
        assert len(said) == 1 - len(options)  # silence where no picture is wanted
        assert all("pip install matplotlib" in line and "--no-plot" in line for line in said)


def test_an_earlier_run_is_replaced_and_the_command_says_so(
    data: Path, tmp_path: Path, cli: Cli
) -> None:
    output = tmp_path / "out"
    says = f"replaces the earlier run in {output}"
    np.save(data / "extra.npy", np.zeros(3))
    lines = cli.train(data, output).splitlines()
    assert says not in lines
    assert lines.count(f"files of {data} that are not read: extra.npy") == 1
    assert (
        cli.train(data, output, "--no-plot", "--seed", "5", "--overwrite").splitlines().count(says)
        == 1
    )
    assert sorted(path.name for path in output.iterdir()) == [
        name for name in FILES if "png" not in name
    ]
    assert json.loads((output / "result.json").read_text())["settings"]["seed"] == 5


def test_a_split_without_validation_or_test_nodes(data: Path, tmp_path: Path, cli: Cli) -> None:
    np.save(data / "train.npy", np.arange(0, 120, 2))
    out = cli.train(data, tmp_path / "out")
    assert not re.search("[^a-z]nan", out)
    assert "best epoch 2, no test nodes; " in out
    assert json.loads((tmp_path / "out" / "result.json").read_text())["scores"]["test"] == {}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_only(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert train(data, tmp_path / "out") == 0
    shown = terminal.getvalue()
    assert "epoch 1/2" in shown
    assert "/4 [" in shown  # two batches in each of two epochs
    assert "loss " in shown
    assert " seeds/s" in shown
    assert "\r" not in capsys.readouterr().out
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert train(data, tmp_path / "out", "--overwrite") == 0
    assert pipe.getvalue() == ""


@pytest.mark.slow
def test_the_default_job_reaches_80_percent(tmp_path: Path, cli: Cli) -> None:
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    assert "Dataset(debian:" in cli("train", "--output", tmp_path / "out")
    assert (
        json.loads((tmp_path / "out" / "result.json").read_text())["scores"]["test"]["accuracy"]
        >= 0.8
    )


# info


def test_info_describes_the_bundled_graph(cli: Cli) -> None:
    plain = cli("info")
    assert plain.startswith("debian: packages of Debian")
    assert cli("info", "debian") == plain
    subjects = [line.split()[0] for line in plain.splitlines()[1:]]
    assert subjects == [
        "nodes",
        "edges",
        "in-degree",
        "out-degree",
        "kind",
        "features",
        "classes",
        "split",
    ]


def test_info_says_symmetric(tmp_path: Path, cli: Cli) -> None:
    for name, matrix in {"one": [[0, 1], [0, 0]], "both": [[0, 1], [1, 0]]}.items():
        (tmp_path / name).mkdir()
        scipy.sparse.save_npz(
            tmp_path / name / "adjacency.npz", scipy.sparse.csr_array(np.array(matrix))
        )
        assert (", symmetric" in cli("info", tmp_path / name)) is (name == "both")


def test_info_describes_a_folder_with_and_without_labels(data: Path, cli: Cli) -> None:
    out = cli("info", data)
    assert out.startswith("two\n  nodes       120 (0 isolated)\n  edges       600 (")
    assert "train 60, val 30, test 30" in out
    (data / "labels.npy").unlink()
    (data / "features.npy").unlink()
    out = cli("info", data)
    assert "  features    none\n  classes     none\n  split       train 0, val 0, test 0\n" in out


# help


@pytest.mark.parametrize(
    "command", [[], ["train"], ["evaluate"], ["predict"], ["compare"], ["info"], ["partition"]]
)
def test_help(command: list[str], cli: Cli) -> None:
    option = "--help-all" if command == ["train"] else "--help"
    out = cli(*command, option)
    words = " ".join(out.split())
    if command == ["train"]:
        assert (
            "one number per layer in flow order (10 10 or 10,10), so the last belongs to the seeds"
            in words
        )
        for word in (*OPTIONS, "--output", "--no-plot", "--resume", "--config", *FILES):
            assert word in out
        assert (
            "which storage partitions needs (default: none; read with storage 'partitions')"
            in words
        )
    if command in (["train"], ["info"], ["partition"]):
        for name in ("edges.csv", "nodes.csv", "valid.tsv"):
            assert name in words
        for name in (
            "adjacency.npz",
            "edges.npz",
            "features.npz",
            "features.npy",
            "labels.npy",
            "train.npy",
        ):
            assert name in words
    if not command:
        assert all(name in words for name in ("train", "evaluate", "predict", "compare", "info"))


def test_streams_of_another_kind_and_none(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", shown := io.StringIO())
    assert main(["info", str(data)]) == 0
    assert "120" in shown.getvalue()
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["info", str(data)]) == 0
    with sys.stdout as nowhere:
        assert nowhere.name == os.devnull


def test_version(cli: Cli) -> None:
    assert cli("--version") == f"nodeflow {nodeflow.__version__} (torch {torch.__version__})\n"
