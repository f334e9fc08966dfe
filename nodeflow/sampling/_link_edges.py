"""The edges of a graph as link sampling asks for them: ends and relations by id, and all edges between two nodes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, check_one_of
from nodeflow._base.types import Array, NumbersLike
from nodeflow._rows.rows import fetch_rows
from nodeflow.graph import Graph
from nodeflow.graph._edges import Edges, edges_along
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._known import Links, relations_of
from nodeflow.sampling._negative import Pairs


class SeedEdges(Protocol):
    """The edges of a graph as seeds. Where the graph lies on several processes, both methods are collective."""

    def links(self, ids: Ints) -> Links:
        """Return ends and relations of edges, int64 ``[k]`` each."""

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``, in either direction, int64; some repeatedly."""


class EdgesHere:
    """The edges of a graph that this process holds as a whole.

    Args:
        graph: the graph.
        relation: name of the edge column of relations; None for none.
        pairs: the pairs that are edges, which ``between`` needs.
    """

    def __init__(self, graph: Graph, relation: str | None, pairs: Pairs | None) -> None:
        self._edges: Edges = edges_along(graph, "in")
        self._relations: Array | None = None if relation is None else relations_of(graph, relation)
        self._pairs = pairs

    def links(self, ids: Ints) -> Links:
        """Return ends and relations of edges, int64 ``[k]`` each."""
        positions = self._edges.positions_of(ids)
        dst = np.searchsorted(self._edges.indptr, positions, side="right") - 1
        rel = None if self._relations is None else self._relations[ids].astype(np.int64)
        return Links(self._edges.indices[positions].astype(np.int64), rel, dst)

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``; see ``SeedEdges``."""
        assert self._pairs is not None
        return self._pairs.between(u, v)


class EdgesApart:
    """The edges of a graph that lies on several processes, asked of those that hold them."""

    def __init__(self, graph: Graph, relation: str | None) -> None:
        self._graph, self._relation = graph, relation
        if relation is not None:
            relations_of(graph, relation)  # checks those held here

    def links(self, ids: Ints) -> Links:
        """Return ends and relations of edges, int64 ``[k]`` each; collective."""
        src, dst = self._graph.find_edges(ids)
        rel = None
        if self._relation is not None:
            rel = fetch_rows(self._graph.edata[self._relation], torch.from_numpy(ids)).numpy().astype(np.int64)
        return Links(src.numpy(), rel, dst.numpy())

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``; see ``SeedEdges``; collective."""
        ends = torch.from_numpy(np.stack([np.concatenate([u, v]), np.concatenate([v, u])]))
        return self._graph.edge_ids(ends[0], ends[1], return_uv=True)[2].numpy()


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
