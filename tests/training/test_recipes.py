"""Recipes: what a run takes for settings that were left open, and where it does not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from test_links import wheel
from test_typed_training import data as papers

from nodeflow.datasets import Dataset
from nodeflow.nn import ComplEx, GraphSAGE
from nodeflow.training import Settings, Trainer, TypedInputs, _choices, _recipes, open_trainer

pytestmark = pytest.mark.usefixtures("here")

KNOWLEDGE = _recipes.RECIPES[0]
SMALL: dict[str, Any] = {"task": "link", "epochs": 1, "embedding": 8}


def taken(data: Dataset, **chosen: Any) -> Settings | None:
    """The settings of a run that took a recipe, or None."""
    trainer = Trainer(data, Settings(**SMALL | chosen))
    return trainer.settings if trainer.recipe else None


def test_links_of_relations_without_features_take_the_recipe():
    trainer = Trainer(wheel(), Settings(**SMALL))
    assert trainer.recipe == KNOWLEDGE.name
    others = KNOWLEDGE.others(_recipes.Sizes(nodes=60, edges=180, steps=1))
    assert trainer.settings.by_name().items() >= {**KNOWLEDGE.core, **others, **SMALL}.items()
    assert isinstance(trainer.task.decoder, ComplEx)
    assert trainer.task.num_relations == 3
    # what it took is chosen now, and nothing is left to a recipe
    again = Trainer(wheel(), trainer.settings)
    assert (again.settings, again.recipe) == (trainer.settings, "")


def test_values_for_knowledge_graphs_have_no_jump():
    """One entity or triple more in a hundred changes a value by 10 percent at most, always in the
    same direction.
    """
    sizes = [round(1.01**n) for n in range(500, 1200)]  # 145 to 150,000
    for edges in (0, 5_000, 40_000, 300_000):
        n3 = [KNOWLEDGE.others(_recipes.Sizes(nodes, edges, 1))["n3"] for nodes in sizes]
        assert all(a <= b <= 1.11 * a for a, b in pairwise(n3))
    for name in ("n3", "batch_size", "epochs"):
        values = [KNOWLEDGE.others(_recipes.Sizes(3_000, edges, 1))[name] for edges in sizes]
        values = values if name == "batch_size" else values[::-1]
        assert all(a <= b <= 1.11 * a for a, b in pairwise(values))
    # those with which the figures of FB15k-237 and WN18RR were measured
    for nodes, edges in ((14_541, 310_116), (40_943, 93_003)):
        values = KNOWLEDGE.others(_recipes.Sizes(nodes, edges, 1))
        assert (values["n3"], values["batch_size"], values["epochs"], values["patience"]) == (
            0.05,
            512,
            20,
            0,
        )


@pytest.mark.parametrize("model", ["typed", "hgt", "rgcn"])
def test_models_of_several_types_have_defaults_of_their_own(model):
    trainer = Trainer(papers(), Settings(target="paper", model=model, lr=0.02, hidden=8))
    settings = trainer.settings
    own = _choices.MODELS[model].defaults
    assert trainer.recipe == f"defaults of model {model!r}"
    assert (settings.model.norm, settings.model.dropout) == ("layer", own["dropout"])
    assert (settings.optimizer.lr, settings.model.hidden) == (0.02, 8)
    assert (settings.run.epochs, settings.run.patience) == (90, 30)  # 100 labels are one step
    smaller = Trainer(
        papers(), Settings(target="paper", model=model, batch_size=2, hidden=8)
    ).settings
    assert (smaller.run.epochs, smaller.run.patience, smaller.optimizer.lr) == (
        30,
        6,
        own.get("lr", 0.003),
    )
    again = Trainer(papers(), Settings.from_dict(settings.to_dict()))
    assert (again.settings, again.recipe) == (settings, "")
    # a rate is not read with an optimiser of the user's own
    parts = {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)}
    assert (
        Trainer(papers(), Settings(target="paper", model=model), **parts).settings.model.norm
        == "layer"
    )


def test_learned_rows_begin_the_smaller_the_more_of_them_a_type_has():
    """Many rows of deviation 1 are learned by heart; a few small ones hide what tells their nodes
    apart.
    """
    torch.manual_seed(0)
    deviations = {
        "author": (3000, 64 / 3000),
        "venue": (30, 1.0),
        "area": (64, 1.0),
        "nobody": (0, 1.0),
    }
    inputs = TypedInputs(
        {name: count for name, (count, _) in deviations.items()}, {}, embedding=64, width=8
    )
    for name, (count, deviation) in deviations.items():
        table = inputs.encoder.maps[f"<{name}>"][0].weight  # type: ignore[index]
        assert table.requires_grad
        assert table.shape == (count, 64)
        if count:
            assert float(table.detach().std()) == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize(
    "chosen",
    [
        {"lr": 0.01}, {"n3": 0.0}, {"optimizer": "adam"}, {"inverse": False}, {"batch_size": 7}, {"patience": 0},
        {"decoder": "complex"}, {"link_loss": "one-vs-all", "model": "none"}, {"edge_type": "relation"},
    ],
)  # fmt: skip
def test_what_is_chosen_takes_the_place_of_its_own(chosen):
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
def test_another_model_decoder_or_loss_is_no_such_recipe(chosen):
    assert taken(wheel(), **chosen) is None


def test_other_data_take_none():
    assert taken(wheel(features=True)) is None
    assert taken(wheel(relations=False)) is None
    renamed = wheel()
    renamed.graph.edata["colour"] = renamed.graph.edata.pop("relation")
    assert taken(renamed) is None
    settings = taken(renamed, edge_type="colour")
    assert settings is not None
    assert settings.graph.edge_type == "colour"


def test_parts_of_your_own_take_none():
    parts: list[dict[str, Any]] = [
        {"model": GraphSAGE(8, 4, 8, num_layers=2)},
        {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)},
        {"scheduler": lambda optimizer: torch.optim.lr_scheduler.ConstantLR(optimizer)},
    ]
    for part in parts:
        assert Trainer(wheel(), Settings(**SMALL), **part).recipe == ""


def test_nodes_take_none():
    labelled = wheel()
    labelled.graph.ndata["label"] = torch.arange(60) % 2
    data = replace(labelled, train=list(range(30)), val=list(range(30, 60)), num_classes=2)
    assert Trainer(data, Settings(epochs=1)).recipe == ""


def test_the_command_says_so_and_writes_what_it_took(tmp_path, cli):
    wheel().save(tmp_path / "data")
    words = ["--task link --epochs 2 --embedding 8 --output run"]
    shown = cli("train data", *words)
    assert f"settings that were left open: {KNOWLEDGE.name}" in shown
    settings = open_trainer("run").settings
    assert settings.link.loss == "one-vs-all"
    assert settings.optimizer.name == "adagrad"
    assert settings.chosen.items() >= {**KNOWLEDGE.core, "n3": 0.035, "epochs": 2}.items()
    assert "settings that were left open" not in cli("train --resume run")
    assert "mrr" in cli("evaluate run")
    assert "settings that were left open" not in cli(
        "train data", *words, "--model sage --overwrite"
    )
