"""Recipes: what a run takes for settings that were left open, and where it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from _support.cli_tools import Cli
from test_links import wheel

from nodeflow import Graph
from nodeflow.datasets import Dataset
from nodeflow.nn import ComplEx, GraphSAGE
from nodeflow.training import Settings, Trainer
from nodeflow.training._folder import Run
from nodeflow.training._recipes import RECIPES, Recipe

MANY, FEW = RECIPES  # by the number of nodes
SMALL: dict[str, Any] = {"task": "link", "epochs": 1, "embedding": 8}


def taken(data: Dataset, **chosen: Any) -> Settings | None:
    """The settings of a run that took a recipe, or None."""
    trainer = Trainer(data, Settings(**SMALL | chosen))
    return trainer.settings if trainer.recipe else None


def test_links_of_relations_without_features_take_the_recipe() -> None:
    trainer = Trainer(wheel(), Settings(**SMALL))
    assert trainer.recipe == FEW.name
    assert trainer.settings.by_name().items() >= {**FEW.core, **FEW.rest, **SMALL}.items()
    assert isinstance(trainer.task.decoder, ComplEx)
    assert trainer.task.num_relations == 3
    # what it took is chosen now, and nothing is left to a recipe
    again = Trainer(wheel(), trainer.settings)
    assert (again.settings, again.recipe) == (trainer.settings, "")


@pytest.mark.parametrize(("num_nodes", "recipe"), [(999, FEW), (1000, MANY)])
def test_weights_of_regularisation_are_those_for_the_size(num_nodes: int, recipe: Recipe) -> None:
    small = wheel()
    graph = Graph.from_edges(*small.graph.edges(), num_nodes=num_nodes, edata=dict(small.graph.edata))
    trainer = Trainer(replace(small, graph=graph), Settings(**SMALL))
    assert trainer.recipe == recipe.name
    assert trainer.settings.link.n3 == recipe.rest["n3"]
    assert trainer.settings.sampler.batch_size == recipe.rest["batch_size"]


@pytest.mark.parametrize(
    "chosen",
    [
        {"lr": 0.01}, {"n3": 0.0}, {"optimizer": "adam"}, {"inverse": False}, {"batch_size": 7}, {"patience": 0},
        {"decoder": "complex"}, {"link_loss": "one-vs-all", "model": "none"}, {"edge_type": "relation"},
    ],
)  # fmt: skip
def test_what_is_chosen_takes_the_place_of_its_own(chosen: dict[str, Any]) -> None:
    settings = taken(wheel(), **chosen)
    assert settings is not None
    assert {name: settings.by_name()[name] for name in chosen} == chosen
    assert settings.link.loss == "one-vs-all"


@pytest.mark.parametrize(
    "chosen",
    [
        {"model": "sage"}, {"decoder": "distmult"}, {"link_loss": "softmax"}, {"negatives": 5}, {"fanouts": (3,)},
        {"link_loss": "k-vs-all", "model": "none"},
    ],
)  # fmt: skip
def test_another_model_decoder_or_loss_is_no_such_recipe(chosen: dict[str, Any]) -> None:
    assert taken(wheel(), **chosen) is None


def test_other_data_take_none() -> None:
    assert taken(wheel(features=True)) is None
    assert taken(wheel(relations=False)) is None
    renamed = wheel()
    renamed.graph.edata["colour"] = renamed.graph.edata.pop("relation")
    assert taken(renamed) is None
    settings = taken(renamed, edge_type="colour")
    assert settings is not None
    assert settings.graph.edge_type == "colour"


def test_parts_of_your_own_take_none() -> None:
    parts: list[dict[str, Any]] = [
        {"model": GraphSAGE(8, 4, 8, num_layers=2)},
        {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)},
        {"scheduler": lambda optimizer: torch.optim.lr_scheduler.ConstantLR(optimizer)},
    ]
    for part in parts:
        assert Trainer(wheel(), Settings(**SMALL), **part).recipe == ""


def test_nodes_take_none() -> None:
    labelled = wheel()
    labelled.graph.ndata["label"] = torch.arange(60) % 2
    data = replace(labelled, train=list(range(30)), val=list(range(30, 60)), num_classes=2)
    assert Trainer(data, Settings(epochs=1)).recipe == ""


def test_the_command_says_so_and_writes_what_it_took(tmp_path: Path, cli: Cli) -> None:
    wheel().save(tmp_path / "data")
    words = ["--task", "link", "--epochs", "2", "--embedding", "8", "--output", tmp_path / "run"]
    shown = cli("train", tmp_path / "data", *words)
    assert f"settings that were left open: {FEW.name}" in shown
    settings = Run.read(tmp_path / "run").settings
    assert settings.link.loss == "one-vs-all"
    assert settings.optimizer.name == "adagrad"
    assert settings.chosen.items() >= {**FEW.core, "n3": 0.01, "epochs": 2}.items()
    assert "settings that were left open" not in cli("train", "--resume", tmp_path / "run")
    assert "mrr" in cli("evaluate", tmp_path / "run")
    assert "settings that were left open" not in cli(
        "train", tmp_path / "data", *words, "--model", "sage", "--overwrite"
    )
