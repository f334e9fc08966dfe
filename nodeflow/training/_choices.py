"""Samplers, models, decoders, losses, optimisers and schedules by name, with what rules say of each;
and the conditions under which settings are read. It imports no torch, so that the command's help
comes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Values: TypeAlias = Mapping[str, Any]
"""Values by name: of settings, of facts, or what a file of a run holds."""


@dataclass(frozen=True)
class ModelTraits:
    """What rules and recipes read of a model.

    Args:
        has_history: whether there is a form of it with a history.
        symmetric: whether the form with a history takes sums with symmetric normalisation and
            self-loops, else means.
        typed: whether the model reads the types of edges.
        by_schema: whether the model also takes ``schema``, and rows of width ``hidden``.
        defaults: values of settings for labels in graphs of several node types, where they are not
            the usual ones.
    """

    has_history: bool = False
    symmetric: bool = False
    typed: bool = False
    by_schema: bool = False
    defaults: Values = field(default_factory=dict)


# rows of several types differ in size, and a layer normalisation makes them alike
_TYPED = {"hidden": 128, "dropout": 0.5, "norm": "layer", "lr": 0.001}
_RGCN = {"hidden": 64, "dropout": 0.7, "norm": "layer"}

MODELS = {
    "sage": ModelTraits(has_history=True),
    "gcn": ModelTraits(has_history=True, symmetric=True),
    "gin": ModelTraits(),
    "gat": ModelTraits(),
    "gatv2": ModelTraits(),
    "rgcn": ModelTraits(typed=True, defaults=_RGCN),
    "hgt": ModelTraits(by_schema=True, defaults=_TYPED),
    "typed": ModelTraits(by_schema=True, defaults=_TYPED),
    "none": ModelTraits(),
}
"""The models by the setting ``model``; ``_models`` makes them."""


@dataclass(frozen=True)
class SamplerTraits:
    """What rules read of a sampler.

    Args:
        fanout: the usual number per layer.
        by_node: whether seeds are nodes; else they are numbers of subgraphs, and outputs are those
            of all their nodes.
        validates_fully: whether validation uses full neighbourhoods by default.
        estimates: whether the outputs estimate those from full neighbourhoods; else a model is only
            run on batches.
        has_history: whether the method keeps a history, whose age is in the records of epochs.
        why_whole: why batches cannot come from partitions of the graph; empty where they can.
        by_type: whether a fanout may be numbers by relation, or by node type where nodes of a layer
            are drawn.
        keeps_edges: whether edges of batches are edges of the graph, so that they have relations.
        in_torch: whether batches can be drawn by operations of torch, on the model's device.
    """

    fanout: int = 10
    by_node: bool = True
    validates_fully: bool = False
    estimates: bool = True
    has_history: bool = False
    why_whole: str = ""
    by_type: bool = False
    keeps_edges: bool = True
    in_torch: bool = False


_OF_LAYERS = SamplerTraits(fanout=512, validates_fully=True, by_type=True, in_torch=True)

SAMPLERS = {
    "neighbor": SamplerTraits(by_type=True, in_torch=True),
    "labor": SamplerTraits(by_type=True, in_torch=True),
    "bernoulli": SamplerTraits(by_type=True),
    "fastgcn": _OF_LAYERS,
    "ladies": _OF_LAYERS,
    "random-walk": SamplerTraits(estimates=False, keeps_edges=False),
    "saint": SamplerTraits(
        by_node=False,
        validates_fully=True,
        why_whole="its weights of nodes and edges are those of draws from the whole graph",
    ),
    "cluster": SamplerTraits(
        by_node=False,
        validates_fully=True,
        why_whole="it cuts the whole graph into parts of its own",
    ),
    "shadow": SamplerTraits(
        estimates=False, by_type=True, why_whole="its subgraphs would end where partitions do"
    ),
    "cv": SamplerTraits(has_history=True, in_torch=True),
}
"""The samplers by the setting ``sampler``; ``_samplers`` makes them."""

DECODERS = ("dot", "distmult", "complex", "bilinear", "transe", "rotate", "mlp")
HAS_N3 = ("distmult", "complex")
"""Decoders with the N3 regularisation."""
LOSSES_OF_PAIRS = ("softmax", "logistic", "margin", "self-adversarial")
"""Losses of links against negatives."""
ALL_NODES = ("one-vs-all", "k-vs-all")
"""Losses without negatives: a softmax over all nodes."""
OPTIMIZERS = ("adam", "adamw", "sgd", "adagrad", "rmsprop")
SCHEDULES = ("constant", "cosine", "linear")


class Others:
    """All values but these."""

    def __init__(self, *values: object) -> None:
        self.values = values

    def __contains__(self, value: object) -> bool:
        return value not in self.values


Condition = Mapping[str, tuple[object, ...] | Others]
"""Values that settings, and facts of the data, must have, by name."""
Conditions = tuple[Condition, ...]
"""Alternatives, one of which must hold."""
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


def _names(table: Values, trait: str, *, has: bool = True) -> tuple[str, ...]:
    """Return the names of the models, or samplers, that have a trait, or have it not."""
    return tuple(name for name, traits in table.items() if bool(getattr(traits, trait)) == has)


# values that several rules and settings share, each under the noun that it stands for
LINK = ("link",)
NODES = Others("link")
CLASSES = ("auto", "classification")
IN_TORCH = _names(SAMPLERS, "in_torch")
SUBGRAPHS = _names(SAMPLERS, "by_node", has=False)
HISTORY = _names(SAMPLERS, "has_history")
NO_EDGES = _names(SAMPLERS, "keeps_edges", has=False)
NO_ESTIMATE = _names(SAMPLERS, "estimates", has=False)
SYMMETRIC = _names(MODELS, "symmetric")
TYPED = _names(MODELS, "typed")
BY_SCHEMA = _names(MODELS, "by_schema")
# models of the user's own are not among those that are known to read no types
READS_TYPES = Others(*_names(MODELS, "typed", has=False))
HISTORIES = _names(MODELS, "has_history")
NO_HISTORY = Others(*HISTORIES, OWN)
HETEROGENEOUS = (SEVERAL_RELATIONS, SEVERAL_TYPES)
ENCODER = Others("none")
NO_ENCODER = ("none",)
BUFFER = ("partitions",)
IN_FILES = Others("memory")
ONE_VS_ALL = ALL_NODES
SAMPLED = Others(*ALL_NODES)

BY_NODE: Condition = {
    "task": NODES,
    "sampler": Others(*SUBGRAPHS),
    "storage": Others(*BUFFER),
    "graph": (WHOLE,),
}
