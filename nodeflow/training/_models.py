"""Models, decoders and link losses of training runs by name, and their settings."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from nodeflow import nn as layers
from nodeflow._core.base.checks import blaming, describe
from nodeflow._core.schema import Schema
from nodeflow.nn import DECODERS, Decoder
from nodeflow.training._choices import MODELS as TRAITS, ModelTraits, Values
from nodeflow.training._train_options import LinkSettings, ModelSettings, check_model


@dataclass(frozen=True)
class ModelKind:
    """A model by name: ``make(in_features, hidden, out_features, num_layers, dropout=..., ...)``,
    or ``with_history``.

    Args:
        traits: what rules say of it.
        weighted: further arguments for batches whose edges have different estimator weights.
        sparse: whether the model takes sparse features.
        pieces: whether its products are those of ``ops.linear_sum``, which every processor makes of
            bfloat16 in no more time than of float32.
        own: whether it is a factory of the user's.
    """

    make: Callable[..., nn.Module]
    traits: ModelTraits = field(default_factory=ModelTraits)
    weighted: Values = field(default_factory=dict)
    sparse: bool = True
    with_history: Callable[..., nn.Module] | None = None
    pieces: bool = False
    own: bool = False


def _of_schema(name: str, make: Callable[..., nn.Module]) -> ModelKind:
    """Return the model ``name``, whose convolutions are ``make(width, schema, ...)``."""

    def model(
        width: int, hidden: int, out: int, num_layers: int, *, schema: Schema, **options: Any
    ) -> nn.Module:
        # what stands between layers is the model's, the others are of its convolutions
        between = {
            key: options.pop(key) for key in ("dropout", "norm", "residual") if key in options
        }
        convs = [make(width, schema, **options) for _ in range(num_layers)]
        return layers.TypedModel(width, convs, out, **between)

    return ModelKind(model, TRAITS[name], sparse=False)


def _sage_by_relation(
    width: int, schema: Schema, *, reduce: str = "sum", **options: Any
) -> nn.Module:
    return layers.TypedConv(
        {name: layers.SAGEConv(width, width, **options) for name in schema.relations}, reduce
    )


MODELS = {
    "sage": ModelKind(
        layers.GraphSAGE,
        TRAITS["sage"],
        {"weighted": True},
        with_history=layers.VRGraphSAGE,
        pieces=True,
    ),
    "gcn": ModelKind(
        layers.GCN, TRAITS["gcn"], {"degrees": "parent"}, with_history=layers.VRGCN, pieces=True
    ),
    "gin": ModelKind(layers.GIN, sparse=False),
    "gat": ModelKind(layers.GAT),
    "gatv2": ModelKind(layers.GATv2),
    "rgcn": ModelKind(layers.RGCN, TRAITS["rgcn"]),
    # its two widths are one: rows of every type enter by a map of their own
    "hgt": _of_schema(
        "hgt", lambda width, schema, **options: layers.HGTConv(width, width, schema, **options)
    ),
    "typed": _of_schema("typed", _sage_by_relation),
    "none": ModelKind(nn.Identity, sparse=False),
}
"""The models by the setting ``model``; an entry here, and in ``_choices``, adds one."""


def kind_of(name: str) -> ModelKind:
    """Return the model ``name``, one of ``MODELS`` or "module:factory"; raises ValueError where
    there is none.
    """
    if name in MODELS:
        return MODELS[name]
    module, _, attribute = check_model(name, "model").partition(":")
    # the module is the user's: check_import has seen to it that no file chose it
    with blaming(f"model {name!r} cannot be imported", ImportError, AttributeError):
        make = getattr(importlib.import_module(module), attribute)
    if not callable(make):
        raise ValueError(
            f"model {name!r} must be a class or a function that returns a model, got "
            f"{describe(make)}"
        )
    return ModelKind(make, own=True)


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
    # others are left out, because a factory of the user's need not take them
    if settings.norm != "none":
        options["norm"] = settings.norm
    if settings.residual:
        options["residual"] = True
    if facts.weighted:
        options |= kind.weighted
    # as JSON in a file of weights
    schema = None
    if facts.schema is not None:
        schema = Schema.from_json(facts.schema)
    if kind.traits.typed:
        options |= {"num_relations": schema or facts.num_relations, "edge_type": facts.edge_type}
    if kind.traits.by_schema:
        options["schema"] = schema
    make = kind.make
    if facts.history and kind.with_history:
        make = kind.with_history
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
            **(options | settings.options),
        )


def loss_of_pairs(link: LinkSettings, positive: Tensor, negative: Tensor) -> Tensor:
    """Return the loss of scores ``[n]`` against those of negatives ``[n, K]``, whose chances it does
    not read.
    """
    if link.loss == "logistic":
        return layers.logistic_loss(positive, negative)
    if link.loss == "margin":
        return layers.margin_loss(positive, negative, margin=link.margin)
    return layers.self_adversarial_loss(
        positive, negative, margin=link.margin, temperature=link.temperature
    )


def build_decoder(link: LinkSettings, width: int, num_relations: int) -> Decoder:
    """Return a new decoder for rows of ``width``; ``num_relations`` 0: without relations."""
    if link.inverse and not num_relations:
        raise ValueError(
            "inverse relations need an edge column of relations: name it with edge_type"
        )
    options = {}
    if link.inverse:
        options = {"inverse": True}
    with blaming(
        f"decoder {link.decoder!r} cannot be made: with decoder_options "
        f"{list(link.decoder_options)}",
        TypeError,
    ):
        return DECODERS[link.decoder](
            width, num_relations or None, **options, **link.decoder_options
        )
