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
from unittest.mock import MagicMock, Mock, call

import numpy as np
import pytest
import torch
from _support.cli_tools import Cli, rows_of, status, train
from _support.training_tools import FAST, planted, same_result

from nodeflow.datasets import read_folder
from nodeflow.training import Checkpoints, Trainer, _commands, _train_command as events
from nodeflow.training._folder import EVENTS

pytestmark = pytest.mark.usefixtures("here")


def scores_of(text: str) -> dict[str, str]:
    return dict(
        line.split(maxsplit=1)
        for line in text.splitlines()
        if line.split()[:1] in (["train"], ["val"], ["test"])
    )


# evaluate


def test_evaluate_prints_the_scores_of_the_run(place: Path, cli: Cli) -> None:
    shown = scores_of(cli("evaluate", place / "sage"))
    scores = json.loads((place / "sage" / "result.json").read_text())["scores"]
    assert shown == {
        p: "  ".join(f"{name} {value:.4f}" for name, value in scores[p].items()) for p in scores
    }


def test_evaluate_on_another_data_set(place: Path, tmp_path: Path, cli: Cli) -> None:
    """One class only, and no training nodes: the classes are those of the run."""
    other = tmp_path / "other"
    shutil.copytree(place / "two", other)
    np.save(other / "labels.npy", np.zeros(120, dtype=np.int64))
    np.save(other / "test.npy", np.arange(60))
    shown = scores_of(cli("evaluate", place / "sage", "--data", other))
    assert (shown["train"], shown["val"]) == ("no nodes", "no nodes")
    assert shown["test"].startswith("accuracy 0.")


def test_what_evaluate_refuses(place: Path, tmp_path: Path, cli: Cli) -> None:
    assert "is no folder of a run: it has no run.toml" in cli.failure("evaluate", tmp_path)
    other = tmp_path / "other"
    shutil.copytree(place / "two", other)
    (other / "labels.npy").unlink()
    message = cli.failure("evaluate", place / "sage", "--data", other)
    assert (
        message
        == "nodeflow evaluate: data set 'other' has no labels, so a model cannot be measured on "
        "it\n"
    )
    shutil.copy(place / "two" / "labels.npy", other)
    np.save(other / "features.npy", np.ones((120, 5)))
    message = cli.failure("evaluate", place / "sage", "--data", other)
    assert (
        f"the model in {place / 'sage'} does not fit data set 'other': size mismatch for "
        "model.convs.0" in message
    )
    run = tmp_path / "parts"
    shutil.copytree(place / "sage", run)
    text = (run / "run.toml").read_text().replace('partitions = ""', 'partitions = "p"')
    (run / "run.toml").write_text(re.sub(r"(?m)^data = .*\n", "", text))
    assert "trained on parts of a graph: give the data set that they were cut" in cli.failure(
        "evaluate", run
    )
    message = cli.failure("evaluate", place / "sage", "--device cuda:99")
    assert "device 'cuda:99' is not there" in message


# predict


def test_predictions_are_those_of_the_model(place: Path, tmp_path: Path) -> None:
    npy = tmp_path / "out.npy"
    table = tmp_path / "out.csv"
    for file in (npy, table):
        assert status(["predict", place / "gcn", "--nodes test --output", file]) == 0
    outputs = torch.from_numpy(np.load(npy)).softmax(1)
    rows = rows_of(table)
    assert [int(row["class"]) for row in rows] == outputs.argmax(1).tolist()
    assert [float(row["probability"]) for row in rows] == pytest.approx(
        outputs.max(1).values.tolist()
    )
    label = np.load(place / "two" / "labels.npy")
    accuracy = np.mean([label[int(row["node"])] == int(row["class"]) for row in rows])
    scores = json.loads((place / "gcn" / "result.json").read_text())["scores"]
    assert accuracy == pytest.approx(scores["test"]["accuracy"])


