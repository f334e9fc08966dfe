"""What a training run saves: the files, the model that comes back from them, and files that are
damaged.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from _support.cli_tools import rows_of
from _support.run_files import read_tensors, write_tensors
from _support.training_tools import FAST, planted, train, without
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import nodeflow
from nodeflow.nn import GCN, VRGCN, GraphSAGE, VRGraphSAGE, VRModel
from nodeflow.training import Checkpoints, Network, Trainer, load_model, save
from nodeflow.training._folder import output_folder

pytestmark = pytest.mark.usefixtures("here")

# what is saved


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, VRGraphSAGE, VRGCN])
def test_a_saved_model_gives_the_same_outputs(kind, tmp_path):
    data = planted()
    model = "sage" if kind in (GraphSAGE, VRGraphSAGE) else "gcn"
    settings = FAST.replace(sampler="cv") if issubclass(kind, VRModel) else FAST
    made = train(data, settings.replace(model=model, epochs=1, fanouts=(3, 2, -1)))
    save(made, tmp_path)
    torch.manual_seed(9)
    before = torch.get_rng_state()
    loaded = load_model(tmp_path / "checkpoint.safetensors")
    assert torch.equal(torch.get_rng_state(), before)
    assert type(loaded.model) is kind
    assert not loaded.training
    assert loaded.model.dropout.p == 0.2
    x = data.graph.ndata["feat"]
    assert torch.equal(
        loaded.model.inference(data.graph, x), made.network.model.inference(data.graph, x)
    )
    assert isinstance(load_model(str(tmp_path / "checkpoint.safetensors")), Network)


def test_the_files_of_a_run(result, tmp_path):
    folder = tmp_path / "a" / "b"
    written = save(result, folder)
    assert written == [
        folder / name for name in ("checkpoint.safetensors", "log.csv", "trace.csv", "result.json")
    ]
    assert sorted(folder.iterdir()) == sorted(written)
    assert load_file(written[0]).keys() == result.network.state_dict().keys()

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    facts = json.loads(written[3].read_text(), parse_constant=refuse)
    expected = {
        "dataset": "planted",
        "task": "classification",
        "metric": "accuracy",
        "best_epoch": result.best_epoch,
        "best_val_score": max(record.score for record in result.records),
        "scores": result.scores,
        "fingerprint": result.fingerprint,
        "identity": result.identity,
    }
    versions = {"nodeflow": nodeflow.__version__, "torch": str(torch.__version__)}
    settings = {**FAST.by_name(read=True), "fanouts": [4, 4]}
    assert facts.pop("machine").keys() == {"numpy", "python", "system", "processor", "threads"}
    assert facts == {**expected, "settings": settings, "versions": versions}
    with safe_open(written[0], "pt") as stored:
        metadata = json.loads(stored.metadata()["nodeflow"], parse_constant=refuse)["facts"]
    network = {
        "inputs": {"num_nodes": 300, "features": 3, "embedding": 0, "dense": False},
        "model": {"in_features": 3, "out_features": 3, "weighted": False, "history": False},
    }
    network["model"] |= {"num_relations": 0, "edge_type": "", "schema": None}
    names = {
        "classes": None,
        "features": {"node": None},
        "categories": {},
        "columns": {"node": "feat"},
        "schema": result.task.graph.schema.to_json(),
    }
    further = {
        "settings": settings,
        "network": network,
        "versions": versions,
        "names": names,
        "target": "",
    }
    assert metadata == {**expected, **further}
    rows = rows_of(written[1])
    for row, record in zip(rows, result.records, strict=True):
        scores = {f"val_{name}": value for name, value in record.scores.items()}
        rates = {
            name: getattr(record, name)
            for name in ("seconds", "seeds_per_second", "edges_per_second")
        }
        assert {name: float(value) for name, value in row.items()} == {
            "epoch": record.epoch, "loss": record.loss, **scores, **rates
        }  # fmt: skip


def test_a_title_adds_the_picture_and_old_files_are_replaced(result, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "log.csv").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    for options in ({"curves": "title"}, {}):  # a picture of an earlier run goes
        written = save(result, tmp_path, **options)
        assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written} | {
            "notes.txt"
        }
        assert (written[-1].read_bytes()[:4] == b"\x89PNG") == bool(options)
        assert (tmp_path / "log.csv").read_text().startswith("epoch,loss,")


@pytest.mark.parametrize(
    "failing", ["checkpoint.safetensors", "log.csv", "trace.csv", "result.json"]
)
def test_when_a_file_cannot_be_written_none_is(failing, result, tmp_path, monkeypatch):
    def full(method):
        def call(self: Path, *args, **kwargs):
            if failing in self.name:
                raise OSError(28, "No space left on device")
            return method(self, *args, **kwargs)

        return call

    for method in ("open", "write_bytes", "write_text"):
        monkeypatch.setattr(Path, method, full(getattr(Path, method)))
    old = tmp_path / "old"
    old.mkdir()
    (old / "log.csv").touch()
    for folder in (tmp_path / "new" / "deep", old):
        with pytest.raises(OSError, match="No space left") as raised:
            save(result, folder)
        assert str(folder) in raised.value.filename
    assert [path.name for path in tmp_path.rglob("*")] == ["old", "log.csv"]
    assert (old / "log.csv").stat().st_size == 0


def test_a_save_that_is_cut_off_between_two_files_leaves_no_finished_run(
    result, tmp_path, monkeypatch
):
    save(result, tmp_path)
    rename = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if path.name == "trace.csv":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            save(result, tmp_path)
    assert not (tmp_path / "result.json").exists()
    assert {path.name for path in save(result, tmp_path)} == {
        path.name for path in tmp_path.iterdir()
    }


def test_a_folder_in_the_place_of_a_file_is_refused(result, tmp_path):
    (tmp_path / "result.json").mkdir()
    with pytest.raises(IsADirectoryError, match=r"result\.json: it is a folder"):
        save(result, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_output_folder():
    probe = Path(".probe")
    probe.write_text("a user's own")
    with output_folder(Path()):
        assert [*Path().iterdir()] == [probe]
    with output_folder(Path("a/b")):
        pass
    assert Path("a/b").is_dir()
    with pytest.raises(KeyError), output_folder(Path("a/c/d")):
        raise KeyError
    assert not Path("a/c").exists()
    block = output_folder(Path("x/y"))
    block.__enter__()
    Path("x/kept").touch()
    assert not block.__exit__(KeyError, KeyError(), None)
    assert [path.name for path in Path("x").iterdir()] == ["kept"]
    for folder, why in ((probe, "it is a file"), (probe / "z", "Not a directory")):
        with (
            pytest.raises(OSError, match=rf"output folder \.probe.*: {why}"),
            output_folder(folder),
        ):
            pass
    assert probe.read_text() == "a user's own"


def test_equal_runs_write_equal_files(result, tmp_path):
    contents = {
        tuple(path.read_bytes() for path in save(result, tmp_path / str(i))) for i in range(20)
    }
    assert len(contents) == 1


# damaged checkpoints


def test_a_missing_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        load_model(tmp_path / "no.safetensors")
    with pytest.raises(IsADirectoryError, match="must be a file, but it is a folder"):
        load_model(tmp_path)


@pytest.mark.parametrize("cut", [0, 4, 100, -1])
def test_a_checkpoint_cut_short(cut, result, tmp_path):
    checkpoint = save(result, tmp_path)[0]
    checkpoint.write_bytes(checkpoint.read_bytes()[:cut])
    with pytest.raises(
        ValueError, match=r"checkpoint\.safetensors is damaged, or no safetensors file"
    ):
        load_model(checkpoint)


def test_a_checkpoint_of_something_else(result, tmp_path):
    other = tmp_path / "other.safetensors"
    save_file({"x": torch.ones(1)}, other)
    with pytest.raises(ValueError, match="is no checkpoint of a training run"):
        load_model(other)
    checkpoint = save(result, tmp_path)[0]
    with safe_open(checkpoint, "pt") as file:
        stored = json.loads(file.metadata()["nodeflow"])["facts"]
    weights = load_file(checkpoint)
    settings = stored["settings"]
    bare = {**stored["network"], "model": None}
    changes = [
        (weights, {}),
        (weights, {**stored, "settings": {**settings, "model": "gat"}}),
        (weights, {**stored, "settings": {**settings, "unknown": 1}}),
        (weights, {**stored, "settings": {**settings, "hidden": 5}}),
        (weights, {**stored, "network": {}}),
        (weights, {**stored, "network": []}),
        (weights, {**stored, "network": bare, "settings": {"model": "none", "task": "link"}}),
        (weights, {**stored, "settings": []}),
        ({"model.convs.0.own.weight": weights["model.convs.0.own.weight"]}, stored),
    ]
    for tensors, facts in changes:
        write_tensors(other, tensors, facts)
        with pytest.raises(
            ValueError, match=r"other\.safetensors: the model that it holds cannot be made"
        ):
            load_model(other)


def test_a_model_of_the_users_own_is_not_made_again(tmp_path):
    result = Trainer(
        planted(), without(FAST.replace(epochs=1), "hidden", "dropout"), model=GraphSAGE(3, 5, 3)
    ).run()
    save(result, tmp_path)
    with pytest.raises(ValueError, match="its model was made by its user"):
        load_model(tmp_path / "checkpoint.safetensors")


# checksums, and files of another run


def flipped(contents: bytes, bit: int) -> bytes:
    changed = bytearray(contents)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("name", ["state.safetensors", "checkpoint.safetensors"])
def test_no_bit_of_a_file_of_tensors_flips_in_silence(name, tmp_path):
    trainer = Trainer(
        planted(), FAST.replace(epochs=1, hidden=4), checkpoints=Checkpoints(tmp_path)
    )
    save(trainer.run(), tmp_path)
    path = tmp_path / name
    random = np.random.default_rng(3)
    contents = path.read_bytes()
    header = 8 * (8 + int.from_bytes(contents[:8], "little"))
    for bits in (
        range(8 * 100),
        random.integers(0, header, 200),
        random.integers(0, 8 * len(contents), 200),
    ):
        for bit in map(int, bits):
            path.write_bytes(flipped(contents, bit))
            with pytest.raises(ValueError, match=re.escape(str(path))):
                read_tensors(path)
    path.write_bytes(contents)
    read_tensors(path)


CHECKPOINT = "checkpoint.safetensors"
READ = ("evaluate one", "predict one --output o.csv")


def test_the_checkpoint_of_another_run_is_refused(data, cli):
    for name, options in {"one": "--seed 0", "wide": "--hidden 9", "seed": "--seed 5"}.items():
        cli.train(data, Path(name), "--no-plot", options)
    own = Path("one", CHECKPOINT).read_bytes()
    for name, words in {"wide": "hidden = 9, got 8", "seed": "seed = 5, got 0"}.items():
        for command, file in (
            *((command, CHECKPOINT) for command in READ),
            ("train --resume one", "state.safetensors"),
        ):
            shutil.copy(Path(name, file), "one")
            told = cli.failure(command)
            assert f"one/{file}" in told
            assert f"is of a run with {words}" in told
    facts, tensors = read_tensors(Path("one", CHECKPOINT))
    write_tensors(Path("one", CHECKPOINT), tensors, {**facts, "network": 3})
    words = f"{CHECKPOINT} does not say of which run it is"
    assert words in cli.failure("evaluate one")
    Path("one", CHECKPOINT).write_bytes(own)
    cli("evaluate one")


def test_files_of_a_run_on_other_data_or_of_other_length_are_refused(data, cli):
    """With the same settings and shapes; --data, which allows other data, does not allow another
    run.
    """
    other = shutil.copytree(data, "other")
    edges = dict(np.load(data / "edges.npz"))
    kind = np.arange(len(edges["src"])) % 3
    for folder, turn in ((data, 0), (other, 1)):
        np.savez(Path(folder, "edges.npz"), kind=np.roll(kind, turn), **edges)
    options = "--no-plot --model rgcn --batch-size 60 --epochs"
    cli.train(data, Path("one"), options, "2")
    cli.train(Path(other), Path("data"), options, "2")
    cli.train(data, Path("long"), options, "5")
    shutil.copytree("one", "copy")
    for name, words in {
        "data": "is of another run than run.toml",
        "long": "are of two runs",
    }.items():
        shutil.copy(Path(name, CHECKPOINT), "one")
        for command in (*READ, f"evaluate one --data {data}"):
            assert words in cli.failure(command)
    shutil.copy("data/state.safetensors", "one")
    words = "is the state of another run than that of its folder"
    assert words in cli.failure("train --resume one")
    shutil.copytree("copy", "one", dirs_exist_ok=True)
    cli("evaluate one")
    cli("train --resume one")


def test_a_model_is_measured_on_the_data_that_it_was_trained_on(data, cli):
    cli.train(data, Path("run"), "--no-plot")
    np.save(data / "features.npy", np.load(data / "features.npy") + 1)
    assert "was not trained on data set 'two' as" in cli.failure("evaluate run")
    cli("evaluate run --data", data)
