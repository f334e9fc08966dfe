"""The edges of a graph as link sampling asks for them: ends and relations by id, and all edges between two nodes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import LARGEST, Ints, as_array, check_one_of, describe, first_true
from nodeflow._base.types import Array, NumbersLike
from nodeflow._links.links import Links
from nodeflow._rows.rows import fetch_rows, whole_column
from nodeflow.graph import Graph
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._negative import Pairs


class SeedEdges:
    """The edges of a graph as seeds. Where several processes hold the graph, both methods are collective.

    Args:
        graph: the graph.
        relation: name of the edge column of relations; None for none.
        pairs: all pairs that are edges, which make ``between`` fast; None: the graph is asked.
    """

    def __init__(self, graph: Graph, relation: str | None, pairs: Pairs | None) -> None:
        self._graph, self._relation, self._pairs = graph, relation, pairs
        if relation is not None:
            relations_of(graph, relation)  # checks them

    def links(self, ids: Ints) -> Links:
        """Return ends and relations of edges, int64 ``[k]`` each."""
        src, dst = self._graph.find_edges(ids)
        relation = None
        if self._relation is not None:
            relation = fetch_rows(self._graph.edata[self._relation], torch.from_numpy(ids)).numpy().astype(np.int64)
        return Links(src.numpy(), relation, dst.numpy())

    def between(self, u: Ints, v: Ints) -> Ints:
        """Return the ids of all edges between ``u[i]`` and ``v[i]``, in either direction, int64; some repeatedly."""
        if self._pairs is not None:
            return self._pairs.between(u, v)
        ends = torch.from_numpy(np.stack([np.concatenate([u, v]), np.concatenate([v, u])]))
        return self._graph.edge_ids(ends[0], ends[1], return_uv=True)[2].numpy()


def relations_of(graph: Graph, name: str) -> Array:
    """Return the relation of every edge, checked: whole numbers from 0.

    Of a graph that lies on several processes, those of the edges held here.
    """
    held = graph.held
    column = as_array(whole_column(held.edata[name]), f"the edge column {name!r}")
    if column.shape != (held.num_edges,) or column.dtype.kind not in "iu":
        raise TypeError(f"relation: the edge column {name!r} must hold an integer per edge, got {describe(column)}")
    if (i := first_true((column < 0) | (column >= LARGEST))) is not None:
        edge = held.whole.edge_ids_of(np.array([i]))[0]
        raise ValueError(
            f"relation: the edge column {name!r} must hold numbers from 0, but edge {edge} has {column[i]}"
        )
    return column


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
