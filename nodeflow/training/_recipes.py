"""Recipes: values for what a user leaves open, where a task needs others than the usual defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nodeflow.training._rules import COLUMN, FEW_NODES, LINK, MANY_NODES, NO_FEATURES, OWN, Condition, Others, holds
from nodeflow.training._settings import Settings


class Recipe(NamedTuple):
    """Values of settings for runs in which a condition holds.

    Attributes:
        name: what a run says that it takes, and where it was published.
        condition: values of settings, and facts of the data.
        core: values by name without which it is another recipe.
        rest: further values by name.
    """

    name: str
    condition: Condition
    core: Mapping[str, object]
    rest: Mapping[str, object]


OWN_PARTS = ("model", "optimizer", "schedule")  # a recipe has its own
_COMPLEX_N3 = "ComplEx-N3 (Lacroix, Usunier, Obozinski 2018), since edges have relations and nodes no features"
_KNOWLEDGE: Condition = {
    "task": LINK,
    "features": (NO_FEATURES,),
    "relations": (COLUMN,),
    **dict.fromkeys(OWN_PARTS, Others(OWN)),
}
_COMPLEX = {"model": "none", "decoder": "complex", "link_loss": "one-vs-all"}
_TRAINING = {
    "inverse": True,
    "optimizer": "adagrad",
    "lr": 0.1,
    "schedule": "linear",
    "patience": 9,
    "validate_every": 3,
}
RECIPES = (
    Recipe(
        _COMPLEX_N3,
        {**_KNOWLEDGE, "size": (MANY_NODES,)},
        _COMPLEX,
        {**_TRAINING, "embedding": 768, "n3": 0.05, "batch_size": 512, "epochs": 20},
    ),
    # UMLS and Kinships: test MRR 0.95 and 0.88; with the weight and the batches above 0.87 and 0.71
    Recipe(
        f"{_COMPLEX_N3}, of few nodes",
        {**_KNOWLEDGE, "size": (FEW_NODES,)},
        _COMPLEX,
        {**_TRAINING, "embedding": 512, "n3": 0.01, "batch_size": 128, "epochs": 50},
    ),
)
"""A run takes the first one that goes with all that was chosen."""


def completed(settings: Settings, facts: Mapping[str, object]) -> tuple[Settings, str]:
    """Return settings with the values of a recipe for what was not chosen, and its name; "" where nothing changes.

    ``facts`` are those of ``_rules.FACTS``. A recipe is left out where a chosen setting is another than in its core,
    does not go with it, or would not be read.
    """
    for recipe in RECIPES:
        if not holds(recipe.condition, {**settings.by_name(), **facts}, unknown=False):
            continue
        if any(settings.chosen.get(name, value) != value for name, value in recipe.core.items()):
            continue
        try:
            whole = Settings({**recipe.core, **recipe.rest}, **settings.chosen)
        except ValueError:
            continue
        return whole, recipe.name if whole.chosen != settings.chosen else ""
    return settings, ""
