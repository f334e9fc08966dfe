"""Small graphs with columns like those of a given graph, and the code that makes a graph again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow.graph import Graph

LARGEST_SHOWN = 150  # edges of a graph that is printed as code
_SEED = 7  # of the numbers that choose rows of columns


def graph_like(
    like: Graph,
    ends: Ints,
    node_kinds: Ints,
    edge_kinds: Ints,
    *,
    extra: Mapping[str, Tensor] | None = None,
    shuffle: bool = False,
) -> Graph:
    """Return a graph of the types of another, whose relations all have the same edges.

    Args:
        like: the graph whose types, relations and columns it has.
        ends: sources and destinations of the edges of a relation, int64 ``[2, E]``.
        node_kinds: a number for every node of a type; nodes of one number have equal rows.
        edge_kinds: a number for every edge of a relation; edges of one number have equal rows.
        extra: further edge columns of ``like``.
        shuffle: take rows of any nodes and edges of ``like``, but numbers of about one size, rather
            than the first rows.
    """
    schema = like.schema
    graph = Graph.typed(
        dict.fromkeys(schema.nodes, len(node_kinds)),
        dict.fromkeys(schema.relations, (ends[0], ends[1])),
    )
    frames = [
        (graph.ndata, dense(like.ndata), node_kinds),
        (graph.edata, {**dense(like.edata), **(extra or {})}, edge_kinds),
    ]
    for name, nodes in graph.nodes.items():
        frames.append((nodes.data, dense(like.nodes[name].data), node_kinds))
    for relation, edges in graph.relations.items():
        frames.append((edges.data, dense(like.relations[relation].data), edge_kinds))
    for frame, columns, kinds in frames:
        # relations have the same edges, so the kinds repeat for each
        index = np.resize(kinds, frame.num_rows)
        for name, column in columns.items():
            if shuffle:
                rows = _usual_rows(column)
            else:
                rows = np.arange(len(column))
            if len(rows):
                row_of = np.resize(rows, kinds.max(initial=0) + 1)
                frame[name] = column.detach()[torch.from_numpy(row_of[index])]
            else:
                frame[name] = column.new_zeros(len(index), *column.shape[1:])
    return graph


def _usual_rows(column: Tensor) -> Ints:
    """The rows of a column in random order, without numbers that differ by large factors."""
    rows = np.random.default_rng(_SEED).permutation(len(column))
    if not column.is_floating_point() or column.ndim > 1:
        return rows
    # edges that are rare by their weights would need many draws to be seen
    values = column.detach().double().numpy()[rows]
    values = np.abs(values)
    middle = 0
    if values.any():
        middle = np.median(values[values > 0])
    usual: Ints = rows[(values == 0) | ((values >= middle / 2) & (values <= 2 * middle))]
    return usual


def dense(frame: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the columns of a frame that are dense tensors."""
    return {n: c for n, c in frame.items() if isinstance(c, Tensor) and c.layout == torch.strided}


def graph_code(graph: Graph) -> str:
    """Return a line of Python that makes a small graph again; a large one is only described."""
    if max(graph.num_edges, graph.num_nodes) > LARGEST_SHOWN:
        return f"graph = ...  # {graph}, as given"
    src, dst = graph.edges()
    frames = {"ndata": graph.ndata, "edata": graph.edata}
    nodes = {}
    for name, part in graph.nodes.items():
        nodes[name] = len(part)
        frames[f"nodes[{name!r}].data"] = part.data
    edges = {}
    for relation, edge_part in graph.relations.items():
        ids = slice(edge_part.ids.start, edge_part.ids.stop)
        sources = graph.nodes[relation[0]].to_local(src[ids])
        destinations = graph.nodes[relation[2]].to_local(dst[ids])
        edges[relation] = sources.tolist(), destinations.tolist()
        frames[f"relations[{relation}].data"] = edge_part.data
    # where there is one type only, its columns are those of all nodes, and are written once
    distinct = {id(frame): name for name, frame in reversed(frames.items())}
    updates = ""
    for name in reversed(distinct.values()):
        if dense(frames[name]):
            updates += f"; graph.{name}.update({_columns(frames[name])})"
    return f"graph = Graph.typed({nodes}, {edges}){updates}"


def _columns(frame: Mapping[str, Any]) -> str:
    """The text of a dict of columns."""
    usual = (torch.float32, torch.int64, torch.bool)
    texts = []
    for name, column in dense(frame).items():
        is_usual = column.numel() and column.dtype in usual
        kind = ""
        if not is_usual:
            kind = f", dtype={column.dtype}"
        texts.append(f"{name!r}: torch.tensor({column.tolist()}{kind})")
    return f"{{{', '.join(texts)}}}"
