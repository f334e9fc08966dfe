"""Which settings need or exclude each other, and whether a run reads one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nodeflow.training._choices import (
    BUFFER,
    BY_SCHEMA,
    ENCODER,
    FACTS,
    FEATURES,
    HETEROGENEOUS,
    HISTORIES,
    HISTORY,
    IN_FILES,
    LINK,
    NO_EDGES,
    NO_ENCODER,
    NO_FEATURES,
    NO_HISTORY,
    NODES,
    ONE_TYPE,
    ONE_VS_ALL,
    OWN_LOSS,
    PARTS,
    SAMPLERS,
    SEVERAL,
    SEVERAL_RELATIONS,
    SEVERAL_TYPES,
    SOME_FEATURES,
    SUBGRAPHS,
    SYMMETRIC,
    TYPED,
    WHOLE,
    Condition,
    Conditions,
    Others,
    Values,
)

if TYPE_CHECKING:
    from nodeflow.graph import Graph

NEEDED = {
    "partitions": "the folder that nodeflow partition wrote",
    "slots": "how many partitions are in memory at a time",
}
"""What storage "partitions" needs."""

EXCLUDED: tuple[tuple[Condition, str], ...] = (
    (
        {"model": NO_ENCODER, "task": NODES},
        "it stands for rows of nodes that the decoder of task 'link' compares",
    ),
    (
        {"link_loss": ONE_VS_ALL, "model": ENCODER},
        "it scores all nodes in every step, so it needs model 'none'",
    ),
    (
        {"link_loss": ONE_VS_ALL, "loss": (OWN_LOSS,)},
        "it has no negatives, which a loss of your own takes",
    ),
    ({"class_weights": ("balanced",), "loss": (OWN_LOSS,)}, "these weigh the loss of the task"),
    ({"sampler": SUBGRAPHS + HISTORY, "task": LINK}, "seeds must be nodes, and no history is kept"),
    (
        {"class_weights": ("seeds",), "sampler": SUBGRAPHS},
        "its batches have all nodes of a subgraph",
    ),
    ({"validate": ("sampled",), "sampler": SUBGRAPHS}, "its batches have all nodes of a subgraph"),
    (
        {"sampler": HISTORY, "model": NO_HISTORY},
        f"it needs a model with a history, {' or '.join(HISTORIES)}",
    ),
    ({"norm": Others("none"), "sampler": HISTORY}, "models with a history have none"),
    ({"residual": (True,), "sampler": HISTORY}, "models with a history have none"),
    (
        {"storage": IN_FILES, "sampler": HISTORY},
        "it reads the features of all nodes; take storage 'memory'",
    ),
    (
        {"storage": IN_FILES, "model": NO_ENCODER},
        "the features of all nodes are compared; take storage 'memory'",
    ),
    (
        {"storage": IN_FILES, "inputs": ("embedding",)},
        "no features are read; take storage 'memory'",
    ),
    (
        {"storage": IN_FILES, "features": (NO_FEATURES,)},
        "no features are read; take storage 'memory'",
    ),
    (
        {"storage": BUFFER, "inputs": ("both",)},
        "the learned rows of all nodes lie in memory; take inputs 'features'",
    ),
    (
        {"storage": BUFFER, "task": LINK},
        "negatives are drawn among all nodes; take another storage, or a "
        "distributed.PartitionBuffer in a loop of your own",
    ),
    (
        {"model": NO_ENCODER, "types": (SEVERAL_TYPES,)},
        "rows of several types enter by maps; take model 'typed'",
    ),
    (
        {"sampler": NO_EDGES, "model": BY_SCHEMA},
        "its edges have no relations; take sampler 'neighbor'",
    ),
    (
        {"sampler": NO_EDGES, "model": TYPED, "types": HETEROGENEOUS},
        "its edges have no relations; take another",
    ),
    (
        {"sampler": HISTORY, "types": HETEROGENEOUS},
        "its history has one sum per node; take sampler 'neighbor'",
    ),
    (
        {"storage": BUFFER, "features": (SOME_FEATURES,)},
        "the learned rows of types without any lie in memory; take storage 'cached'",
    ),
    (
        {"inputs": ("both",), "types": (SEVERAL_TYPES,)},
        "each type enters by one map; take inputs 'auto'",
    ),
    ({"inputs": ("both",), "model": BY_SCHEMA}, "each type enters by one map; take inputs 'auto'"),
    *(
        ({"storage": BUFFER, "sampler": (name,)}, traits.why_whole)
        for name, traits in SAMPLERS.items()
        if traits.why_whole
    ),
    (
        {"storage": BUFFER, "processes": (SEVERAL,)},
        "their buffers would hold different states; give each a part instead: nodeflow partition "
        "--for processes, and --partitions without --storage",
    ),
    (
        {"sampler": SUBGRAPHS, "processes": (SEVERAL,)},
        "a batch is one subgraph, and those of processes are several",
    ),
    (
        {"sampler": HISTORY, "processes": (SEVERAL,), "graph": (WHOLE,)},
        "each process would write the history for its own share only; give each a part of the "
        "graph, and so of the history: nodeflow partition --for processes",
    ),
    (
        {"sampler": HISTORY, "model": SYMMETRIC, "graph": (PARTS,)},
        "its sums have self-loops, which parts have not; take model 'sage'",
    ),
    (
        {"storage": ("lookahead",), "graph": (PARTS,)},
        "rows that processes hold are fetched by all together, and their plans differ; take "
        "storage 'cached'",
    ),
)
"""Values that exclude each other, and why."""


def facts_of_graph(graph: Graph) -> dict[str, str]:
    """Return which facts hold of the columns and the schema of a graph."""
    from nodeflow.datasets import features_of

    num_columns = len(features_of(graph))
    num_types = len(graph.schema.nodes)
    features = NO_FEATURES
    if num_columns:
        features = SOME_FEATURES
        if num_columns == num_types:
            features = FEATURES
    # several node types imply several relations, so the more special fact is named
    types = ONE_TYPE
    if num_types > 1:
        types = SEVERAL_TYPES
    elif len(graph.schema.relations) > 1:
        types = SEVERAL_RELATIONS
    return {"features": features, "types": types}


def where_read(*conditions: Conditions) -> str:
    """Return the values with which a setting is read, where all conditions hold, as text; empty for
    always.
    """
    return ", and with ".join(_either(several) for several in conditions if several != ({},))


def unread(conditions: Iterable[Conditions], values: Values) -> str:
    """Return why a run of these values ignores a setting that it reads where all conditions hold, as
    text; empty if it reads it, or might.

    ``values``: settings by name, and as many of ``FACTS`` as are known.
    """
    # a fact that is not known yet may still hold, so it refuses nothing
    for several in conditions:
        if not any(holds(condition, values, unknown=True) for condition in several):
            names = dict.fromkeys(name for condition in several for name in condition)
            run = " and ".join(_said(name, values[name]) for name in names if name in values)
            return f"is read with {_either(several)}, and this run has {run}"
    return ""


def check_values(values: Values) -> None:
    """Raise ValueError for settings that are missing, or exclude each other; ``values`` as for
    ``unread``.
    """
    for name, meaning in NEEDED.items():
        if values["storage"] in BUFFER and not values[name]:
            raise ValueError(f"storage 'partitions' needs {name}: {meaning}; got none")
    # a fact that is not known yet excludes nothing: all is asked again when the facts are there
    for condition, why in EXCLUDED:
        if holds(condition, values, unknown=False):
            first, *others = [_said(name, values[name]) for name in condition]
            raise ValueError(f"{first} does not go with {' and '.join(others)}: {why}")


def holds(condition: Condition, values: Values, *, unknown: bool) -> bool:
    """Return whether settings, and facts, have the values of a condition; ``unknown`` says so of
    missing ones.
    """
    return all(
        values[name] in allowed if name in values else unknown
        for name, allowed in condition.items()
    )


def _either(conditions: Conditions) -> str:
    return ", or with ".join(map(_condition, conditions))


def _condition(condition: Condition) -> str:
    return " and ".join(map(_allowed, condition, condition.values()))


def _allowed(name: str, values: tuple[object, ...] | Others) -> str:
    if isinstance(values, Others):
        return f"{name} other than {' and '.join(map(repr, values.values))}"
    return _said(name, *values)


def _said(name: str, *values: object) -> str:
    """Return a setting with its values; facts are words that need no name."""
    if name in FACTS:
        return " or ".join(map(str, values))
    return f"{name} {' or '.join(map(repr, values))}"
