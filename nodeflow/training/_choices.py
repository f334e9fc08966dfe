"""Samplers, models, decoders, losses, optimisers and schedules by name: what rules say of each, and
the settings of each group. It imports no torch, so that the command's help comes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeflow.training._fields import (
    ComputedDefault,
    Group,
    Numbers,
    checks,
    count,
    flag,
    number,
    one_of,
    setting,
    table,
)


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
    defaults: Mapping[str, Any] = field(default_factory=dict)


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


def is_own(name: object) -> bool:
    """Whether the setting ``model`` is "module:factory", a factory of the user's own, which is
    imported.
    """
    return isinstance(name, str) and ":" in name and all(name.partition(":")[::2])


def check_import(in_file: object, chosen: object) -> None:
    """Raise ValueError where a file names a model to import and nobody has ``chosen`` one beside it
    (None).
    """
    if is_own(in_file) and chosen is None:
        raise ValueError(
            f"its model is {in_file!r}, and no file chooses what is imported, which runs code: if "
            f"you trust that module, name it too: --model {in_file} for the command, "
            f"model={in_file!r} in Python"
        )


def check_model(value: object, name: str) -> str:
    """Return the name of a model; raises ValueError for another value."""
    if is_own(value):
        return str(value)
    try:
        checks().check_one_of(value, name, MODELS)
    except ValueError as error:
        raise ValueError(f"{error}; a model of your own is given as module:factory") from None
    return str(value)


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Group):
    """The model, and the rows that enter it."""

    name: str = setting(
        "sage",
        "the model, or module:factory, a function of your own with the arguments of "
        "nodeflow.nn.GraphSAGE",
        check_model,
        name="model",
        metavar=f"{{{','.join(MODELS)}}}",
    )
    inputs: str = one_of(
        "auto features embedding both",
        "what enters the model: the features of the nodes, a learned row per node, or both beside "
        "each other; auto: features where there are any",
    )
    embedding: int = count(
        64,
        "width of the learned rows of nodes, and of the rows of links that a model gives",
        least=1,
    )
    hidden: int = count(256, "width of hidden layers", least=1)
    dropout: float = number(
        ComputedDefault(
            "0.6; 0 with model none", lambda group: 0.0 if group.name == "none" else 0.6
        ),
        "probability that an entry of a hidden layer, with model none of a row, is set to zero",
        below=1,
    )
    norm: str = one_of("none batch layer", "normalisation of hidden layers")
    residual: bool = flag("add the rows of the layer before to the rows of every layer")
    options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the model, as name=value", name="model_options"
    )


@dataclass(frozen=True, kw_only=True)
class LinkSettings(Group):
    """Decoder, loss and negatives of task link."""

    decoder: str = one_of(DECODERS, "the score of a pair of rows", default="distmult")
    decoder_options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the decoder, as name=value", name="decoder_options"
    )
    inverse: bool = flag(
        "a source is asked for as the destination of an inverse relation of its own"
    )
    loss: str = one_of(
        (*LOSSES_OF_PAIRS, *ALL_NODES),
        "the loss of scores against negatives; or, with model none, a softmax over all nodes: "
        "one-vs-all: a mean over edges and sides; k-vs-all: over the other ends and relations that "
        "edges have, each with all its answers",
        name="link_loss",
    )
    negatives: int = count(256, "negatives per edge and side that is replaced", least=1)
    negative_law: str = one_of("uniform degree", "how negatives are drawn")
    chunk: int = count(256, "edges of a batch that share their negatives", least=1)
    corrupt: str = one_of(
        "destination source both", "the end that negatives replace", default="both"
    )
    margin: float = number(1.0, "the margin of losses that have one")
    n3: float = number(0.0, "weight of the N3 regularisation, the cubed norms of a triple's rows")
    temperature: float = number(1.0, "how much more hard negatives weigh")


def _check_fanouts(value: Any, name: str) -> tuple[int | dict[str, int], ...]:
    """Return checked fanouts; those by relation have it as text, which files can hold."""
    from nodeflow.sampling import check_fanouts

    return tuple(
        {
            " ".join(key) if isinstance(key, tuple) else str(key): number
            for key, number in each.items()
        }
        if isinstance(each, dict)
        else each
        for each in check_fanouts(value)
    )


@dataclass(frozen=True, kw_only=True)
class SamplerSettings(Group):
    """The sampler, and the size of its batches."""

    name: str = one_of(
        SAMPLERS,
        "how batches are drawn; cv: control variates, where one or two drawn neighbours are "
        "enough, at the price of a stored row per node and hidden layer",
        name="sampler",
    )
    fanouts: tuple[int | dict[str, int], ...] = setting(
        ComputedDefault(
            "by the sampler, for two layers", lambda group: (SAMPLERS[group.name].fanout,) * 2
        ),
        "one number per layer in flow order (10 10 or 10,10), so the last belongs to the seeds: "
        "neighbours drawn per node, -1 = all; or numbers by relation (writes=5,cites=10 10), for "
        "ladies by node type; for fastgcn and ladies nodes drawn per layer; saint and cluster read "
        "only how many layers there are; cv computes the first layer from all neighbours, whatever "
        "its number",
        _check_fanouts,
        action=Numbers,
        nargs="+",
        metavar="K",
    )
    batch_size: int = count(
        1024,
        "seeds per batch; for saint nodes drawn per subgraph, for cluster nodes per batch, both "
        "about",
        least=1,
    )
    groups: int = count(
        0,
        "parts into which METIS cuts the graph (needs pymetis), so that seeds of a part come "
        "together and batches read fewer rows; 0: seeds come in a random order",
    )
    mix: int = count(
        4,
        "groups whose seeds are shuffled together: 1 most local, as many as groups fully random",
        least=1,
    )
    options: dict[str, Any] = table(  # noqa: RUF009
        "further arguments of the sampler, as name=value", name="sampler_options"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        from nodeflow.training._samplers import METHODS

        METHODS[self.name].check(self)


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings(Group):
    """The optimiser, and the schedule of the learning rate."""

    name: str = one_of(OPTIMIZERS, "the optimiser", name="optimizer")
    lr: float = number(0.003, "learning rate, the highest of the schedule", above=0)
    weight_decay: float = number(0.0, "weight decay of the optimiser")
    schedule: str = one_of(
        SCHEDULES,
        "how the learning rate falls over the epochs: not, along a cosine, or linearly, to 0",
    )
    warmup: float = number(0.0, "epochs over which the learning rate rises from 0")
    clip: float = number(0.0, "largest norm of the gradient of all weights; 0: any")
    accumulate: int = count(1, "batches whose gradients are added up before a step", least=1)
