"""Recipes: values for what a user leaves open, where a model or a task needs others than the usual
defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nodeflow._processes.default_group import peers_of
from nodeflow.datasets import Dataset
from nodeflow.training._choices import (
    COLUMN,
    LINK,
    MODELS,
    NO_FEATURES,
    NODES,
    OWN,
    SEVERAL_TYPES,
    Condition,
    Others,
    Values,
)
from nodeflow.training._data import cut_links
from nodeflow.training._rules import holds, unread
from nodeflow.training._settings import Settings, conditions_of


class Sizes(NamedTuple):
    """Sizes that values of recipes depend on.

    Attributes:
        nodes: of the graph.
        edges: of all parts of the split.
        steps: batches of training nodes in an epoch, at least 1.
    """

    nodes: int
    edges: int
    steps: int


def sizes_of(dataset: Dataset, settings: Settings) -> Sizes:
    """Return the sizes of a data set, with batches of the settings, which all processes make
    together.
    """
    edges = dataset.graph.num_edges
    links = cut_links(dataset)
    # the graph has those of training alone
    if links is not None:
        edges = sum(map(len, links.triples.values()))
    # batches of all processes together, the last one incomplete
    steps = -(-len(dataset.train) // (settings.sampler.batch_size * peers_of(dataset.graph).size))
    return Sizes(dataset.graph.num_nodes, edges, max(steps, 1))


class Recipe(NamedTuple):
    """Values of settings for runs in which a condition holds.

    Attributes:
        name: what a run says that it takes, and where it was published.
        condition: values of settings, and facts of the data.
        core: values by name without which it is another recipe.
        others: further values by name, from the sizes of the data.
    """

    name: str
    condition: Condition
    core: Values
    others: Callable[[Sizes], Values]


def _knowledge(sizes: Sizes) -> Values:
    """Return values for links of a knowledge graph, which change smoothly with its size.

    Few entities, or many triples of each, need less regularisation; few triples need smaller
    batches and more epochs. The rate falls to 0 over the epochs, so a score on the way says little
    about the last one, and no run stops early.
    """
    edges = max(sizes.edges, 1)
    n3 = min(0.05, 0.0215 * sizes.nodes**0.75 / edges**0.5)
    epochs = round(20 * (93_000 / edges) ** (1 / 3))
    return {
        "inverse": True,
        "optimizer": "adagrad",
        "lr": 0.1,
        "schedule": "linear",
        "patience": 0,
        "validate_every": 3,
        "embedding": 768,
        "n3": float(f"{n3:.2g}"),
        "batch_size": min(512, max(round(1.68 * edges**0.5), 1)),
        "epochs": min(50, max(20, epochs)),
    }


def _few_labels(sizes: Sizes) -> Values:
    """Return epochs for at least 90 steps, and patience for at least 30: a score of one step ago is
    noise.
    """
    return {"epochs": max(30, -(-90 // sizes.steps)), "patience": max(6, -(-30 // sizes.steps))}


def _of_model(name: str) -> Recipe:
    """Return the recipe of a model that has defaults of its own, for labels of nodes."""
    defaults = MODELS[name].defaults
    condition: Condition = {"task": NODES, "model": (name,), "types": (SEVERAL_TYPES,)}
    return Recipe(
        f"defaults of model {name!r}",
        condition,
        {},
        lambda sizes: {**defaults, **_few_labels(sizes)},
    )


OWN_PARTS = ("model", "optimizer", "schedule")  # the recipe of links has its own
RECIPES = (
    Recipe(
        "ComplEx-N3 (Lacroix, Usunier, Obozinski 2018), since edges have relations and nodes no "
        "features",
        {
            "task": LINK,
            "features": (NO_FEATURES,),
            "relations": (COLUMN,),
            **dict.fromkeys(OWN_PARTS, Others(OWN)),
        },
        {"model": "none", "decoder": "complex", "link_loss": "one-vs-all"},
        _knowledge,
    ),
    *(_of_model(name) for name, kind in MODELS.items() if kind.defaults),
)
"""A run takes the first one that goes with all that was chosen."""


def completed(settings: Settings, facts: Values, sizes: Sizes) -> tuple[Settings, str]:
    """Return settings with the values of a recipe for what was not chosen, and its name; "" where
    nothing changes.

    ``facts`` are those of ``_rules.FACTS``. A recipe is left out where a chosen setting is another
    than in its core, does not go with it, or would not be read.
    """
    for recipe in RECIPES:
        if not holds(recipe.condition, {**settings.by_name(), **facts}, unknown=False):
            continue
        if any(settings.chosen.get(name, value) != value for name, value in recipe.core.items()):
            continue
        values = {**recipe.core, **recipe.others(sizes)}
        # an optimiser of the user's own takes the place of a rate
        read = {
            name: value for name, value in values.items() if not unread(conditions_of(name), facts)
        }
        # a setting that was chosen may exclude one of the recipe, which then is none for this run
        try:
            complete = Settings(read, **settings.chosen)
        except ValueError:
            continue
        return complete, recipe.name if complete.chosen != settings.chosen else ""
    return settings, ""
