"""The commands of finished runs: evaluate, predict, compare; longer runs, events, and stops of many
kinds.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock, call

import numpy as np
import pytest
import torch
from _support.cli_tools import rows_of, train
from _support.training_tools import FAST, planted, same_result

from nodeflow.datasets import read_folder
from nodeflow.training import Checkpoints, Trainer

EVENTS = "events.out.tfevents.*"
WEIGHTS = "checkpoint.safetensors"
TWO = Path("two")


@pytest.fixture(autouse=True)
def _own_copies(place: Path, tmp_path: Path, here: None) -> None:
    """The data set "two" and the runs "sage" and "gcn" lie in the present folder."""
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)


def facts_of(run: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(Path(run, "result.json").read_text())
    return facts


def copied(run: str, **facts: Any) -> dict[str, Any]:
    """Copy the run "sage", with other facts in its result, which are returned."""
    shutil.copytree("sage", run, dirs_exist_ok=True)
    changed = facts_of("sage") | facts
    Path(run, "result.json").write_text(json.dumps(changed))
    return changed


def scores_of(text: str) -> dict[str, str]:
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line]
    return dict(words for words in lines if words[0] in ("train", "val", "test"))


# evaluate


def test_evaluate_prints_the_scores_of_the_run(cli):
    shown = scores_of(cli("evaluate sage"))
    for part, scores in facts_of("sage")["scores"].items():
        assert shown.pop(part) == "  ".join(f"{name} {scores[name]:.4f}" for name in scores)
    assert not shown


def test_evaluate_on_another_data_set(cli):
    """One class only, and no training nodes: the classes are those of the run."""
    np.save("two/labels.npy", np.zeros(120, dtype=np.int64))
    np.save("two/test.npy", np.arange(60))
    shown = scores_of(cli("evaluate sage --data two"))
    assert (shown["train"], shown["val"]) == ("no nodes", "no nodes")
    assert shown["test"].startswith("accuracy 0.")


def test_what_evaluate_refuses(cli):
    assert "is no folder of a run: it has no run.toml" in cli.failure("evaluate two")
    labels = Path("two/labels.npy").rename("labels.npy")
    words = "data set 'two' has no labels, so a model cannot be measured on it"
    assert cli.failure("evaluate sage --data two") == f"nodeflow evaluate: {words}\n"
    labels.rename("two/labels.npy")
    np.save("two/features.npy", np.ones((120, 5)))
    words = "the model in sage does not fit data set 'two': size mismatch for model.convs.0"
    assert words in cli.failure("evaluate sage --data two")
    assert "device 'cuda:99' is not there" in cli.failure("evaluate sage --device cuda:99")
    settings = Path("sage/run.toml")
    text = settings.read_text().replace('partitions = ""', 'partitions = "p"')
    settings.write_text(re.sub(r"(?m)^data = .*\n", "", text))
    words = "trained on parts of a graph: give the data set that they were cut"
    assert words in cli.failure("evaluate sage")


# predict


def test_predictions_are_those_of_the_model(cli):
    for name in ("out.npy", "out.csv"):
        cli("predict gcn --nodes test --output", name)
    outputs = torch.from_numpy(np.load("out.npy")).softmax(1)
    rows = rows_of(Path("out.csv"))
    assert [int(row["class"]) for row in rows] == outputs.argmax(1).tolist()
    chances = [float(row["probability"]) for row in rows]
    assert chances == pytest.approx(outputs.max(1).values.tolist())
    label = np.load("two/labels.npy")
    accuracy = np.mean([label[int(row["node"])] == int(row["class"]) for row in rows])
    assert accuracy == pytest.approx(facts_of("gcn")["scores"]["test"]["accuracy"])


def test_predictions_for_nodes_of_a_file_and_for_nodes_without_labels(cli):
    np.save("ids.npy", [7, 3, 7])
    predict = "predict sage --data two --output x.npy --nodes"
    cli(predict, "ids.npy")
    first = np.load("x.npy")
    assert first.shape == (3, 2)
    assert np.array_equal(first[0], first[2])
    Path("two/labels.npy").unlink()
    cli(predict, "ids.npy")
    assert np.array_equal(np.load("x.npy"), first)
    cli(predict, "unlabelled")  # which all are
    assert np.load("x.npy").shape == (120, 2)


def test_integers_of_a_file_are_names_where_nodes_have_such_names(cli):
    """A table that counts from 1: node 2 is its second row, as in files of a split."""
    Path("data").mkdir()
    nodes = [f"{i},{'ab'[i % 2]},{i % 2}" for i in range(1, 31)]
    edges = [f"{i},{i % 30 + 1}" for i in range(1, 31)]
    Path("data/nodes.csv").write_text("\n".join(["id,label,x", *nodes]))
    Path("data/edges.csv").write_text("\n".join(["src,dst", *edges]))
    cli("train data --output run --epochs 1 --no-plot")
    np.save("ids.npy", [30, 2])
    np.save("far.npy", [0])
    predict = "predict run --output x.csv --nodes"
    cli(predict, "ids.npy")
    shown = [(row["node"], row["name"]) for row in rows_of(Path("x.csv"))]
    assert shown == [("29", "30"), ("1", "2")]
    assert "has node 0, which data set 'data' does not list" in cli.failure(predict, "far.npy")


PREDICT = {
    "--output x.txt": "output must end with .csv, .parquet or .npy, got 'x.txt'",
    "--output no/x.csv": "there is no folder no to write x.csv into",
    "--output x.csv --nodes some": "nodes must be all, train, val, test, unlabelled or a file .npy "
    "of ids, got ",
    "--output x.csv --nodes no.npy": "there is no file no.npy",
    "--output x.csv --nodes far.npy": "far.npy",
    "--output x.csv --nodes half.npy": "half.npy",
    "--output x.csv --nodes text.npy": "text.npy must be a .npy file of numbers",
}


@pytest.mark.parametrize("options", PREDICT)
def test_what_predict_refuses(options, cli):
    np.save("far.npy", [0, 120])
    np.save("half.npy", [0.5])
    Path("text.npy").write_text("1 2 3")
    assert PREDICT[options] in cli.failure("predict sage", options)
    assert not Path("x.csv").exists()


# what runs and folders say


def test_a_run_of_links_tells_its_edges(cli):
    options = "--no-plot --task link --decoder mlp --epochs 1 --embedding 8"
    counts = re.search(
        r"\nlinks: train/val/test ([\d,]+)/([\d,]+)/([\d,]+) edges, decoder mlp, loss softmax; ",
        cli.train(TWO, Path("out"), options),
    )
    count = sum(int(number.replace(",", "")) for number in counts.groups())
    assert count == read_folder("two").graph.num_edges


def test_a_folder_of_a_run_is_no_data(cli):
    words = "sage is the folder of a run, not of data: nodeflow evaluate sage"
    assert words in cli.failure("info sage")


# longer runs


def test_a_finished_run_trains_for_longer(place, cli):
    cli("train --resume sage --epochs 4 --no-plot")
    cli.train(place / "two", Path("other"), "--epochs 4 --no-plot")
    for name in (WEIGHTS, "result.json", "run.toml"):
        assert Path("sage", name).read_bytes() == Path("other", name).read_bytes()
    words = "epochs must be at least 4, those of the state, got 3"
    assert words in cli.failure("train --resume sage --epochs 3")
    words = (
        "hidden was given too; leave it out. Only workers, storage, memory, partitions, "
        "share, halo, sample_on, patience, epochs may change"
    )
    assert words in cli.failure("train --resume sage --hidden 3")


def test_a_run_goes_on_after_its_result(tmp_path):
    """A result has the best weights, the run goes on with its last ones."""
    settings = FAST.replace(lr=0.3, epochs=4)
    wanted = Trainer(planted(), settings).run()
    trainer = Trainer(planted(), settings)
    for _ in range(3):
        trainer.train_epoch()
        trainer.result()
    other = Trainer(planted(), settings)
    assert not Checkpoints(tmp_path).restore(other)
    Checkpoints(tmp_path).save(trainer)
    assert Checkpoints(tmp_path).restore(other)
    assert other.epoch == 3
    assert same_result(trainer.run(), wanted)
    assert same_result(other.run(), wanted)


def test_the_command_runs_in_a_thread(place):
    """Only the main thread may set handlers of signals, so there are none."""
    thread = threading.Thread(target=train, args=(place / "two", Path("out"), "--no-plot"))
    thread.start()
    thread.join()
    assert Path("out", WEIGHTS).read_bytes() == Path("sage", WEIGHTS).read_bytes()


# events


def test_events_of_epochs(cli, monkeypatch):
    """In place of tensorboard's writer is one that notes what it is given."""
    module = Mock(SummaryWriter=MagicMock())
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setitem(sys.modules, "tensorboard", Mock(__spec__=object()))
    cli.train(TWO, Path("out"), "--no-plot")
    assert module.SummaryWriter.call_args == call("out", purge_step=1)
    writer = module.SummaryWriter.return_value
    written = writer.__enter__.return_value.add_scalar.call_args_list
    names = ["train/loss", "train/seeds per second", "val/accuracy", "val/f1_macro"]
    assert [args[0] for args, _ in written] == names * 2
    assert [args[2] for args, _ in written] == [1] * 4 + [2] * 4
    assert writer.__exit__.called
    cli("train --resume out --epochs 3 --no-plot")
    assert module.SummaryWriter.call_args == call("out", purge_step=3)
    # a new run: the events of the old one go
    Path("out", EVENTS.replace("*", "0")).touch()
    cli.train(TWO, Path("out"), "--no-plot --overwrite")
    assert not [*Path("out").glob(EVENTS)]


