"""Questions about the edges of a graph, answered from its arrays of in-edges or out-edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, _All, as_ids, first_true
from nodeflow._base.types import IdsLike
from nodeflow._edges.stored import Stored

Triple = tuple[Tensor, Tensor, Tensor]
"""Source, destination and id of edges, int64 ``[k]`` each."""


def degrees(indptr: Ints, v: IdsLike | _All, num_nodes: int) -> Tensor:
    """Return the number of edges in the rows ``v``, int64 ``[len(v)]``."""
    if isinstance(v, _All):
        return torch.from_numpy(np.diff(indptr))
    rows = as_ids(v, "v", num_nodes)
    return torch.from_numpy(indptr[rows + 1] - indptr[rows])


def edges_of(rows: Ints, indptr: Ints, indices: Stored, edge_ids: Stored | None) -> Triple:
    """Return ``(neighbours, rows, edge ids)`` of all edges in some rows, row by row."""
    chosen, position = kernels.csr.csr_rows(indptr, rows)
    edges = position if edge_ids is None else edge_ids[position]
    return tuple(map(_int64, (indices[position], np.repeat(rows, np.diff(chosen)), edges)))  # type: ignore[return-value]


class Between(NamedTuple):
    """All edges from ``u[i]`` to ``v[i]`` for every pair i of nodes: ``edges[first[i]:last[i]]``, ascending ids."""

    u: Ints
    v: Ints
    first: Ints
    last: Ints
    edges: Ints

    @classmethod
    def of(cls, u: Ints, v: Ints, num_nodes: int, indptr: Ints, indices: Stored, edge_ids: Stored | None) -> Between:
        """Look up the edges in the rows ``v`` of some arrays. Costs the degrees of the distinct rows, sorted."""
        rows, row = np.unique(v, return_inverse=True)
        chosen, position = kernels.csr.csr_rows(indptr, rows)
        edges = position if edge_ids is None else edge_ids[position].astype(np.int64)
        # one integer for each pair of nodes, so that pairs can be looked up in sorted ones
        pair = np.repeat(np.arange(len(rows)), np.diff(chosen)) * num_nodes + indices[position]
        order = np.lexsort((edges, pair))
        pair, edges = pair[order], edges[order]
        first, last = (np.searchsorted(pair, row * num_nodes + u, side) for side in ("left", "right"))
        return cls(u, v, first, last, edges)

    def exist(self) -> Tensor:
        """Return whether there is an edge, bool ``[num_pairs]``."""
        return torch.from_numpy(self.last > self.first)

    def lowest(self) -> Tensor:
        """Return the lowest edge id of every pair, int64 ``[num_pairs]``; ValueError for a pair without edges."""
        missing = self.last == self.first
        if (at := first_true(missing)) is not None:
            raise ValueError(
                f"there is no edge {self.u[at]} -> {self.v[at]} (pair {at} of {len(missing)}); ask has_edges(u, v) "
                "first, or pass return_uv=True for the edges that there are"
            )
        return torch.from_numpy(self.edges[self.first])

    def every(self) -> Triple:
        """Return ``(src, dst, edge ids)`` of all edges, pair by pair."""
        counts, edges = self.grouped()
        pair = np.repeat(np.arange(len(counts)), counts)
        return tuple(map(_int64, (self.u[pair], self.v[pair], edges)))  # type: ignore[return-value]

    def grouped(self) -> tuple[Ints, Ints]:
        """Return the number of edges of every pair, and the ids of all edges, pair by pair."""
        counts = self.last - self.first
        pair = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        return counts, self.edges[self.first[pair] + within]


def _int64(array: Stored) -> Tensor:
    return torch.from_numpy(array.astype(np.int64, copy=False))
