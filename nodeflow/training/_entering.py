"""What enters the network of a task: the graph along which messages go, rows of nodes, and types of edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow._rows.rows import is_collective
from nodeflow.datasets import Dataset
from nodeflow.graph import Graph
from nodeflow.training._features import FeatureRows, rows_in_file, stays_in_file
from nodeflow.training._methods import METHODS, with_columns
from nodeflow.training._models import MODELS, kind_of
from nodeflow.training._network import Inputs
from nodeflow.training._parts import check_held_features
from nodeflow.training._settings import Settings
from nodeflow.transform import add_reverse_edges, is_symmetric, reverse

_TYPES = ("relation", "etype", "type", "kind")  # usual names of the column of edge types


def message_graph(graph: Graph, settings: Settings, *, own_model: bool = False) -> Graph:
    """Return the graph along whose edges messages go, with float32 features; ``FeatureRows`` where they stay in a file.

    Sparse features of which a quarter or more are not zero become dense: products of these are faster, and they take
    about the same memory. With ``precision="bf16"`` the models of this package get dense features in bfloat16, to
    which products would round them in every step; a history, a decoder without a model, and models of a user's own
    get float32.
    """
    if graph.peers is None:  # parts are written along the edges of messages
        graph = directed(graph, settings.direction, settings.edge_type)
    x = graph.ndata.get("feat")
    if settings.storage != "memory" and (x is None or settings.inputs == "embedding"):
        why = "the data set has none" if x is None else "inputs 'embedding' reads none"
        raise ValueError(f"storage {settings.storage!r} is for features, and {why}; it must be 'memory' here")
    if x is None:
        return graph
    dtype = type_of_features(settings, own_model=own_model)
    # training reads partitions, and the rest of a run the features of the data set where they lie
    stay = stays_in_file(graph) if settings.storage == "partitions" else settings.storage != "memory"
    if not isinstance(x, Tensor) or stay:
        return with_columns(graph, {"feat": FeatureRows(rows_in_file(x, settings.storage), dtype)})
    sparse = x.layout != torch.strided
    if sparse and (x.ndim != 2 or 4 * x.values().numel() < x.numel() or x.numel() == 0):
        return graph  # sparse products convert their values
    if x.dtype == dtype and not sparse:
        return graph
    return with_columns(graph, {"feat": (x.to_dense() if sparse else x).to(dtype)})


def directed(graph: Graph, direction: str, edge_type: str = "") -> Graph:
    """Return the graph with the edges along which messages go: "in", its own, "out", their reverses, or "both"."""
    if direction == "out":
        return reverse(graph)
    if direction == "both" and not is_symmetric(graph):
        return _with_reverses(graph, edge_types(graph, edge_type))
    return graph


def type_of_features(settings: Settings, *, own_model: bool = False) -> torch.dtype:
    """Return the type of the features that enter the network."""
    own = own_model or settings.model not in MODELS
    keeps = own or settings.model == "none" or METHODS[settings.sampler].has_history
    return torch.float32 if keeps or settings.precision == "float32" else torch.bfloat16


def _with_reverses(graph: Graph, column: str | None) -> Graph:
    """Return the graph with reverses, whose types in ``column`` are others than those of edges."""
    both = add_reverse_edges(graph)
    if column is not None and graph.num_edges:
        types = graph.edata[column].long()
        both.edata[column] = both.edata[column].long()
        both.edata[column][graph.num_edges :] += int(types.max()) + 1
    return both


def inputs_of(dataset: Dataset, settings: Settings, stored: FeatureRows | None = None) -> Inputs:
    """Return what enters the model, as the settings say; ``stored``: features that are fetched by id."""
    x, kind = dataset.graph.ndata.get("feat") if stored is None else stored, settings.inputs
    if kind == "auto":
        kind = "embedding" if x is None else "features"
    width = 0
    if kind != "embedding":
        if x is None:
            raise ValueError(f"data set {dataset.name!r} has no features, so inputs must be 'embedding'; got {kind!r}")
        if is_collective(x):
            check_held_features(dataset.name, dataset.graph, x)
        else:
            check_features(dataset.name, x)
        width = x.shape[1]
    embedding = 0 if kind == "features" else settings.embedding
    return Inputs(dataset.graph.num_nodes, width, embedding, dense=not kind_of(settings.model).sparse)


def edge_types(graph: Graph, name: str) -> str | None:
    """Return the name of the edge column with the types of edges: ``name``, or a usual one; None where there is none.

    Raises ValueError for a name that is no edge column, or a column without types.
    """
    column = name or next((usual for usual in _TYPES if usual in graph.edata), None)
    if column is None:
        return None
    if column not in graph.edata:
        raise ValueError(f"edge_type={column!r} is no edge column; the graph has {', '.join(graph.edata) or 'none'}")
    types = graph.edata[column]
    if types.ndim != 1 or types.is_floating_point() or (len(types) and int(types.min()) < 0):
        raise ValueError(f"edge column {column!r} must hold types from 0, one integer per edge, got {describe(types)}")
    return column


def relations_of(graph: Graph, settings: Settings) -> dict[str, Any]:
    """Return the column of edge types and their number, for a relational model; reversed edges have their own."""
    if settings.model != "rgcn":
        return {}
    column = edge_types(graph, settings.edge_type)
    if column is None:
        raise ValueError("model 'rgcn' needs an edge column with types from 0: name it with edge_type")
    types = graph.edata[column]
    return {"edge_type": column, "num_relations": int(types.max()) + 1 if len(types) else 1}


def check_features(name: str, x: Tensor | FeatureRows) -> None:
    """Raise ValueError for features that are no rows, or not finite."""
    if len(x.shape) != 2:
        raise ValueError(f"data set {name!r} must have a row of features per node, got {tuple(x.shape)}")
    bad = None
    if not isinstance(x, Tensor):
        bad = x.first_bad()
    elif x.layout != torch.strided:
        wrong = (~torch.isfinite(x.values())).nonzero()
        # the row of a value is the last that begins at it or before
        bad = int(torch.searchsorted(x.crow_indices(), wrong[0, 0], right=True)) - 1 if len(wrong) else None
    else:
        for start in range(0, len(x), 65_536):  # part by part, for features that are larger than memory
            wrong = (~torch.isfinite(x[start : start + 65_536]).all(1)).nonzero()
            if len(wrong):
                bad = start + int(wrong[0, 0])
                break
    if bad is not None:
        raise ValueError(f"the features of data set {name!r} must be finite, but row {bad} has NaN or inf")
