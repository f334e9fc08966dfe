"""The edge arrays along which samplers look up neighbours: all edges, the ones a filter left, or sorted in some way."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow.graph._graph import Graph

NOTHING: Ints = np.zeros(0, np.int64)
"""No positions."""


class Edges(Frozen):
    """Edges grouped in rows: a row per node, or ``rows_per_node`` of them (a row per node and edge type).

    At a position between ``indptr[r]`` and ``indptr[r + 1]``, ``near`` holds the neighbour and ``edge_ids`` the edge's
    id (None: the position itself). ``patch`` says which edges are left out for a while (see ``without``). Read-only
    numpy arrays.
    """

    __slots__ = ("_places", "edge_ids", "indptr", "near", "patch", "rows_per_node")
    indptr: Ints
    near: Any
    edge_ids: Any
    rows_per_node: int
    patch: Patch | None
    _places: Lazy[Ints]

    def __init__(self, indptr: Ints, near: Any, edge_ids: Any, *, rows_per_node: int = 1) -> None:
        places = Lazy(lambda: _inverse(edge_ids))
        ids = None if edge_ids is None else _read_only(edge_ids)
        self._set(
            indptr=_read_only(indptr), near=_read_only(near), edge_ids=ids, rows_per_node=rows_per_node, patch=None,
            _places=places,
        )  # fmt: skip

    @property
    def num_rows(self) -> int:
        """Number of rows: nodes times rows per node."""
        return len(self.indptr) - 1

    @property
    def place_type(self) -> type[np.signedinteger[Any]]:
        """The narrowest integer that holds every position."""
        return np.int32 if len(self.near) < 2**31 else np.int64

    def rows_of(self, nodes: Ints) -> Ints:
        """Return the rows of nodes, node by node."""
        if self.rows_per_node == 1:
            return nodes
        rows: Ints = (nodes[:, None] * self.rows_per_node + np.arange(self.rows_per_node)).ravel()
        return rows

    def ids(self, positions: Ints) -> Ints:
        """Return the edge ids at positions, int64."""
        if self.edge_ids is None:
            return positions.astype(np.int64, copy=False)
        found: Ints = self.edge_ids[positions].astype(np.int64, copy=False)
        return found

    def positions_of(self, eid: Ints) -> Ints:
        """Return the positions of edges of the whole graph, by edge id."""
        return eid if self.edge_ids is None else self._places.get()[eid]

    def parent_eid(self, positions: Ints) -> Tensor:
        """Return the edge ids at positions, as a tensor."""
        return torch.from_numpy(self.ids(positions))

    def by_position(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column that has an entry per edge id in the order of the positions; shared where it can be."""
        return column if self.edge_ids is None else column[self.edge_ids]

    def keep(self, mask: NDArray[np.bool_]) -> Edges:
        """Return the edges whose ids ``mask`` ``[num_edges]`` has."""
        kept = np.flatnonzero(self.by_position(mask))
        return self._moved(np.searchsorted(kept, self.indptr), kept, self.rows_per_node)

    def by_type(self, types: Ints, num_types: int) -> Edges:
        """Return the edges with a row per node and type; ``types`` ``[num_edges]`` are by edge id, below num_types."""
        row = np.repeat(np.arange(self.num_rows) * num_types, np.diff(self.indptr)) + self.by_position(types)
        indptr, order = kernels.csr.sort_by_destination(row, self.num_rows * num_types)
        return self._moved(indptr, order, num_types)

    def sorted_by(self, key: NDArray[Any]) -> Edges:
        """Return the edges with every row in ascending order of ``key`` ``[num_edges]``, ties in the present order."""
        first = np.argsort(self.by_position(key), kind="stable")
        row = np.repeat(np.arange(self.num_rows), np.diff(self.indptr))[first]
        return self._moved(
            self.indptr, first[kernels.csr.sort_by_destination(row, self.num_rows)[1]], self.rows_per_node
        )

    def without(self, eid: Ints) -> Edges:
        """Return the same arrays with a ``patch`` for the rows that have edges ``eid``: these rows without them."""
        places = eid
        if self.edge_ids is not None:
            known = self._places.get()
            places = known[eid[eid < len(known)]]
        out = np.unique(places[places >= 0])  # a filter may have left some out already
        patched = Edges(self.indptr, self.near, self.edge_ids, rows_per_node=self.rows_per_node)
        patched._set(_places=self._places, patch=Patch(self, out))
        return patched

    def _moved(self, indptr: Ints, order: Ints, rows_per_node: int) -> Edges:
        if self.edge_ids is None:  # ids are positions
            ids = order.astype(self.place_type)
        else:
            ids = self.edge_ids[order]
        return Edges(indptr, self.near[order], ids, rows_per_node=rows_per_node)


class Patch(Frozen):
    """Rows that lack edges for a while.

    ``out`` are the positions left out, and ``rows`` the rows that have them, both ascending. ``edges`` has these rows
    only, without those positions; its own positions are ``positions`` of the whole.
    """

    __slots__ = ("_excerpt", "out", "rows")
    rows: Ints
    out: Ints
    _excerpt: Lazy[tuple[Edges, Ints]]

    def __init__(self, whole: Edges, out: Ints) -> None:
        row = np.searchsorted(whole.indptr, out, side="right") - 1
        rows = np.unique(row)

        def excerpt() -> tuple[Edges, Ints]:
            indptr, positions = kernels.csr.csr_rows(whole.indptr, rows)
            stays = np.ones(len(positions), np.bool_)
            stays[indptr[np.searchsorted(rows, row)] + out - whole.indptr[row]] = False
            kept = np.flatnonzero(stays)
            positions = positions[kept]
            return Edges(np.searchsorted(kept, indptr), whole.near[positions], whole.ids(positions)), positions

        self._set(rows=rows, out=out, _excerpt=Lazy(excerpt))  # which costs the degrees of the rows: not all need it

    @property
    def edges(self) -> Edges:
        """The excerpt."""
        return self._excerpt.get()[0]

    @property
    def positions(self) -> Ints:
        """Where the excerpt's positions are in the whole."""
        return self._excerpt.get()[1]


def edges_along(graph: Graph, direction: str) -> Edges:
    """Return the edge arrays of ``graph`` along which neighbours are looked up: "in" or "out", else ValueError."""
    if not isinstance(direction, str) or direction not in ("in", "out"):
        raise ValueError(f"direction must be 'in' or 'out', got {direction!r}")
    return Edges(*(graph.csc() if direction == "in" else graph.csr()))


def contains(ascending: Ints, values: Ints) -> NDArray[np.bool_]:
    """Return which of ``values`` are among ``ascending``."""
    if len(ascending) == 0:
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[at] == values
    return found


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: also what a graph has, so that kernels are compiled for one kind of arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def _inverse(edge_ids: Any) -> Ints:
    """The position of every edge id, -1 for edges that are not there."""
    size = int(edge_ids.max()) + 1 if len(edge_ids) else 0
    places = np.full(size, -1, np.int64)
    places[edge_ids] = np.arange(len(edge_ids))
    return places
