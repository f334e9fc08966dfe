"""Training with features that stay in a file: the same run, byte for byte; and partitions by a
command.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import status, train as command, two_communities
from _support.own_rows import OwnRows
from _support.training_tools import (
    FAST,
    planted,
    same_result,
    same_training,
    slow,
    stop_after,
    train,
    with_columns,
)
from hypothesis import given, strategies
from torch import Tensor

from nodeflow import distributed, storage
from nodeflow.datasets import read_folder
from nodeflow.training import Checkpoints, Stopped, Trainer
from nodeflow.training._graph import FeatureRows, hash_of

STORED = ("file", "cached", "lookahead")
SHORT = FAST.replace(epochs=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The planted data set as graph folders: with features of several types, sparse, none, or not
    finite.
    """
    place = tmp_path_factory.mktemp("planted")
    broken = planted().graph.ndata["feat"].clone()
    broken[217, 1] = torch.nan
    sets = {
        "float32": planted(),
        "float64": planted(dtype=np.float64),
        "sparse": planted(sparse=True),
        "none": with_columns(planted(), feat=None),
        "broken": with_columns(planted(), feat=broken),
        "half": with_columns(planted(), feat=planted().graph.ndata["feat"].half()),
        "narrow": with_columns(planted(), feat=storage.narrow(planted().graph.ndata["feat"])),
    }
    for name, data in sets.items():
        data.save(place / name)
    return {name: place / name for name in sets}


# the same run


@pytest.mark.parametrize(
    ("data", "change"),
    [
        ("float32", {}),
        ("float64", {"sampler": "labor", "memory": "400 B"}),
        (
            "narrow",
            {"sampler": "labor", "sampler_options": {"batch_dependency": 4}, "memory": "1 KB"},
        ),
        ("narrow", {"memory": "400 B"}),
        slow("half", {"class_weights": "seeds", "memory": "60 B"}),
        slow("float32", {"precision": "bf16"}),
        slow(
            "float32",
            {"sampler": "ladies", "fanouts": (30, 30), "validate": "sampled", "memory": "1 KB"},
        ),
        slow("float32", {"sampler": "saint"}),
        slow("float32", {"inputs": "both", "embedding": 4}),
        slow("narrow", {"precision": "bf16", "inputs": "both", "embedding": 4}),
    ],
    ids=str,
)
def test_the_run_is_the_same_byte_for_byte(folders, data, change):
    settings = SHORT.replace(storage="file", **change)
    plain = train(read_folder(folders[data]), settings.replace(storage="memory"))
    for kind in STORED:
        stored = train(read_folder(folders[data]), settings.replace(storage=kind))
        assert same_training(plain, stored), kind
        assert stored.task.fingerprint() == plain.task.fingerprint()
        # from full passes, which are equal up to rounding
        for part, scores in plain.scores.items():
            assert stored.scores[part] == pytest.approx(scores, abs=0.02)


@pytest.mark.slow
def test_links_with_features(folders):
    links = SHORT.replace(
        task="link", embedding=8, fanouts=(4,), negatives=8, epochs=1, batch_size=256
    )
    plain = train(read_folder(folders["float32"]), links)
    for kind in STORED:
        stored = train(read_folder(folders["float32"]), links.replace(storage=kind, memory="1 KB"))
        assert [r.loss for r in stored.records] == [r.loss for r in plain.records]
        assert stored.scores["test"]["mrr"] == pytest.approx(plain.scores["test"]["mrr"], rel=1e-3)


def test_features_are_read_and_not_kept(folders):
    """Reads of one epoch, in rows: every row of every batch; those that are not hot; and every row
    once.
    """
    read: dict[str, int] = {}
    needed = 0
    for kind in STORED:
        trainer = Trainer(
            read_folder(folders["float32"]), FAST.replace(storage=kind, memory="2.4 KB")
        )
        features: Any = trainer.task.features["node"]
        assert isinstance(features.rows, storage.FileRows)
        assert not isinstance(trainer.task.graph.ndata["feat"], Tensor)
        before = features.rows.bytes_read
        needed = sum(batch.layer_sizes[0] for batch in trainer.batches)
        read[kind] = (features.rows.bytes_read - before) // 12
        if kind == "lookahead":
            assert isinstance(trainer.batches, storage.Lookahead)
            assert trainer.batches.reads.rows == needed
    assert read["file"] == needed
    assert read["cached"] <= 0.8 * read["file"]
    assert read["lookahead"] <= read["cached"] + 200  # rows that were read when the cache was made


