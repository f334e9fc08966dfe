"""Settings: their ranges, their file, and that every one is read by a run, or refused with the
reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from _support.cli_tools import status
from _support.run_files import read_run, run_of
from _support.training_tools import FAST, planted, with_columns

from nodeflow.datasets import Dataset, read_folder
from nodeflow.distributed import HALO
from nodeflow.distributed._orders import ORDERS
from nodeflow.nn import DECODERS, GraphSAGE
from nodeflow.training import (
    Settings,
    Trainer,
    _choices,
    _fields,
    _models,
    _optimizers,
    _samplers,
    _settings,
)


def test_usual_fanouts_are_those_of_the_sampler():
    assert Settings().sampler.fanouts == (10, 10)
    assert Settings(sampler="fastgcn").sampler.fanouts == (512, 512)
    assert Settings(fanouts=[3, 2]).sampler.fanouts == (3, 2)


def test_a_file_holds_all_settings(tmp_path):
    settings = FAST.replace(seed=-(2**62), lr=1 / 3, sampler_options={"replace": True, "prob": 'a "b"\n'},
        model_options={"order": "transform"}, metric="f1_macro", residual=True,
    )  # fmt: skip
    run_of(settings.to_dict() | {"checkpoint_every": "10min"}).write(tmp_path)
    back = read_run(tmp_path)
    assert (back.data, back.settings, back.checkpoint_every) == ("debian", settings, "10min")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = 0", "epochs must be at least 1, got 0"),
        ("epoch = 3", r"there is no setting 'epoch' \(= 3\); did you mean epochs\?"),
        ('hidden = "8"', "hidden must be an integer, got str '8'"),
        ("data = 7", "data must be a string, got int 7"),
        ("epochs = ", "is no TOML"),
    ],
)
def test_a_wrong_file_of_settings(text, message, tmp_path):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"run\.toml.*{message}"):
        read_run(tmp_path)


def test_a_file_of_before_that_packed_nothing_is_read(tmp_path):
    run = "fanouts = [3, 3]\n\n[storage]\nkind = 'lookahead'\npack = '{}'\n"
    (tmp_path / "run.toml").write_text(run.format(""))
    assert read_run(tmp_path).settings == Settings(fanouts=(3, 3), storage="lookahead")
    (tmp_path / "run.toml").write_text(run.format("/scratch"))
    with pytest.raises(ValueError, match=r"there is no setting 'storage.pack' \(= '/scratch'\)"):
        read_run(tmp_path)


SMALL: dict[str, Any] = {"batch_size": 64, "epochs": 1, "direction": "in"}
NODE = {**SMALL, "hidden": 8, "fanouts": (3, 3)}
LINK = {**SMALL, "task": "link", "embedding": 8, "negatives": 4, "chunk": 16, "batch_size": 512}
ROWS = {**LINK, "model": "none", "inputs": "embedding"}
RUNS: dict[str, dict[str, Any]] = {
    **{
        name: {**NODE, "sampler": name}
        for name in ("neighbor", "labor", "saint", "cluster", "shadow", "random-walk", "cv")
    },
    "ladies": {**NODE, "sampler": "ladies", "fanouts": (32, 32)},
    **{name: {**NODE, "model": name} for name in ("gin", "gat", "rgcn", "own_of_this_test:make")},
    "learned rows": {**NODE, "inputs": "embedding"},
    "features": {**NODE, "inputs": "features"},
    "no features": NODE,
    "regression": {**NODE, "task": "regression"},
    "auto, of numbers": NODE,
    **{name: {**NODE, "storage": name} for name in ("file", "cached", "lookahead")},
    "partitions": {**NODE, "storage": "partitions", "slots": 2, "batch_size": 5},
    **{
        name: {**ROWS, "link_loss": name}
        for name in ("softmax", "logistic", "margin", "self-adversarial")
    },
    "one-vs-all": {
        **{name: value for name, value in ROWS.items() if name not in ("negatives", "chunk")},
        "link_loss": "one-vs-all",
    },
    "dot": {**ROWS, "decoder": "dot"},
    "links of features": {**LINK, "fanouts": (3,), "hidden": 8},
    "links of shadow": {**LINK, "sampler": "shadow", "fanouts": (3,), "hidden": 8},
}
OTHER: dict[str, Any] = {
    "task": "classification", "seed": 1, "direction": "out", "edge_type": "kind", "model": "gcn", "inputs": "both",
    "target": "node", "embedding": 5, "hidden": 5, "dropout": 0.3, "norm": "layer", "residual": True,
    "model_options": {"aggregator": "pool"}, "sampler": "bernoulli", "fanouts": (2, 2), "batch_size": 50,
    "sampler_options": {"replace": True}, "decoder": "complex", "decoder_options": {"norm": 1}, "inverse": True,
    "link_loss": "logistic", "negatives": 3, "negative_law": "degree", "chunk": 8, "corrupt": "source", "margin": 2.0,
    "n3": 0.1, "temperature": 2.0, "label_smoothing": 0.1, "class_weights": "balanced", "optimizer": "sgd", "lr": 0.1,
    "weight_decay": 0.1, "schedule": "linear", "warmup": 1.0, "clip": 1.0, "accumulate": 2, "epochs": 2, "patience": 1,
    "validate_every": 2, "validate": "full", "metric": "f1_macro", "storage": "file", "memory": "3 KB",
    "partitions": "/nowhere", "slots": 4, "order": "beta", "device": "cuda", "precision": "bf16", "compile": True,
    "workers": 2, "share": "owned", "halo": 0.5, "groups": 5, "mix": 2,
    "sample_on": "device",
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folders")
    planted().save(place / "data")
    words = ["partition", place / "data", "--parts 6 --direction in"]
    assert status([*words, "--output", place / "parts"]) == 0
    return place


def data_of(run: str, folders: Path) -> Dataset:
    if run in ("file", "cached", "lookahead", "partitions"):
        return read_folder(folders / "data")
    if run == "no features":
        return with_columns(planted(), feat=None)
    if run in ("regression", "auto, of numbers"):
        return with_columns(planted(), label=planted().graph.ndata["label"].float() * 1.5)
    return planted()


@contextmanager
def reads() -> Iterator[set[str]]:
    """Within the block, settings that code of ``training`` reads are put into a set, but not those
    that rules read.
    """
    read: set[str] = set()
    names = {
        (kind, one.name): _fields.name_of(one)
        for kind in _settings.GROUPS.values()
        for one in fields(kind)
    }

    def get(group: _fields.Group, attribute: str) -> Any:
        code = sys._getframe(1).f_code
        file = Path(code.co_filename)
        if file.parent.name == "training" and (
            file.stem not in ("_settings", "_groups", "_fields", "_rules")
            or code.co_name == "bytes"
        ):
            read.add(names.get((type(group), attribute), ""))
        return object.__getattribute__(group, attribute)

    _fields.Group.__getattribute__ = get  # type: ignore[method-assign, assignment]
    try:
        yield read
    finally:
        del _fields.Group.__getattribute__


def test_other_values_are_of_all_settings():
    assert set(OTHER) == set(_settings.FIELDS)
    assert all(OTHER[name] != one.default for name, (_, one) in _settings.FIELDS.items())


@pytest.mark.parametrize("run", RUNS)
def test_a_setting_is_read_or_refused(run, folders, monkeypatch):
    own = ModuleType("own_of_this_test")
    own.make = GraphSAGE  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, own.__name__, own)
    data = data_of(run, folders)
    values = RUNS[run]
    if run == "partitions":
        values = {**values, "partitions": str(folders / "parts")}
    with reads() as read:
        trainer = Trainer(data, Settings(**values))
        trainer.run()
    facts = {
        "features": _choices.FEATURES if "feat" in data.graph.ndata else _choices.NO_FEATURES,
        "graph": _choices.WHOLE,
        "processes": _choices.ONE,
    }
    facts |= {"loss": _choices.LOSS, "types": _choices.ONE_TYPE}
    if values.get("task") != "link":
        facts["task"] = trainer.task.target.task  # type: ignore[attr-defined]
    accepted = {"task", "seed"}
    refused = dict[str, str]()
    for name, value in OTHER.items():
        if name == "task":
            continue
        try:
            Settings(**{**values, name: value}).check(**facts)
        except ValueError as error:
            refused[name] = str(error)
        else:
            accepted.add(name)
    assert all(name in message and "\n" not in message for name, message in refused.items())
    assert accepted - read - {"task", "seed"} == set()
    assert set(values) <= accepted | {
        "task",
        "model",
        "inputs",
        "storage",
        "partitions",
        "fanouts",
        "sampler",
    }


def test_changes_leave_out_what_they_leave_unread():
    links = Settings(task="link", decoder="complex", link_loss="margin", margin=9, lr=0.1)
    assert links.replace(link_loss="softmax") == Settings(task="link", decoder="complex", lr=0.1)
    assert links.replace(task="auto") == Settings(lr=0.1)
    assert links.replace(link={"margin": 3}).link.margin == 3
    with pytest.raises(ValueError, match=r"margin .* is read with task 'link'"):
        links.replace(task="auto", margin=9)
    # of the file, not of the change
    with pytest.raises(ValueError, match=r"margin .* is read with task 'link'"):
        Settings.from_dict({"margin": 9}, lr=0.2)
    assert Settings.from_dict({"margin": 9}, task="link", link_loss="margin").link.margin == 9


def test_settings_by_group():
    one = Settings(
        task="link", decoder="complex", link_loss="margin", margin=9, model="gcn", hidden=32
    )
    link = {"decoder": "complex", "loss": "margin", "margin": 9}
    groups = Settings(task="link", link=link, model={"name": "gcn", "hidden": 32})
    assert one == groups
    assert (one.link.margin, one.model.name, one.model.hidden, one.link.loss) == (
        9.0,
        "gcn",
        32,
        "margin",
    )
    assert eval(repr(one)) == one
    assert "link" not in Settings().to_dict()
    for settings in (one, Settings()):
        assert Settings.from_dict(settings.to_dict()) == settings
    with pytest.raises(AttributeError):
        one.model.hidden = 3  # type: ignore[misc]


def test_choices_are_those_that_are_made():
    """Names and traits are written without torch; what they stand for is elsewhere."""
    assert list(_choices.MODELS) == list(_models.MODELS)
    for name, kind in _models.MODELS.items():
        assert kind.traits == _choices.MODELS[name]
        assert (kind.with_history is not None) == kind.traits.has_history
    assert list(_choices.SAMPLERS) == list(_samplers.METHODS)
    for name, method in _samplers.METHODS.items():
        in_torch = vars(method.make).get("has_torch_form", False)
        assert in_torch == _choices.SAMPLERS[name].in_torch
    assert list(_choices.DECODERS) == list(DECODERS)
    assert set(_choices.HAS_N3) == {name for name in DECODERS if hasattr(DECODERS[name], "n3")}
    assert list(_choices.OPTIMIZERS) == list(_optimizers.OPTIMIZERS)
    assert list(_choices.SCHEDULES) == list(_optimizers.SCHEDULES)
    order = _settings.FIELDS["order"][1].metadata
    assert list(order["words"]["choices"]) == list(ORDERS)
    assert all(f"{name}: {kind.words}" in order["help"] for name, kind in ORDERS.items())
    assert Settings().compute.halo == HALO


def test_the_command_has_the_choices_of_the_package(cli):
    for option, choices in {
        "partition --method": ["random", "train-first", "metis", "ranges", "hash"],
        "partition --edges": ["in", "out"],
        "build --store": ["int8", "float16", "bfloat16", "auto"],
        "predict --side": ["dst", "src"],
    }.items():
        command, name = option.split()
        (shown,) = re.findall(rf"\[{name} {{(.+?)}}", " ".join(cli(command, "--help").split()))
        assert sorted(shown.split(",")) == sorted(choices)


def test_rules_name_settings():
    for name in _settings.FIELDS:
        for several in _settings.conditions_of(name):
            assert {key for condition in several for key in condition} <= {
                *_settings.FIELDS,
                *_choices.FACTS,
            }
    assert "auto" in _choices.NODES
    assert torch.get_num_threads() == 1
