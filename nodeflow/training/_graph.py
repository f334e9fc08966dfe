"""The graph along whose edges messages go: directions, types of edges, and features in the form that a run reads."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow._rows.rows import is_sparse
from nodeflow.graph import Graph
from nodeflow.training._features import FeatureRows, rows_in_file, stays_in_file
from nodeflow.training._parts import with_columns
from nodeflow.transform import add_reverse_edges, is_symmetric, reverse

_TYPES = ("relation", "etype", "type", "kind")  # usual names of the column of edge types


def directed(graph: Graph, direction: str, edge_type: str = "") -> Graph:
    """Return the graph with the edges along which messages go: "in", its own, "out", their reverses, or "both".

    Parts of a graph are written along the edges of messages, and stay as they are.
    """
    if graph.peers.size > 1:
        return graph
    if direction == "out":
        return reverse(graph)
    if direction == "both" and not is_symmetric(graph):
        return _with_reverses(graph, edge_types(graph, edge_type))
    return graph


def with_features(graph: Graph, storage: str, dtype: torch.dtype) -> Graph:
    """Return the graph with features of a type; ``FeatureRows`` where they stay in a file, as ``storage`` says.

    Sparse features of which a quarter or more are not zero become dense: products of these are faster, and they take
    about the same memory.
    """
    x = graph.ndata.get("feat")
    if x is None:
        return graph
    # training reads partitions, and the rest of a run the features of the data set where they lie
    stay = stays_in_file(graph) if storage == "partitions" else storage != "memory"
    if not isinstance(x, Tensor) or stay:
        return with_columns(graph, {"feat": FeatureRows(rows_in_file(x, storage), dtype)})
    sparse = is_sparse(x)
    if sparse and (x.ndim != 2 or 4 * x.values().numel() < x.numel() or x.numel() == 0):
        return graph  # sparse products convert their values
    if x.dtype == dtype and not sparse:
        return graph
    return with_columns(graph, {"feat": (x.to_dense() if sparse else x).to(dtype)})


def _with_reverses(graph: Graph, column: str | None) -> Graph:
    """Return the graph with reverses, whose types in ``column`` are others than those of edges."""
    both = add_reverse_edges(graph)
    if column is not None and graph.num_edges:
        types = graph.edata[column].long()
        both.edata[column] = both.edata[column].long()
        both.edata[column][graph.num_edges :] += int(types.max()) + 1
    return both


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


def relations_of(graph: Graph, edge_type: str) -> tuple[str, int]:
    """Return the column of edge types and their number, for a relational model; reversed edges have their own."""
    column = edge_types(graph, edge_type)
    if column is None:
        raise ValueError("model 'rgcn' needs an edge column with types from 0: name it with edge_type")
    types = graph.edata[column]
    return column, int(types.max()) + 1 if len(types) else 1