def test_a_parquet_file_has_the_columns_of_the_table(place: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for file in ("out.csv", "out.parquet"):
        assert status(["predict", place / "gcn", "--nodes val --output", tmp_path / file]) == 0
    rows = rows_of(tmp_path / "out.csv")
    stored = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [{name: str(value) for name, value in row.items()} for row in stored] == rows


def test_predictions_for_nodes_of_a_file_and_for_nodes_without_labels(
    place: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(place / "two", bare)
    (bare / "labels.npy").unlink()
    np.save(tmp_path / "ids.npy", [7, 3, 7])
    found = []
    for data in (place / "two", bare):
        options = [
            "--data",
            data,
            "--nodes ids.npy --output x.npy",
        ]
        assert status(["predict", place / "sage", *options]) == 0
        found.append(np.load(tmp_path / "x.npy"))
    assert found[0].shape == (3, 2)
    assert np.array_equal(found[0][0], found[0][2])
    assert np.array_equal(found[0], found[1])
    options[3] = "unlabelled"  # which all are
    assert status(["predict", place / "sage", *options]) == 0
    assert np.load(tmp_path / "x.npy").shape == (120, 2)


def test_integers_of_a_file_are_names_where_nodes_have_such_names(tmp_path: Path, cli: Cli) -> None:
    """A table that counts from 1: node 2 is its second row, as in files of a split."""
    data = tmp_path / "data"
    data.mkdir()
    rows = [f"{i},{'ab'[i % 2]},{i % 2}" for i in range(1, 31)]
    (data / "nodes.csv").write_text("id,label,x\n" + "\n".join(rows))
    (data / "edges.csv").write_text(
        "src,dst\n" + "\n".join(f"{i},{i % 30 + 1}" for i in range(1, 31))
    )
    cli("train", data, "--output run --epochs 1 --no-plot")
    np.save(tmp_path / "ids.npy", [30, 2])
    np.save(tmp_path / "far.npy", [0])
    options = ["predict run --output x.csv --nodes"]
    cli(*options, "ids.npy")
    nodes = [(row["node"], row["name"]) for row in rows_of(tmp_path / "x.csv")]
    assert nodes == [("29", "30"), ("1", "2")]
    assert "has node 0, which data set 'data' does not list" in cli.failure(*options, "far.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--output x.txt", "output must end with .csv, .parquet or .npy, got 'x.txt'"),
        ("--output no/x.csv", "there is no folder no to write x.csv into"),
        (
            "--output x.csv --nodes some",
            "nodes must be all, train, val, test, unlabelled or a file .npy of ids, got ",
        ),
        ("--output x.csv --nodes no.npy", "there is no file no.npy"),
        ("--output x.csv --nodes far.npy", "far.npy"),
        ("--output x.csv --nodes half.npy", "half.npy"),
        ("--output x.csv --nodes text.npy", "text.npy must be a .npy file of numbers"),
    ],
)
def test_what_predict_refuses(
    options: str, message: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    np.save("far.npy", [0, 120])
    np.save("half.npy", [0.5])
    Path("text.npy").write_text("1 2 3")
    shown = cli.failure("predict", place / "sage", *options.split())
    assert message in shown
    assert not Path("x.csv").exists()


# what runs and folders say


def test_a_run_of_links_tells_its_edges(place: Path, tmp_path: Path, cli: Cli) -> None:
    options = [
        "--no-plot --task link --decoder mlp --epochs 1 --embedding 8",
    ]
    lines = cli.train(place / "two", tmp_path / "out", *options).splitlines()
    (told,) = (line for line in lines if line.startswith("links: "))
    found = re.fullmatch(
        r"links: train/val/test ([\d,]+)/([\d,]+)/([\d,]+) edges, decoder mlp, loss softmax; .*",
        told,
    )
    count = sum(int(number.replace(",", "")) for number in found.groups())
    assert count == read_folder(place / "two").graph.num_edges


def test_a_folder_of_a_run_is_no_data(place: Path, cli: Cli) -> None:
    run = place / "sage"
    shown = cli.failure("info", run)
    assert f"{run} is the folder of a run, not of data: nodeflow evaluate {run}" in shown


# longer runs


def test_a_finished_run_trains_for_longer(place: Path, tmp_path: Path, cli: Cli) -> None:
    long = shutil.copytree(place / "sage", tmp_path / "long")
    cli("train --resume", long, "--epochs 4 --no-plot")
    cli.train(place / "two", tmp_path / "whole", "--epochs 4 --no-plot")
    for name in ("checkpoint.safetensors", "result.json", "run.toml"):
        assert (long / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert "epochs must be at least 4, those of the state, got 3" in cli.failure(
        "train --resume", long, "--epochs 3"
    )
    message = cli.failure("train --resume", long, "--hidden 3")
    free = (
        "workers, storage, memory, pack, space, partitions, share, halo, sample_on, patience, "
        "epochs"
    )
    assert f"hidden was given too; leave it out. Only {free} may change" in message


def test_a_run_goes_on_after_its_result(tmp_path: Path) -> None:
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


def test_the_command_runs_in_a_thread(place: Path, tmp_path: Path) -> None:
    """Only the main thread may set handlers of signals, so there are none."""
    found: list[int] = []
    thread = threading.Thread(
        target=lambda: found.append(train(place / "two", tmp_path / "out", "--no-plot"))
    )
    thread.start()
    thread.join()
    assert found == [0]
    written = [
        (folder / "checkpoint.safetensors").read_bytes()
        for folder in (place / "sage", tmp_path / "out")
    ]
    assert written[0] == written[1]


# events


def test_events_of_epochs(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of tensorboard's writer is one that notes what it is given."""
    module = Mock(SummaryWriter=MagicMock())
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(events, "find_spec", lambda name: object())
    out = tmp_path / "out"
    assert train(place / "two", out, "--no-plot") == 0
    assert module.SummaryWriter.call_args == call(str(out), purge_step=1)
    written = module.SummaryWriter.return_value.__enter__.return_value.add_scalar.call_args_list
    names = ["train/loss", "train/seeds per second", "val/accuracy", "val/f1_macro"]
    assert [(args[0], args[2]) for args, _ in written] == [
        (name, epoch) for epoch in (1, 2) for name in names
    ]
    assert module.SummaryWriter.return_value.__exit__.called
    assert status(["train --resume", out, "--epochs 3 --no-plot"]) == 0
    assert module.SummaryWriter.call_args == call(str(out), purge_step=3)
    # a new run: the events of the old one go
    (out / EVENTS.replace("*", "0")).touch()
    assert train(place / "two", out, "--no-plot --overwrite") == 0
    assert not [*out.glob(EVENTS)]


@pytest.mark.slow
def test_events_of_tensorboard_itself(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    assert train(place / "two", tmp_path / "out", "--no-plot") == 0
    assert len(list((tmp_path / "out").glob(EVENTS))) == 1


def test_what_a_killed_save_left_goes_with_a_new_run(place: Path, tmp_path: Path) -> None:
    left = tmp_path / "out" / ".unfinished-x"
    left.mkdir(parents=True)
    (left / "log.csv").write_text("")
    assert train(place / "two", tmp_path / "out", "--no-plot") == 0
    assert not left.exists()


def test_compare_shows_what_differs(place: Path, tmp_path: Path, cli: Cli) -> None:
    picture = tmp_path / "both.png"
    printed = cli("compare", place / "sage", place / "gcn", "--output", picture)
    header, first, second, wrote = printed.splitlines()
    assert (
        " ".join(header.split()) == "run test accuracy val accuracy best epoch seconds edges model"
    )
    for line, model in ((first, "sage"), (second, "gcn")):
        result = json.loads((place / model / "result.json").read_text())
        name, test, val, epoch, _, edges, shown = line.split()
        scores = [f"{result['scores'][part]['accuracy']:.4f}" for part in ("test", "val")]
        assert [name, test, val] == [str(place / model), *scores]
        assert (int(epoch), shown) == (result["best_epoch"], model)
        drawn = [
            float(row["seconds"]) * float(row["edges_per_second"])
            for row in rows_of(place / model / "log.csv")
        ]
        assert edges == f"{sum(drawn) / 1e6:.3g}M"
    assert wrote == f"wrote {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_shows_numbers_of_processes(place: Path, tmp_path: Path, cli: Cli) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    (other / "result.json").write_text(json.dumps({**result, "processes": 2}))
    header, first, second = (
        line.split() for line in cli("compare", place / "sage", other).splitlines()
    )
    assert (header[-1], first[-1], second[-1]) == ("processes", "1", "2")


def test_a_finished_run_is_replaced_only_when_told(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    run = shutil.copytree(place / "sage", tmp_path / "run")
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    small = [place / "two", "--fanouts 3 --hidden 4 --epochs 1 --no-plot"]
    words = f"{run} has a finished run; give --overwrite to replace it, or choose another folder"
    assert words in cli.failure("train", *small, "--output", run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == files
    assert f"replaces the earlier run in {run}" in cli(
        "train", *small, "--output", run, "--overwrite"
    )
    (run / "result.json").unlink()  # as one that was cut off
    assert f"replaces the earlier run in {run}" in cli("train", *small, "--output", run)
    monkeypatch.chdir(tmp_path)
    for line in ("run runs/latest", "replaces the earlier run in runs/latest"):
        assert line in cli("train", *small)


def test_compare_names_data_sets_that_differ(place: Path, tmp_path: Path, cli: Cli) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    (other / "result.json").write_text(json.dumps({**result, "dataset": "three"}))
    header, first, second = cli("compare", place / "sage", other).splitlines()
    assert (header.split()[1], first.split()[1], second.split()[1]) == ("data", "two", "three")
    log = (other / "log.csv").read_bytes()
    (other / "log.csv").unlink()
    assert f"there is no log {other / 'log.csv'}: the folder was not copied whole" in cli.failure(
        "compare", other
    )
    (other / "log.csv").write_bytes(log)
    assert f"{tmp_path / 'none'} is no folder of a run" in cli.failure("compare none")
    for damage in ("{", "{}", "[]"):
        (other / "result.json").write_text(damage)
        assert f"{other / 'result.json'} is damaged, or no result of a run" in cli.failure(
            "compare", other
        )


def test_compare_says_what_runs_were_validated_on(
    place: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where settings leave it open, layer-wise samplers validate on all neighbours, neighbour
    sampling on batches.
    """
    drawn: list[list[str]] = []
    monkeypatch.setattr(
        _commands, "plot_curves", lambda runs, path, metric: drawn.append(list(runs))
    )
    ladies = tmp_path / "ladies"
    full = tmp_path / "full"
    cli.train(place / "two", ladies, "--no-plot --sampler ladies --fanouts 9 9")
    cli.train(place / "two", full, "--no-plot --validate full")

    printed = cli("compare", place / "sage", ladies, "--output a.png")
    header, first, second, warning, _ = printed.splitlines()
    assert "validate" in header.split()
    assert "sampled" in first.split()
    assert "full" in second.split()
    assert "train all with --validate full" in warning
    names = [f"{place / 'sage'} (validation sampled)", f"{ladies} (validation full)"]
    assert drawn == [names]

    assert "validate" not in cli("compare", ladies, full, "--output b.png")
    assert drawn[1:] == [[str(ladies), str(full)]]


def test_compare_of_different_metrics_takes_one_that_all_have(
    place: Path, tmp_path: Path, cli: Cli
) -> None:
    other = shutil.copytree(place / "sage", tmp_path / "other")
    result = json.loads((other / "result.json").read_text())
    own = {part: {"worst recall": 0.5, **scores} for part, scores in result["scores"].items()}
    (other / "result.json").write_text(
        json.dumps({**result, "metric": "worst recall", "scores": own})
    )
    header, first, second = cli("compare", other, place / "sage").splitlines()
    assert header.split()[:5] == ["run", "best", "by", "test", "accuracy"]
    assert "worst recall" in first
    # the same scores: the runs differ in the name of the metric alone
    assert first.split()[3:5] == second.split()[2:4]
    alone = {part: {"rmse": 0.5} for part in own}
    (other / "result.json").write_text(json.dumps({**result, "metric": "rmse", "scores": alone}))
    assert "different metrics, accuracy, rmse, and none in common" in cli.failure(
        "compare", place / "sage", other
    )
