"""Settings: their ranges, their file, and what is said about wrong ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from _support.training_tools import FAST

from nodeflow.training import Settings
from nodeflow.training._folder import Run
from nodeflow.training._settings import read_toml


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "best"}, "model must be 'sage', .* or 'gatv2' .*module:factory|model must be"),
        ({"model": "nowhere:"}, "model must be"),
        ({"sampler": "best"}, "sampler must be 'neighbor', .* or 'cv', got 'best'"),
        ({"task": "best"}, "task must be 'auto', .*, got 'best'"),
        ({"direction": "up"}, "direction must be 'in', 'out' or 'both', got 'up'"),
        ({"fanouts": ()}, "fanouts must have one number per flow, got none"),
        ({"fanouts": (4, 0)}, r"fanouts\[1\] must be -1 .* or at least 1, got 0"),
        ({"fanouts": (-2, 4)}, r"fanouts\[0\] must be -1"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"workers": -1}, "workers must be at least 0, got -1"),
        ({"accumulate": 0}, "accumulate must be at least 1, got 0"),
        ({"dropout": 1.0}, "dropout must be at least 0.* and below 1, got 1.0"),
        ({"dropout": -0.1}, "dropout must be"),
        ({"dropout": math.nan}, "dropout must be"),
        ({"lr": 0.0}, "lr must be finite and above 0, got 0.0"),
        ({"lr": math.inf}, "lr must be finite and above 0, got inf"),
        ({"weight_decay": -1.0}, "weight_decay must be finite and at least 0.*, got -1.0"),
        ({"optimizer": "best"}, "optimizer must be 'adam', .*, got 'best'"),
        ({"precision": "int8"}, "precision must be 'float32' or 'bf16', got 'int8'"),
        (
            {"sampler_options": {"replce": True}},
            "'replce' .= True. is no option of sampler 'neighbor' here; those are replace, ",
        ),
        ({"sampler_options": {"seed": 1}}, "'seed' .= 1. is no option of sampler 'neighbor' here"),
        ({"sampler_options": {"weight": "w"}}, "'weight' .= 'w'. cannot be set here: the model says what"),
        ({"sampler": "labor", "sampler_options": {"include_dst": False}}, "'include_dst' .= False. cannot be set here"),
        (
            {"sampler": "saint", "validate": "sampled"},
            "validate 'sampled' does not go with sampler 'saint': its batches have all nodes",
        ),
        ({"sampler": "shadow", "fanouts": (4, 3)}, "fanouts must be one number, repeated .*'shadow'; got .4, 3."),
        ({"sampler": "cv", "fanouts": (4,)}, r"fanouts must have two numbers or more with sampler 'cv': .*; got \[4\]"),
        (
            {"sampler": "cv", "model": "gat"},
            "sampler 'cv' does not go with model 'gat': it needs a model with a history, sage or gcn",
        ),
    ],
    ids=str,
)
def test_settings_out_of_range(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FAST.replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"fanouts": 5}, {"hidden": 2.5}, {"seed": 1.5}, {"epochs": True}, {"dropout": "0.1"}, {"residual": 1},
        {"metric": 3}, {"sampler_options": [1]}, {"lr": True},
    ],
    ids=str,
)  # fmt: skip
def test_settings_of_the_wrong_type(change: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(change))):
        FAST.replace(**change)


def test_usual_fanouts_are_those_of_the_sampler() -> None:
    assert Settings().sampler.fanouts == (10, 10)
    assert Settings(sampler="fastgcn").sampler.fanouts == (512, 512)
    assert Settings(fanouts=[3, 2]).sampler.fanouts == (3, 2)


def test_a_file_holds_all_settings(tmp_path: Path) -> None:
    settings = FAST.replace(seed=-(2**62), lr=1 / 3, sampler_options={"replace": True, "prob": 'a "b"\n'},
        model_options={"order": "transform"}, metric="f1_macro", residual=True,
    )  # fmt: skip
    Run("debian", settings, "10min").write(tmp_path)
    assert Run.read(tmp_path) == Run("debian", settings, "10min")


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
def test_a_wrong_file_of_settings(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"run\.toml.*{message}"):
        Run.read(tmp_path)


def test_a_missing_file_of_settings(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file of settings at .*other\.toml"):
        read_toml(tmp_path / "other.toml")
    with pytest.raises(FileNotFoundError, match=r"is no folder of a run: it has no run\.toml"):
        Run.read(tmp_path)
