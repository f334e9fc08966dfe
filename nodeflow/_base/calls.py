"""Errors of calls that do not fit a signature: they name the class, what is meant, and what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

_WIDTHS = {
    **dict.fromkeys(("in_channels", "in_feats", "in_dim", "in_size"), ("in_features",)),
    **dict.fromkeys(("out_channels", "out_feats", "out_dim", "out_size", "num_classes"), ("out_features",)),
    **dict.fromkeys(("hidden_channels", "n_hidden", "hidden_feats", "hidden_dim", "h_feats"), ("hidden",)),
}
_SIZES = ("fanouts", "layer_sizes", "num_neighbors")
_WORDS = {
    **_WIDTHS,
    **dict.fromkeys((*_SIZES, "fanout", "sizes", "num_samples", "num_neighbours", "nodes_per_layer"), _SIZES),
    **dict.fromkeys(("random_state", "random_seed", "rng", "generator"), ("seed",)),
    **dict.fromkeys(("probs", "weight_attr", "edge_weight"), ("prob", "weight")),
    **dict.fromkeys(("layers", "num_hops", "hops", "num_layers", "num_steps"), ("num_flows", *_SIZES)),
    **dict.fromkeys(("time_attr", "times"), ("time",)),
    **dict.fromkeys(("neg_ratio", "num_negs", "num_neg_samples", "num_negative_samples"), ("num_negatives",)),
    **dict.fromkeys(("input_nodes", "nids", "nid", "train_nid", "indices", "node_ids"), ("seeds",)),
    **dict.fromkeys(("num_rels", "num_relation_types", "num_edge_types"), ("num_relations",)),
    **dict.fromkeys(("aggregator_type", "aggr", "aggregation", "reduce"), ("aggregator", "reduce")),
    **dict.fromkeys(("num_heads", "n_heads", "attention_heads"), ("heads",)),
}
"""Words of other libraries, and the arguments that they may stand for here."""


def renamed(name: str, takes: Collection[str]) -> str:
    """Return what a word of another library is called among the arguments ``takes``; empty where none is meant."""
    return next((word for word in _WORDS.get(name, ()) if word in takes and word != name), "")


def hint_of(name: str, takes: Collection[str]) -> str:
    """Return what an unknown argument is called here, or what arguments there are."""
    near = renamed(name, takes) or next(iter(get_close_matches(name, takes, 1)), "")
    if not near:
        return f"it takes {', '.join(takes)}"
    order = ", one number per flow in flow order (the last is for the seeds)" if near in _SIZES else ""
    return f"it is called {near}= here{order}"


class Explained(type):
    """The type of classes whose calls explain arguments that they do not take, and those that are missing.

    >>> class Model(metaclass=Explained):
    ...     def __init__(self, in_features, hidden=8): ...
    >>> Model(in_channels=4)
    Traceback (most recent call last):
    TypeError: Model got an unexpected keyword argument 'in_channels'; it is called in_features= here
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of ``__init__``, which ``inspect`` does not find behind ``__call__``."""
        _self, *parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature(parameters)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        try:
            return super().__call__(*args, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from within the call, which fits
            parameters, several = cls.__signature__.parameters, (inspect.Parameter.VAR_KEYWORD,)
            takes = [name for name, p in parameters.items() if p.kind not in several]
            others = len(takes) < len(parameters)  # passed on to something else, which checks them
            for name in options:
                if name not in takes and (not others or renamed(name, takes)):
                    words = f"got an unexpected keyword argument {name!r}; {hint_of(name, takes)}"
                    raise TypeError(f"{cls.__name__} {words}") from None
            try:
                cls.__signature__.bind(*args, **options)
            except TypeError as wrong:
                raise TypeError(f"{cls.__name__}: {wrong}; it takes {', '.join(takes)}") from None
            raise
