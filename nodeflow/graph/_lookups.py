"""The edges between pairs of nodes, and the ends of edges."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, overload

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.calls import checked
from nodeflow._base.checks import Ints, as_ids, check_pairs
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import IdsLike
from nodeflow._edges.stored import Between, Stored


class Lookups(Frozen):
    """Base of graphs: edges by their ends, and ends by the ids of edges."""

    __slots__ = ()
    indptr: Ints
    indices: Stored
    _positions: Lazy[Stored | None]

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """Number of nodes."""

    @property
    @abstractmethod
    def num_edges(self) -> int:
        """Number of edges."""

    @abstractmethod
    def csc(self) -> tuple[Ints, Stored, Stored | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges as stored; edge ids None means the
        position.
        """

    def has_edges(self, u: IdsLike, v: IdsLike) -> Tensor:
        """Return whether there is an edge ``u[i] -> v[i]``, bool ``[k]``, for nodes ``u`` and
        ``v``, ``[k]`` each.

        Raises ValueError when ``u`` and ``v`` differ in length, IndexError for an id that is no
        node.

        >>> from nodeflow import Graph
        >>> Graph.from_edges([0, 0], [1, 2]).has_edges([0, 1], [1, 0])
        tensor([ True, False])
        """
        return self._between(u, v).exist()

    @overload
    def edge_ids(self, u: IdsLike, v: IdsLike, *, return_uv: Literal[False] = False) -> Tensor: ...
    @overload
    def edge_ids(
        self, u: IdsLike, v: IdsLike, *, return_uv: Literal[True]
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    @checked
    def edge_ids(
        self, u: IdsLike, v: IdsLike, *, return_uv: bool = False
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Return the id of the edge ``u[i] -> v[i]``, int64 ``[k]``, for nodes ``u`` and ``v``,
        ``[k]`` each.

        Where several edges join the pair, this is the lowest of their ids.

        Args:
            u, v: the nodes.
            return_uv: return ``(src, dst, edge ids)`` of all edges of every pair instead, pair by
                pair with ascending ids; a pair without edges then adds nothing.

        Raises ValueError when there is no edge for a pair (unless ``return_uv``) or when ``u`` and
        ``v`` differ in length, IndexError for an id that is no node.

        >>> from nodeflow import Graph
        >>> graph = Graph.from_edges([0, 0, 1], [1, 1, 0])
        >>> graph.edge_ids([1, 0], [0, 1])
        tensor([2, 0])
        >>> graph.edge_ids([0, 1], [1, 1], return_uv=True)
        (tensor([0, 0]), tensor([1, 1]), tensor([0, 1]))
        """
        between = self._between(u, v)
        return between.every() if return_uv else between.lowest()

    def find_edges(self, eid: IdsLike) -> tuple[Tensor, Tensor]:
        """Return ``(src, dst)``, int64 ``[k]`` each, of the edges with the ids ``eid``.

        The first call makes an array with the position of every edge id, unless edge ids are
        positions already. Raises IndexError for an id that is no edge.

        >>> from nodeflow import Graph
        >>> Graph.from_edges([0, 2], [1, 0]).find_edges([1])
        (tensor([2]), tensor([0]))
        """
        ids = as_ids(eid, "eid", self.num_edges, "edge")
        positions = self._positions.get()
        at = ids if positions is None else positions[ids]
        dst = np.searchsorted(self.indptr, at, side="right") - 1
        return torch.from_numpy(self.indices[at].astype(np.int64)), torch.from_numpy(dst)

    def _between(self, u: IdsLike, v: IdsLike) -> Between:
        src = as_ids(u, "u", self.num_nodes)
        dst = as_ids(v, "v", self.num_nodes)
        check_pairs(src, dst, "u and v", "pair of nodes")
        return self._edges_between(src, dst)

    def _edges_between(self, u: Ints, v: Ints) -> Between:
        return Between.of(u, v, self.num_nodes, *self.csc())