@pytest.mark.slow
def test_events_of_tensorboard_itself(cli):
    pytest.importorskip("tensorboard")
    cli.train(TWO, Path("out"), "--no-plot")
    assert len([*Path("out").glob(EVENTS)]) == 1


# compare


def test_compare_shows_what_differs(cli):
    printed = cli("compare sage gcn --output both.png")
    header, *lines, wrote = printed.splitlines()
    assert header.split() == [
        "run",
        "test",
        "accuracy",
        "val",
        "accuracy",
        "best",
        "epoch",
        "seconds",
        "model",
    ]
    for line, model in zip(lines, ("sage", "gcn"), strict=True):
        facts = facts_of(model)
        name, test, val, epoch, _, shown = line.split()
        scores = [f"{facts['scores'][part]['accuracy']:.4f}" for part in ("test", "val")]
        assert [name, test, val] == [model, *scores]
        assert (int(epoch), shown) == (facts["best_epoch"], model)
    assert wrote == "wrote both.png"
    assert Path("both.png").read_bytes().startswith(b"\x89PNG")


def test_compare_names_data_sets_and_numbers_of_processes_that_differ(cli):
    copied("other", processes=2, dataset="three")
    lines = [line.split() for line in cli("compare sage other").splitlines()]
    assert [line[1] for line in lines] == ["data", "two", "three"]
    assert [line[-1] for line in lines] == ["processes", "1", "2"]