def test_the_plan_takes_no_more_memory_than_the_rows(folders):
    """8 bytes for each of the rows of a batch: a few KB foresee 16 batches, the least, and 1 MB all
    37.
    """
    base = SHORT.replace(batch_size=3, fanouts=(10, 10), epochs=1)
    plain = train(read_folder(folders["float32"]), base)
    for memory, window in (("2 KB", "16"), ("1 MB", "37")):
        trainer = Trainer(
            read_folder(folders["float32"]), base.replace(storage="lookahead", memory=memory)
        )
        assert f", {window} batches ahead" in repr(trainer.batches)
        assert same_training(plain, trainer.run())


def test_rows_of_ones_own(folders):
    """A column that is ``Rows`` stays where it lies, whatever the storage."""
    plain = train(planted(), SHORT)
    for kind in ("memory", *STORED):
        data = read_folder(folders["float32"])
        data.graph.ndata["feat"] = storage.Cached(
            data.graph.ndata["feat"], range(300), memory="84 B"
        )
        assert same_training(plain, train(data, SHORT.replace(storage=kind)))


# going on


@pytest.mark.parametrize("kind", [slow(kind) if kind != "lookahead" else kind for kind in STORED])
def test_a_run_goes_on_bit_for_bit_also_with_another_storage(kind, folders, tmp_path):
    data = folders["float32"]
    settings = FAST.replace(epochs=3, storage=kind, memory="1 KB")
    whole = train(read_folder(data), settings)
    for other in dict.fromkeys([kind, "memory", "lookahead"]):
        place = tmp_path / f"then {other}"
        place.mkdir(exist_ok=True)
        checkpoints = Checkpoints.every(place, "1")
        trainer = Trainer(read_folder(data), settings, checkpoints=checkpoints)
        trainer.train_epoch()
        trainer.batches.set_epoch(1)
        stop_after(trainer, 1)
        with pytest.raises(Stopped):
            trainer.train_epoch()
        again = Trainer(read_folder(data), settings.replace(storage=other), checkpoints=checkpoints)
        checkpoints.restore(again)
        assert (again.epoch, again.batches_done) == (1, 1)
        result = again.run()
        assert same_training(whole, result)
        assert same_result(whole, replace(result, settings=settings)) or other == "memory"


def test_a_state_of_other_features_is_refused(folders, tmp_path):
    state = Trainer(read_folder(folders["float32"]), SHORT.replace(storage="file")).state_dict()
    feat = planted().graph.ndata["feat"].clone()
    feat[299, 2] += 1
    with_columns(planted(), feat=feat).save(tmp_path / "other")
    other = Trainer(read_folder(tmp_path / "other"), SHORT.replace(storage="file"))
    with pytest.raises(ValueError, match="of another data set, or of a changed one"):
        other.load_state_dict(state)


def test_commands_with_a_storage(folders, tmp_path, cli):
    outputs = {}
    printed = {}
    for kind in ("memory", "cached", "lookahead"):
        run = tmp_path / kind
        options = [] if kind == "memory" else ["--storage", kind, "--memory", "1 KB"]
        assert command(folders["float32"], run, "--no-plot", *options) == 0
        assert status(["train --resume", run, "--epochs 3 --no-plot"]) == 0
        printed[kind] = cli("evaluate", run)
        assert status(["predict", run, "--output", tmp_path / "out.npy"]) == 0
        outputs[kind] = np.load(tmp_path / "out.npy")
        np.testing.assert_allclose(outputs[kind], outputs["memory"], rtol=1e-4, atol=1e-5)
    assert printed["cached"] == printed["lookahead"] == printed["memory"]
    assert status(["train --resume", tmp_path / "memory", "--epochs 4 --storage file"]) == 0
    # another data set whose features are in memory
    data = two_communities(tmp_path / "two")
    read_folder(data).save(tmp_path / "saved")
    assert command(tmp_path / "saved", tmp_path / "run", "--no-plot --storage file") == 0
    assert status(["evaluate", tmp_path / "run", "--data", data]) == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", STORED)
def test_a_gpu_learns_the_same(kind, folders):
    settings = SHORT.replace(device="cuda", dropout=0.0)
    plain = train(read_folder(folders["float32"]), settings)
    stored = train(read_folder(folders["float32"]), settings.replace(storage=kind, memory="1 KB"))
    for one, other in zip(plain.records, stored.records, strict=True):
        # sums on a GPU need not be in one order
        assert one.loss == pytest.approx(other.loss, rel=1e-3)
    assert stored.scores["test"] == pytest.approx(plain.scores["test"], abs=0.02)


# what cannot be


