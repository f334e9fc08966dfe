"""Edges of a graph as triples (source, relation, destination), or pairs without relations."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._base.checks import ALL, LARGEST, _All, as_ids
from nodeflow._base.types import IdsLike
from nodeflow.graph import Graph


def triples_of(graph: Graph, relation: str | None = None, edges: IdsLike | _All = ALL) -> Tensor:
    """Return edges of a graph as triples (source, relation, destination), int64 ``[k, 3]``; pairs without a relation.

    Args:
        graph: the graph.
        relation: name of the edge column with a whole number per edge; None gives pairs (source, destination),
            ``[k, 2]``.
        edges: ids of edges, ``[k]``, in the order of the rows; all by default.

    Raises KeyError for a column that the graph has not, TypeError or ValueError for one that is not whole numbers,
    IndexError for an id that is no edge.

    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"kind": torch.tensor([0, 1, 1])})
    >>> triples_of(graph, "kind", [2, 0])
    tensor([[2, 1, 0],
            [0, 0, 1]])
    """
    src, dst = graph.edges() if isinstance(edges, _All) else graph.find_edges(edges)
    if relation is None:
        return torch.stack([src, dst], 1)
    column = torch.as_tensor(graph.edata[relation])
    if not isinstance(edges, _All):
        column = column[torch.from_numpy(as_ids(edges, "edges", graph.num_edges, "edge"))]
    kinds = as_ids(column, f"the edge column {relation!r}", LARGEST, "relation")
    return torch.stack([src, torch.from_numpy(kinds), dst], 1)
