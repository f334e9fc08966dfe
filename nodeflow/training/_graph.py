"""The graph along whose edges messages go: directions, types of edges, and features in the form that a run reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow._rows.rows import is_sparse, whole_column
from nodeflow.distributed import DistributedGraph, DistributedRows
from nodeflow.graph import Graph
from nodeflow.storage import Rows
from nodeflow.training._features import FeatureRows, rows_in_file, stays_in_file
from nodeflow.transform import DEGREES, add_reverse_edges, degrees, is_symmetric, reverse

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
    types = whole_column(graph.held.edata[column])
    if types.ndim != 1 or types.is_floating_point() or (len(types) and int(types.min()) < 0):
        raise ValueError(f"edge column {column!r} must hold types from 0, one integer per edge, got {describe(types)}")
    return column


def relations_of(graph: Graph, edge_type: str) -> tuple[str, int]:
    """Return the column of edge types and their number, for a relational model; reversed edges have their own."""
    column = edge_types(graph, edge_type)
    if column is None:
        raise ValueError("model 'rgcn' needs an edge column with types from 0: name it with edge_type")
    types = whole_column(graph.held.edata[column])
    largest = np.array([int(types.max()) if len(types) else 0])
    return column, int(max(arrays[0][0] for arrays in graph.peers.gather("types of edges", [largest]))) + 1


def node_degrees(graph: Graph) -> dict[str, Tensor]:
    """Return the columns of ``transform.degrees``; collective for a graph that lies on several processes."""
    if graph.peers.size == 1:
        return degrees(graph)
    columns = zip(DEGREES, (graph.in_degrees(), graph.out_degrees()), strict=True)
    return {name: column.float() for name, column in columns}


def with_columns(graph: Graph, columns: Mapping[str, Tensor | Rows]) -> Graph:
    """Return a graph of the same edges with further node columns; nothing is copied or exchanged."""
    if isinstance(graph, DistributedGraph):
        same = DistributedGraph(graph.parts, graph.held.part, graph.peers)
        same.ndata.update({**graph.ndata, **columns})
        same.edata.update(graph.edata)
        return same
    indptr, indices, edge_ids = graph.csc()
    ndata: dict[str, Any] = {**graph.ndata, **columns}
    return Graph(indptr, indices, edge_ids=edge_ids, ndata=ndata, edata=graph.edata, copy=False)


def with_mean_weights(graph: Graph, name: str) -> Graph:
    """Return a graph that lies on several processes with one edge column, 1 / in-degree of the destination."""
    same = with_columns(graph, {})
    part: Any = same
    counts = np.diff(graph.held.csc()[0])
    weights = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    for column in list(same.edata):
        del same.edata[column]
    same.edata[name] = DistributedRows(part.peers, part.parts, "edge", name, torch.from_numpy(weights))
    return same
