"""Models, decoders and link losses of training runs by name, and their settings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from nodeflow import nn as layers
from nodeflow._base.checks import blaming, check_one_of, describe
from nodeflow._schema.schema import Schema
from nodeflow.nn import DECODERS, Decoder
from nodeflow.training._fields import (
    ComputedDefault,
    Group,
    count,
    flag,
    number,
    one_of,
    setting,
    table,
)


@dataclass(frozen=True)
class Kind:
    """A model by name: ``make(in_features, hidden, out_features, num_layers, dropout=..., ...)``,
    or ``with_history``.

    Args:
        weighted: further arguments for batches whose edges have different estimator weights.
        sparse: whether the model takes sparse features.
        symmetric: whether the form with a history takes sums with symmetric normalisation and
            self-loops, else means.
        typed: whether the model reads the types of edges.
        by_schema: whether the model also takes ``schema``, and rows of width ``hidden``.
        pieces: whether its products are those of ``ops.linear_sum``, which every processor makes of
            bfloat16 in no more time than of float32.
        own: whether it is a factory of the user's.
        defaults: values of settings for labels in graphs of several node types, where they are not
            the usual ones.
    """

    make: Callable[..., nn.Module]
    weighted: Mapping[str, Any] = field(default_factory=dict)
    sparse: bool = True
    with_history: Callable[..., nn.Module] | None = None
    symmetric: bool = False
    typed: bool = False
    by_schema: bool = False
    pieces: bool = False
    own: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)


# rows of several types differ in size, and a layer normalisation makes them alike
_TYPED = {"hidden": 128, "dropout": 0.5, "norm": "layer", "lr": 0.001}
_RGCN = {"hidden": 64, "dropout": 0.7, "norm": "layer"}


def _of_schema(make: Callable[..., nn.Module]) -> Kind:
    """Return the model whose convolutions are ``make(width, schema, ...)``."""

    def model(
        width: int, hidden: int, out: int, num_layers: int, *, schema: Schema, **options: Any
    ) -> nn.Module:
        between = {
            name: options.pop(name) for name in ("dropout", "norm", "residual") if name in options
        }
        return layers.TypedModel(
            width, [make(width, schema, **options) for _ in range(num_layers)], out, **between
        )

    return Kind(model, sparse=False, by_schema=True, defaults=_TYPED)


def _sage_by_relation(
    width: int, schema: Schema, *, reduce: str = "sum", **options: Any
) -> nn.Module:
    return layers.TypedConv(
        {name: layers.SAGEConv(width, width, **options) for name in schema.relations}, reduce
    )


MODELS = {
    "sage": Kind(
        layers.GraphSAGE, {"weighted": True}, with_history=layers.VRGraphSAGE, pieces=True
    ),
    "gcn": Kind(
        layers.GCN, {"degrees": "parent"}, with_history=layers.VRGCN, symmetric=True, pieces=True
    ),
    "gin": Kind(layers.GIN, sparse=False),
    "gat": Kind(layers.GAT),
    "gatv2": Kind(layers.GATv2),
    "rgcn": Kind(layers.RGCN, typed=True, defaults=_RGCN),
    "hgt": _of_schema(
        lambda width, schema, **options: layers.HGTConv(width, width, schema, **options)
    ),
    "typed": _of_schema(_sage_by_relation),
    "none": Kind(nn.Identity, sparse=False),
}
"""The models by the setting ``model``; an entry here adds one."""


def kind_of(name: str) -> Kind:
    """Return the model ``name``, one of ``MODELS`` or "module:factory"; raises ValueError where
    there is none.
    """
    if name in MODELS:
        return MODELS[name]
    module, _, attribute = _check_model(name, "model").partition(":")
    with blaming(f"model {name!r} cannot be imported", ImportError, AttributeError):
        make = getattr(importlib.import_module(module), attribute)
    if not callable(make):
        raise ValueError(
            f"model {name!r} must be a class or a function that returns a model, got "
            f"{describe(make)}"
        )
    return Kind(make, own=True)


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


def _check_model(value: object, name: str) -> str:
    if is_own(value):
        return str(value)
    try:
        check_one_of(value, name, MODELS)
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
        _check_model,
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


@dataclass(frozen=True)
class ModelFacts:
    """Arguments of a model that come from data and batches.

    ``weighted``: whether edges have different weights. ``schema``: ``graph.schema.to_json()``, for
    models that read it.
    """

    in_features: int
    out_features: int
    weighted: bool
    history: bool = False
    num_relations: int = 0
    edge_type: str = ""
    schema: dict[str, Any] | None = None


def build_model(settings: ModelSettings, num_layers: int, facts: ModelFacts) -> nn.Module:
    """Return a new model with random weights; raises ValueError for one that cannot be made with
    these settings.
    """
    kind = kind_of(settings.name)
    options: dict[str, Any] = {"dropout": settings.dropout}
    if settings.norm != "none":
        options["norm"] = settings.norm
    if settings.residual:
        options["residual"] = True
    if facts.weighted:
        options |= kind.weighted
    schema = None if facts.schema is None else Schema.from_json(facts.schema)
    if kind.typed:
        options |= {"num_relations": schema or facts.num_relations, "edge_type": facts.edge_type}
    if kind.by_schema:
        options["schema"] = schema
    make = kind.with_history if facts.history and kind.with_history else kind.make
    with blaming(
        f"model {settings.name!r} cannot be made: with norm={settings.norm!r}, "
        f"residual={settings.residual} and model_options {list(settings.options)}",
        TypeError,
    ):
        return make(
            facts.in_features,
            settings.hidden,
            facts.out_features,
            num_layers,
            **{**options, **settings.options},
        )


LINK_LOSSES: dict[str, Callable[[LinkSettings, Tensor, Tensor, Callable[[], Tensor]], Tensor]] = {
    "softmax": lambda _, positive, negative, chance: layers.softmax_loss(
        positive, negative, log_proposal=chance()
    ),
    "logistic": lambda _, positive, negative, chance: layers.logistic_loss(positive, negative),
    "margin": lambda link, positive, negative, _: layers.margin_loss(
        positive, negative, margin=link.margin
    ),
    "self-adversarial": lambda link, positive, negative, _: layers.self_adversarial_loss(
        positive, negative, margin=link.margin, temperature=link.temperature
    ),
}
"""Losses by the setting ``link_loss``, of scores ``[n]`` against those of negatives ``[n, K]``; an
entry here adds one.

The last argument gives the logarithms of the probabilities with which the negatives were drawn.
"""

ALL_NODES = ("one-vs-all", "k-vs-all")
"""Losses without negatives: a softmax over all nodes."""


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
        (*LINK_LOSSES, *ALL_NODES),
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

    def build_decoder(self, width: int, num_relations: int) -> Decoder:
        """Return a new decoder for rows of ``width``; ``num_relations`` 0: without relations."""
        if self.inverse and not num_relations:
            raise ValueError(
                "inverse relations need an edge column of relations: name it with edge_type"
            )
        options = {"inverse": True} if self.inverse else {}
        with blaming(
            f"decoder {self.decoder!r} cannot be made: with decoder_options "
            f"{list(self.decoder_options)}",
            TypeError,
        ):
            return DECODERS[self.decoder](
                width, num_relations or None, **options, **self.decoder_options
            )
