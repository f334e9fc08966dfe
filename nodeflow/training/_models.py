"""The models of training runs, by name, and factories of the user's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import nn

from nodeflow._base.checks import check_one_of, describe
from nodeflow.nn import GAT, GCN, GIN, RGCN, VRGCN, GATv2, GraphSAGE, VRGraphSAGE

if TYPE_CHECKING:
    from nodeflow.training._settings import Settings


@dataclass(frozen=True)
class Kind:
    """A model by name: how it is made.

    Args:
        make: called as ``make(in_features, hidden, out_features, num_layers, dropout=..., ...)``.
        weighted: further arguments for batches whose edges have different estimator weights.
        sparse: whether the model takes sparse features.
        with_history: the form of the model for control variates, or None.
    """

    make: Callable[..., nn.Module]
    weighted: Mapping[str, Any] = field(default_factory=dict)
    sparse: bool = True
    with_history: Callable[..., nn.Module] | None = None


def _no_model(*shape: Any, **options: Any) -> nn.Module:
    raise ValueError("model 'none' is for task 'link': rows of nodes that the decoder compares")


MODELS = {
    "sage": Kind(GraphSAGE, {"weighted": True}, with_history=VRGraphSAGE),
    "gcn": Kind(GCN, {"degrees": "parent"}, with_history=VRGCN),
    "gin": Kind(GIN, sparse=False),
    "gat": Kind(GAT),
    "gatv2": Kind(GATv2),
    "rgcn": Kind(RGCN),
    "none": Kind(_no_model, sparse=False),
}


def kind_of(name: str) -> Kind:
    """Return the model ``name``, one of ``MODELS`` or "module:factory".

    Raises ValueError for another name, a module that cannot be imported or has no such function.
    """
    if name in MODELS:
        return MODELS[name]
    if ":" not in name:
        check_model(name, "model")
    module, _, attribute = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"model {name!r} cannot be imported: {error}") from error
    if not callable(make):
        raise ValueError(f"model {name!r} must be a class or a function that returns a model, got {describe(make)}")
    return Kind(make)


def check_model(value: object, name: str) -> None:
    """Raise unless ``value`` is the name of a model, or has the form "module:factory"."""
    if isinstance(value, str) and ":" in value and all(value.partition(":")[::2]):
        return
    try:
        check_one_of(value, name, MODELS)
    except ValueError as error:
        raise ValueError(f"{error}; a model of your own is given as module:factory") from None


def build_model(
    settings: Settings, in_features: int, out_features: int, *, weighted: bool, num_relations: int = 0,
    edge_type: str = "", history: bool = False,
) -> nn.Module:  # fmt: skip
    """Return a new model of ``settings``, with random weights.

    Args:
        in_features, out_features: widths of its inputs and outputs.
        weighted: whether the edges of batches have different estimator weights.
        num_relations, edge_type: number of edge types and their column, for a relational model.
        history: whether it reads a history (control variates).

    Raises ValueError for a model that cannot be made with these settings.
    """
    kind, shape = kind_of(settings.model), (in_features, settings.hidden, out_features, settings.num_layers)
    options: dict[str, Any] = {"dropout": settings.dropout}
    if settings.norm != "none":
        options["norm"] = settings.norm
    if settings.residual:
        options["residual"] = True
    make = kind.make
    if history:
        for name in ("norm", "residual"):
            if name in options:
                raise ValueError(
                    f"sampler 'cv' trains models without {name}, got {name}={options[name]!r}; leave it out"
                )
        make = kind.with_history or make
    elif weighted:
        options |= kind.weighted
    if make is RGCN:
        options |= {"num_relations": num_relations, "edge_type": edge_type}
    try:
        return make(*shape, **{**options, **settings.model_options})
    except TypeError as error:
        given = ", ".join(settings.model_options) or "none"
        raise ValueError(
            f"model {settings.model!r} cannot be made: {error} (norm={settings.norm!r}, residual={settings.residual}, "
            f"model_options: {given})"
        ) from error
