"""Rules of settings in one table: where each is read, and which exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodeflow.training._choices import ALL_NODES, HAS_N3, MODELS, SAMPLERS

if TYPE_CHECKING:
    from nodeflow.graph import Graph


class Others:
    """All values but these."""

    def __init__(self, *values: object) -> None:
        self.values = values

    def __contains__(self, value: object) -> bool:
        return value not in self.values


Condition = Mapping[str, tuple[object, ...] | Others]
"""Values that settings, and facts of the data, must have, by name."""
FEATURES = "a data set with features"
NO_FEATURES = "a data set without features"
SOME_FEATURES = "a data set with features of some node types"
ONE_TYPE = "one type of nodes and edges"
SEVERAL_RELATIONS = "several relations"
SEVERAL_TYPES = "several node types"
WHOLE = "the whole graph in every process"
PARTS = "a part of the graph in every process"
COLUMN = "a column of relations"
NO_COLUMN = "no column of relations"
ONE = "one process"
SEVERAL = "several processes"
OWN = "of your own"
LOSS = "the loss of the settings"
OWN_LOSS = "a loss of your own"
FACTS = ("features", "types", "relations", "graph", "processes", "loss")
"""Facts of a run that are not settings. They, and the meaning of ``task`` "auto", are known when
the run begins.
"""

LINK = ("link",)
NODES = Others("link")
CLASSES = ("auto", "classification")
IN_TORCH = tuple(name for name, traits in SAMPLERS.items() if traits.in_torch)
SUBGRAPHS = tuple(name for name, traits in SAMPLERS.items() if not traits.by_node)
HISTORY = tuple(name for name, traits in SAMPLERS.items() if traits.has_history)
SYMMETRIC = tuple(name for name, kind in MODELS.items() if kind.symmetric)
NO_EDGES = tuple(name for name, traits in SAMPLERS.items() if not traits.keeps_edges)
NO_ESTIMATE = tuple(name for name, traits in SAMPLERS.items() if not traits.estimates)
TYPED = tuple(name for name, kind in MODELS.items() if kind.typed)
# models of the user's own are among these
READS_TYPES = Others(*(name for name in MODELS if name not in TYPED))
BY_SCHEMA = tuple(name for name, kind in MODELS.items() if kind.by_schema)
HETEROGENEOUS = (SEVERAL_RELATIONS, SEVERAL_TYPES)
_HISTORIES = [name for name, kind in MODELS.items() if kind.has_history]
NO_HISTORY = Others(*_HISTORIES, OWN)
ENCODER = Others("none")
NO_ENCODER = ("none",)
BUFFER = ("partitions",)
IN_FILES = Others("memory")
ONE_VS_ALL = ALL_NODES
SAMPLED = Others(*ALL_NODES)

_BY_NODE: Condition = {
    "task": NODES,
    "sampler": Others(*SUBGRAPHS),
    "storage": Others(*BUFFER),
    "graph": (WHOLE,),
}

READ: dict[str, tuple[Condition, ...]] = {
    "groups": (_BY_NODE,),
    "mix": ({**_BY_NODE, "groups": Others(0)},),
    "[link]": ({"task": LINK},),
    "edge_type": ({"task": LINK}, {"model": READS_TYPES}),
    "embedding": (
        {"inputs": ("embedding", "both")},
        {"inputs": ("auto",), "features": (NO_FEATURES, SOME_FEATURES)},
        {"task": LINK, "model": ENCODER},
    ),
    "hidden": ({"model": Others("none", OWN)}, {"model": (OWN,), "types": (SEVERAL_TYPES,)}),
    **dict.fromkeys(("norm", "residual", "model_options"), ({"model": Others("none", OWN)},)),
    "dropout": ({"model": Others(OWN)},),
    **dict.fromkeys(("sampler", "fanouts", "sampler_options"), ({"model": ENCODER},)),
    "label_smoothing": (
        {"task": CLASSES, "loss": (LOSS,)},
        {"task": LINK, "link_loss": ONE_VS_ALL},
    ),
    "class_weights": ({"task": CLASSES},),
    "validate": ({"task": NODES, "sampler": Others(*NO_ESTIMATE)},),
    **dict.fromkeys(("negatives", "negative_law", "chunk", "corrupt"), ({"link_loss": SAMPLED},)),
    "workers": ({"task": NODES}, {"link_loss": SAMPLED}),
    "margin": ({"link_loss": ("margin", "self-adversarial"), "loss": (LOSS,)},),
    "temperature": ({"link_loss": ("self-adversarial",), "loss": (LOSS,)},),
    **dict.fromkeys(("lr", "weight_decay"), ({"optimizer": Others(OWN)},)),
    "warmup": ({"schedule": Others(OWN)},),
    "n3": ({"decoder": HAS_N3},),
    "memory": ({"storage": Others("memory", "file")}, {"storage": ("file",), "graph": (WHOLE,)}),
    "partitions": ({"storage": BUFFER}, {"graph": (PARTS,)}),
    "pack": ({"storage": ("lookahead",)},),
    "space": ({"storage": ("lookahead",), "pack": Others("")},),
    "slots": ({"storage": BUFFER},),
    "order": ({"storage": BUFFER},),
    "share": ({"graph": (PARTS,)},),
    "halo": ({"graph": (PARTS,)},),
    "sample_on": (
        {"task": NODES, "sampler": IN_TORCH, "graph": (WHOLE,)},
        {"link_loss": SAMPLED, "model": ENCODER, "sampler": IN_TORCH, "graph": (WHOLE,)},
    ),
}
"""By setting or [group]: the alternatives under which a run reads it. Settings that are not here
are always read.
"""

NEEDED: tuple[tuple[Condition, str, str], ...] = (
    ({"storage": BUFFER}, "partitions", "the folder that nodeflow partition wrote"),
    ({"storage": BUFFER}, "slots", "how many partitions are in memory at a time"),
)
"""Settings that must be given where a condition holds, and what they are."""

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
        f"it needs a model with a history, {' or '.join(_HISTORIES)}",
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
        "partitions.PartitionBuffer in a loop of your own",
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
        ({"storage": BUFFER, "sampler": (name,)}, each.why_whole)
        for name, each in SAMPLERS.items()
        if each.why_whole
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

    columns = features_of(graph)
    nodes = len(graph.schema.nodes)
    features = FEATURES if len(columns) == nodes else SOME_FEATURES if columns else NO_FEATURES
    relations = SEVERAL_RELATIONS if len(graph.schema.relations) > 1 else ONE_TYPE
    return {"features": features, "types": SEVERAL_TYPES if nodes > 1 else relations}


def where_read(name: str, group: str = "") -> str:
    """Return the values with which a setting is read, also those for its group, as text; empty for
    always.
    """
    conditions = [READ[key] for key in (f"[{group}]", name) if key in READ]
    return ", and with ".join(_either(alternatives) for alternatives in conditions)


def unread(name: str, group: str, values: Mapping[str, object]) -> str:
    """Return why a run of these values ignores a setting of a group, as text; empty if it reads it,
    or might.

    ``values``: settings by name, and as many of ``FACTS`` as are known.
    """
    for key in (f"[{group}]", name):
        conditions = READ.get(key, ({},))
        if not any(holds(condition, values, unknown=True) for condition in conditions):
            rest = {
                one: values[one] for condition in conditions for one in condition if one in values
            }
            return f"is read with {_either(conditions)}, and this run has {_and(_shown(rest))}"
    return ""


def check_values(values: Mapping[str, object]) -> None:
    """Raise ValueError for settings that are missing, or exclude each other; ``values`` as for
    ``unread``.
    """
    for condition, name, what in NEEDED:
        if holds(condition, values, unknown=False) and not values[name]:
            raise ValueError(
                f"{_and(_shown({one: values[one] for one in condition}))} needs {name}: {what}; "
                "got none"
            )
    for condition, why in EXCLUDED:
        if holds(condition, values, unknown=False):
            first, *rest = _shown({one: values[one] for one in condition}).values()
            raise ValueError(f"{first} does not go with {' and '.join(rest)}: {why}")


def holds(condition: Condition, values: Mapping[str, object], *, unknown: bool) -> bool:
    """Return whether settings, and facts, have the values of a condition; ``unknown`` says so of
    missing ones.
    """
    return all(
        values[name] in allowed if name in values else unknown
        for name, allowed in condition.items()
    )


def _either(conditions: tuple[Condition, ...]) -> str:
    several = [
        _and({one: _allowed(one, condition[one]) for one in condition}) for condition in conditions
    ]
    return ", or with ".join(several)


def _shown(values: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value) if name in FACTS else f"{name} {value!r}" for name, value in values.items()
    }


def _allowed(name: str, allowed: tuple[object, ...] | Others) -> str:
    if isinstance(allowed, Others):
        return f"{name} other than {' and '.join(map(repr, allowed.values))}"
    return (
        " or ".join(map(str, allowed))
        if name in FACTS
        else f"{name} {' or '.join(map(repr, allowed))}"
    )


def _and(words: Mapping[str, str]) -> str:
    return " and ".join(words.values())