def test_a_finished_run_is_replaced_only_when_told(cli):
    files = {path: path.read_bytes() for path in Path("sage").iterdir()}
    small = "train two --fanouts 3 --hidden 4 --epochs 1 --no-plot"
    words = "sage has a finished run; give --overwrite to replace it, or choose another folder"
    assert words in cli.failure(small, "--output sage")
    assert {path: path.read_bytes() for path in Path("sage").iterdir()} == files
    assert "replaces the earlier run in sage" in cli(small, "--output sage --overwrite")
    Path("sage/result.json").unlink()  # as one that was cut off
    assert "replaces the earlier run in sage" in cli(small, "--output sage")
    for line in ("run runs/latest", "replaces the earlier run in runs/latest"):
        assert line in cli(small)


def test_compare_needs_whole_folders(cli):
    Path("gcn/log.csv").unlink()
    words = "there is no log gcn/log.csv: the folder was not copied whole"
    assert words in cli.failure("compare gcn")
    assert "none is no folder of a run" in cli.failure("compare none")
    for damage in ("{", "{}", "[]"):
        Path("sage/result.json").write_text(damage)
        words = "sage/result.json is damaged, or no result of a run"
        assert words in cli.failure("compare sage")


def test_runs_of_different_metrics_are_not_compared(cli):
    copied("other", metric="worst recall")
    words = "the best epochs of these runs were chosen by accuracy and worst recall"
    assert words in cli.failure("compare other sage")