@pytest.mark.parametrize(
    ("data", "change", "message"),
    [
        ("none", {}, "storage 'file' does not go with a data set without features"),
        (
            "float32",
            {"inputs": "embedding"},
            "'file' does not go with inputs 'embedding': no features are read",
        ),
        ("broken", {}, "features of data set 'planted' must be finite, but row 217 has NaN or inf"),
        (
            "float32",
            {"storage": "cached", "memory": "11 B"},
            "memory is '11 B', but a row takes 12 bytes: nothing",
        ),
        (
            "float32",
            {"storage": "lookahead", "memory": "11 B"},
            "memory is '11 B', but a row takes 12 bytes",
        ),
        (
            "float32",
            {"task": "link", "model": "none"},
            "'file' does not go with model 'none': the features of",
        ),
    ],
    ids=str,
)
def test_data_and_settings_that_do_not_fit(folders, data, change, message):
    with pytest.raises(ValueError, match=message) as caught:
        Trainer(read_folder(folders[data]), FAST.replace(**{"storage": "file", **change}))
    assert "\n" not in str(caught.value)


def test_features_in_memory_say_how_to_save_them(tmp_path, cli):
    for kind in STORED:
        arguments = [
            two_communities(tmp_path / kind),
            "--output",
            tmp_path / "run",
            "--storage",
            kind,
        ]
        message = cli.failure("train", *arguments)
        assert f"storage '{kind}' needs features in a file" in message
        assert "Dataset.save(folder) or nodeflow build" in message
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_cut_off_while_training(folders, tmp_path):
    planted().save(tmp_path / "cut")
    trainer = Trainer(
        read_folder(tmp_path / "cut"), FAST.replace(storage="lookahead", memory="60 B")
    )
    features: Any = trainer.task.features["node"]
    with features.rows.path.open("rb+") as file:
        file.truncate(600)
    with pytest.raises(OSError, match=r"byte \d+ cannot be read: .* after it was opened"):
        trainer.run()


# parts


@given(
    rows=strategies.integers(0, 40), width=strategies.integers(1, 5), piece=strategies.integers(1, 200),
    kinds=strategies.tuples(*[strategies.sampled_from([torch.float16, torch.float32, torch.float64])] * 2),
)  # fmt: skip
def test_features_are_hashed_and_searched_in_pieces(rows, width, piece, kinds):
    column = torch.randn(rows, width, generator=torch.Generator().manual_seed(rows)).to(kinds[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodeflow.training._graph._PIECE", piece)
        assert hash_of(FeatureRows(OwnRows(column), kinds[1])) == hash_of(column.to(kinds[1]))
        assert FeatureRows(OwnRows(column), kinds[1]).scan[0] is None
        if rows:
            column[rows // 2 :, 0] = torch.inf
            assert FeatureRows(OwnRows(column), kinds[1]).scan[0] == rows // 2


def test_the_file_behind_a_tensor(folders):
    column = read_folder(folders["float32"]).graph.ndata["feat"]
    ids = torch.tensor([3, 299, 3])
    rows = storage.opened(column)
    part = storage.opened(column[100:])
    assert rows.fetch(ids).equal(column[ids])
    assert part.fetch(torch.tensor([0])).equal(column[100:101])
    assert storage.opened(column.clone()) is None
    assert storage.opened(column[:, :2]) is None  # with gaps


# partitions


@pytest.mark.parametrize("method", ["random", slow("train-first")])
def test_partitions_hold_the_data_set(folders, tmp_path, method):
    place = tmp_path / "parts"
    words = ["--parts 4 --method", method, "--seed 3 --output", place]
    assert status(["partition", folders["sparse"], "--direction in", *words]) == 0
    written = distributed.Partitions.open(place, verify=True)
    data = read_folder(folders["sparse"])
    assert (written.num_parts, written.num_edges) == (4, data.graph.num_edges)
    assert written.train.tolist() == sorted(data.train.tolist())
    for name in ("feat", "label"):
        column = written.column(name).fetch(torch.arange(300))
        assert column.to_dense().equal(data.graph.ndata[name].to_dense())
    counts = np.bincount(written.partition_of(data.train).numpy(), minlength=4)
    assert (np.count_nonzero(counts) == 2) == (method == "train-first")


def test_mistakes_of_partition(folders, tmp_path, cli):
    place = tmp_path / "parts"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("dear")
    data = str(folders["none"])
    arguments = ["partition", data, "--output", place, "--parts"]
    assert status([*arguments, "2"]) == 0
    wrong = {
        "exists; pass overwrite=True to replace it (nodeflow: --overwrite)": [*arguments, "2"],
        "parts must be at least 1, got 0": [*arguments, "0", "--overwrite"],
        "there is no folder": ["partition", tmp_path / "nowhere", "--parts 2 --output", place],
        "is not replaced": ["partition", data, "--parts 2 --overwrite --output", foreign],
    }
    for message, words in wrong.items():
        said = cli.failure(*words)
        assert message in said, said
    assert (foreign / "letter.txt").read_text() == "dear"
    assert status([*arguments, "3", "--overwrite"]) == 0
    assert distributed.Partitions.open(place).num_parts == 3
    assert status(["train", place]) == 2
