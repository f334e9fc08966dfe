"""Checks of a link sampler's arguments."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_array, check_one_of, describe, first_true
from nodeflow._base.types import Array, Floats, NumbersLike
from nodeflow._edges.columns import edge_integers
from nodeflow._links.links import Links
from nodeflow._rows.rows import whole_column
from nodeflow.graph import Graph
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._temporal import time_column


def as_filter(value: bool | str, known: object, graph: Graph) -> bool | str:
    """Return ``filter_known`` of a link sampler, checked against its other settings: a bool, or "mark"."""
    if isinstance(value, str) and value != "mark":
        raise ValueError(f"filter_known must be False, True or 'mark', got {value!r}")
    if known is not None and not value:
        raise ValueError("known is what filter_known looks at, so pass filter_known=True or 'mark' too")
    if value and known is None and graph.peers.size > 1:
        raise TypeError(
            "filter_known looks at all edges of the graph, and this graph lies on several processes, of which each "
            "holds a part; pass known=, a table of known pairs that every process holds, or leave filter_known out"
        )
    return value if value == "mark" else bool(value)


def check_relations(graph: Graph, name: str) -> None:
    """Raise an error unless the edge column ``name`` holds relations: whole numbers from 0."""
    column = edge_integers(graph, name, "relation")
    if (i := first_true(column < 0)) is not None:
        edge = graph.held.whole.edge_ids_of(np.array([i]))[0]
        raise ValueError(
            f"relation: the edge column {name!r} must hold numbers from 0, but edge {edge} has {column[i]}"
        )


def as_exclude(value: str | None, sampler: SamplerBase, *, edges: bool) -> str | None:
    """Return ``exclude`` of a link sampler, checked; ``edges``: whether its seeds are edges."""
    check_one_of(value, "exclude", ("self", "reverse", None))
    if value == "self" and not edges:
        raise ValueError("exclude='self' is for seeds that are edges; for pairs take 'reverse'")
    if value is not None and not callable(getattr(sampler, "without_edges", None)):
        raise TypeError(
            f"exclude={value!r} needs a sampler that can leave edges out for one batch, but {type(sampler).__name__} "
            "has no without_edges; use exclude=None"
        )
    return value


def as_labels(value: NumbersLike | None, pairs: Links | None) -> Tensor | None:
    """Return ``labels`` of a link sampler, checked: a number per pair, in a tensor of its own."""
    if value is None:
        return None
    if pairs is None:
        raise ValueError("labels are of pairs, so pass pairs too; those of edges are a column of graph.edata")
    labels = torch.as_tensor(value).detach().clone()
    if len(labels) != len(pairs.src):
        raise ValueError(f"labels must have one entry per pair ({len(pairs.src)}), got {len(labels)}")
    return labels


def node_weights(graph: Graph, value: object) -> Floats:
    """Return weights of nodes, float64 ``[num_nodes]``, given as numbers or as the name of a node column."""
    name = "negatives"
    if isinstance(value, str):
        if value not in graph.ndata:
            raise ValueError(
                f"negatives must be 'uniform' or 'degree', the name of a node column, or a weight "
                f"per node, got {value!r}"
            )
        value, name = whole_column(graph.ndata[value]), f"negatives: the node column {value!r}"
    array = as_array(value, name)
    if array.dtype.kind not in "iuf" or array.shape != (graph.num_nodes,):
        raise ValueError(f"{name} must hold a number per node ({graph.num_nodes}), got {describe(array)}")
    weights: Floats = array.astype(np.float64)
    if (i := first_true(~(np.isfinite(weights) & (weights >= 0)))) is not None:
        raise ValueError(f"{name} must be finite and not negative, but node {i} has {weights[i]}")
    if not weights.any():
        raise ValueError(f"{name} must not be 0 for all nodes, since none could be drawn")
    return weights


def birth_times(sampler: SamplerBase, value: object) -> Array:
    """Return the time from which on each node exists, int64 or float64 ``[num_nodes]``."""
    graph = sampler.graph
    if value is None:
        column = getattr(sampler, "time", None)
        if not isinstance(column, str):
            raise TypeError(
                f"birth is missing: {type(sampler).__name__} has no column of edge times from which to tell when a "
                "node first has an edge; pass a time per node, or the name of a node column"
            )
        return _first_times(graph, column)
    if isinstance(value, str):
        value = whole_column(graph.ndata[value])
    array = as_array(value, "birth")
    if array.dtype.kind not in "iuf" or array.shape != (graph.num_nodes,) or np.isnan(array).any():
        raise ValueError(f"birth must hold a time per node ({graph.num_nodes}), got {describe(array)}")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _first_times(graph: Graph, column: str) -> Array:
    """The time of the first edge of every node in either direction; the largest number for a node without edges."""
    held, times = graph.held, time_column(graph, column)
    never = np.inf if times.dtype.kind == "f" else np.iinfo(np.int64).max
    births = np.full(graph.num_nodes, never, times.dtype)
    for ends in graph.find_edges(held.whole.edge_ids_of(np.arange(held.num_edges))):
        np.minimum.at(births, ends.numpy(), times)
    with graph.peers.together("times of first edges", exchanges=1):
        seen = np.flatnonzero(births != never)
        for nodes, first in graph.peers.gather("times of first edges", [seen, births[seen]]):
            births[nodes] = np.minimum(births[nodes], first)
    return births


def seed_times(sampler: SamplerBase, times: NumbersLike, size: int) -> Array:
    """Return the checked times of seeds ``[size]``."""
    sampler.refuse(times)
    when = as_array(times, "times")
    if when.dtype.kind not in "iuf":
        raise TypeError(f"times must be numbers, got {describe(times)}")
    if when.shape != (size,):
        raise ValueError(f"times must have one entry per seed edge ({size}), got shape {tuple(when.shape)}")
    if when.dtype.kind == "f" and (i := first_true(~np.isfinite(when))) is not None:
        raise ValueError(f"times must be finite, but times[{i}] is {when[i]}")
    return when
