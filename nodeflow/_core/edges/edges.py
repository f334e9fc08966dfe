"""The edge arrays along which samplers look up neighbours: all edges, those that a filter keeps, or
sorted ones.

Three numbers name an edge. In the order in which code meets them:

- its *position*, where it stands in ``indices``: rows are ranges of positions, and draws give them;
- its *edge id*, the index of its entries in edge columns here: ``edges.ids(positions)``;
- its *parent edge id*, which users see: ``edges.parent_eid(positions)``. It is the edge id, except
  in a part of a graph that lies on several processes: there ``whole`` turns one into the other.

For the in-edges of three nodes, made of the pairs ``0 -> 2, 0 -> 1, 1 -> 2`` in this order::

    indptr    0  0     1        3     row 2 has the positions 1 and 2
    position        0     1  2
    indices         0     0  1        the edge at position 1 comes from node 0
    edge_ids        1     0  2        its id is 0: it was the first pair

A column by edge id is put into the order of the positions by ``by_position``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    Ints,
    check_indptr,
    check_length,
    check_one_of,
    check_range,
)
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.edges.forms import COMPILED, Arrays, Form
from nodeflow._core.edges.node_rows import NodeRows
from nodeflow._core.edges.stored import integers, narrow, read_only
from nodeflow._core.peers.held_part import GraphOfPeers, WholeIds

NOTHING: Ints = np.zeros(0, np.int64)
"""No positions."""


class Edges(Frozen):
    """Edges grouped in rows: a row per node, or several of them, one for each kind of edges that it
    can have.

    Row r has the positions ``indptr[r]`` to ``indptr[r + 1] - 1``. The edge at position p leads to
    the neighbour ``indices[p]`` and has the id ``edge_ids[p]``. The arrays are read-only.

    Attributes:
        indptr, indices, edge_ids: as below; ``edge_ids`` None: the position is the id.
        patch: the edges that are left out for one batch (see ``without``); None: none.
        node_rows: which rows a node has here. whole_rows: which it has in the whole graph.
        whole: what ids the nodes and edges of a part have in the whole graph.
        form: how draws along the edges run. arrays: its arrays of the edges.

    Args:
        indptr: integers ``[rows + 1]``, non-decreasing, from 0 to the number of edges.
        indices: integers ``[edges]``, ids of nodes.
        edge_ids: integers ``[edges]``, distinct and not negative, or None.

    Raises TypeError for arrays that are not integers, ValueError for an ``indptr`` that does not
    fit, or edge ids that repeat, IndexError for a neighbour or an edge id out of range.

    >>> edges = Edges([0, 0, 2, 3], [0, 2, 1], None)
    >>> edges.num_rows, edges.indices[edges.indptr[1] : edges.indptr[2]]
    (3, array([0, 2]))
    """

    __slots__: tuple[str, ...] = (
        "_position_of",
        "edge_ids",
        "indices",
        "indptr",
        "node_rows",
        "patch",
        "whole",
    )
    __slots__ += ("arrays", "form", "whole_rows")
    arrays: Arrays
    form: Form
    indptr: Ints
    indices: Array
    edge_ids: Array | None
    node_rows: NodeRows
    whole_rows: NodeRows
    patch: Patch | None
    whole: WholeIds
    _position_of: Lazy[Ints]

    def __init__(self, indptr: IdsLike, indices: IdsLike, edge_ids: IdsLike | None) -> None:
        ends = integers(indptr, "indptr").astype(np.int64)
        neighbours = integers(indices, "indices").copy()
        check_indptr(ends, len(neighbours))
        check_range(neighbours, "indices", len(ends) - 1, "node")
        ids = None
        if edge_ids is not None:
            ids = integers(edge_ids, "edge_ids").copy()
            check_length(ids, "edge_ids", len(neighbours), "edge")
            check_range(ids, "edge_ids", np.iinfo(np.int64).max, "edge")
            if len(np.unique(ids)) != len(ids):
                raise ValueError("edge_ids must be distinct")
        self._start(ends, neighbours, ids)

    @classmethod
    def _trusted(
        cls, indptr: Ints, indices: Array, edge_ids: Array | None, **options: Any
    ) -> Edges:
        """Return Edges of arrays that need no checks, and which they share; see ``_start``."""
        edges = cls.__new__(cls)
        cls._start(edges, indptr, indices, edge_ids, **options)
        return edges

    def _start(
        self,
        indptr: Ints,
        indices: Array,
        edge_ids: Array | None,
        *,
        node_rows: NodeRows | None = None,
        whole_rows: NodeRows | None = None,
        position_of: Lazy[Ints] | None = None,
        whole: WholeIds | None = None,
    ) -> None:
        """Set all attributes: compiled loops, nothing left out; without ``whole`` all is here."""
        rows = node_rows or NodeRows.one_each(len(indptr) - 1)
        if whole_rows is None:
            if whole is None:
                whole_rows = rows
            else:
                whole_rows = NodeRows.one_each(whole.num_nodes)
        self._set(
            indptr=read_only(indptr),
            indices=read_only(indices),
            edge_ids=None if edge_ids is None else read_only(edge_ids),
            node_rows=rows,
            whole_rows=whole_rows,
            whole=whole or WholeIds(rows.num_nodes),
            patch=None,
            form=COMPILED,
            _position_of=position_of or Lazy(lambda: _inverse(edge_ids)),
        )
        self._set(arrays=Arrays.of(COMPILED, self))

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def position_type(self) -> type[np.signedinteger[Any]]:
        """The narrowest integer type that holds every position."""
        return narrow(len(self.indices))

    def __repr__(self) -> str:
        return f"Edges({self.num_rows} rows, {len(self.indices)} edges)"

    def rows_of(self, nodes: Ints) -> Ints:
        """Return the rows of nodes (parent ids), node by node, as arrays of the form."""
        return self.node_rows.of(self.whole.rows_of(nodes), self.form)[0]

    def spans_of(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the first position of the edges of each node, and the position behind its last
        one.
        """
        first, count = self.node_rows.first(self.whole.rows_of(nodes))
        return self.indptr[first], self.indptr[first + count]

    @property
    def node_indptr(self) -> Ints:
        """Where the edges of each node begin, int64 ``[nodes + 1]``."""
        if self.node_rows.is_plain:
            return self.indptr
        first, _ = self.node_rows.first(np.arange(self.node_rows.num_nodes))
        return np.append(self.indptr[first], self.indptr[-1])

    def kinds_at(self, positions: Ints) -> Ints:
        """Return the kinds of the edges at positions: those of their rows."""
        return self.node_rows.kinds_of(np.searchsorted(self.indptr, positions, side="right") - 1)

    def ids(self, positions: Ints) -> Ints:
        """Return the edge ids at positions, int64."""
        if self.edge_ids is not None:
            positions = self.form.take(self.arrays.edge_ids, positions)
        return self.form.wide(positions)  # type: ignore[no-any-return]

    def parent_eid(self, positions: Ints) -> Tensor:
        """Return the parent ids of the edges at positions, as a tensor."""
        return self.form.tensor(self.whole.edge_ids_of(self.ids(positions)))

    def by_position(self, column: Array) -> Array:
        """Return a column with an entry per edge id in the order of the positions; shared where the
        orders agree.
        """
        return column if self.edge_ids is None else column[self.edge_ids]

    def keep(self, mask: NDArray[np.bool_]) -> Edges:
        """Return the edges for which ``mask`` ``[num_edges]``, by edge id, is True."""
        kept = np.flatnonzero(self.by_position(mask))
        indptr = np.searchsorted(kept, self.indptr)
        return self._reordered(indptr, kept, self.node_rows, self.whole_rows)

    def by_kind(
        self, kinds: Callable[[], Ints], *, node_rows: NodeRows, whole_rows: NodeRows
    ) -> Edges:
        """Return the edges with a row per node and kind.

        ``node_rows`` are the rows of the nodes of this process, ``whole_rows`` of all nodes.
        ``kinds`` returns the kind of each edge, by edge id. Edges that lie in this order already
        are shared.
        """
        if whole_rows.is_plain:
            return self
        # the row of each edge is a number that grows by node, then kind: sorted by it they are laid
        # out
        nodes = np.repeat(np.arange(self.num_rows), np.diff(self.indptr))
        row = node_rows.of_edges(nodes, self.by_position(kinds()))
        if (row[1:] < row[:-1]).any():
            indptr, order = kernels.csr.sort_by_destination(row, node_rows.num_rows)
            return self._reordered(indptr, order, node_rows, whole_rows)
        counts = np.bincount(row, minlength=node_rows.num_rows)
        return Edges._trusted(
            np.append(0, np.cumsum(counts)),
            self.indices,
            self.edge_ids,
            node_rows=node_rows,
            whole_rows=whole_rows,
            position_of=self._position_of,
            whole=self.whole,
        )

    def sorted_by(self, key: Array) -> Edges:
        """Return the edges with every row in ascending order of ``key``, by position, ties in the
        present order.
        """
        # by key first, then stably by row: inside a row the keys stay in order
        order = np.argsort(key, kind="stable")
        row = np.repeat(np.arange(self.num_rows), np.diff(self.indptr))[order]
        order = order[kernels.csr.sort_by_destination(row, self.num_rows)[1]]
        return self._reordered(self.indptr, order, self.node_rows, self.whole_rows)

    def without(self, eid: Ints) -> Edges:
        """Return the same arrays with a ``patch`` that leaves out the edges ``eid``."""
        positions = eid
        if self.edge_ids is not None:
            position_of = self._position_of.get()
            positions = position_of[:, eid[eid < position_of.shape[1]]].ravel()
        # a filter may have left out some of them already
        left_out = np.unique(positions[positions >= 0])
        return self._changed(patch=Patch(self, left_out))

    @property
    def left_out(self) -> Ints:
        """Positions of the edges that the ``patch`` leaves out, ascending."""
        return NOTHING if self.patch is None else self.patch.left_out

    def staying(self, indptr: Ints, positions: Ints, *columns: Ints) -> tuple[Ints, ...]:
        """Return ``indptr``, ``positions`` and columns of edges without those left out, as arrays
        of the form.
        """
        if self.patch is None:
            return indptr, positions, *columns
        form = self.form
        kept = form.indices(~form.contains(form.array(self.left_out), positions))
        return (
            form.search(kept, indptr),
            form.take(positions, kept),
            *(form.take(column, kept) for column in columns),
        )

    def intact(self) -> Edges:
        """Return the same arrays without a ``patch``."""
        return self._changed(patch=None)

    def in_form(self, form: Form) -> Edges:
        """Return the same edges for draws in another form."""
        if form is self.form:
            return self
        return self._changed(form=form, arrays=Arrays.of(form, self))

    def _changed(self, **changes: Any) -> Edges:
        edges = copy(self)
        edges._set(**changes)  # noqa: SLF001 (a copy that nobody else has yet)
        return edges

    def _reordered(
        self, indptr: Ints, order: Ints, node_rows: NodeRows, whole_rows: NodeRows
    ) -> Edges:
        ids = order.astype(self.position_type) if self.edge_ids is None else self.edge_ids[order]
        return Edges._trusted(
            indptr,
            self.indices[order],
            ids,
            whole=self.whole,
            node_rows=node_rows,
            whole_rows=whole_rows,
        )


class Patch(Frozen):
    """Edges that are left out for one batch, and copies of their rows without these edges.

    ``left_out`` are their positions, ``rows`` the rows that they are in, both ascending. ``edges``
    has these rows only, without the edges left out. Position p of ``edges`` is position
    ``positions[p]`` of the whole.
    """

    __slots__ = ("_copied", "left_out", "rows")
    rows: Ints
    left_out: Ints
    _copied: Lazy[tuple[Edges, Ints]]

    def __init__(self, whole: Edges, left_out: Ints) -> None:
        row = np.searchsorted(whole.indptr, left_out, side="right") - 1
        rows = np.unique(row)

        def copied() -> tuple[Edges, Ints]:
            # an edge left out is as far behind the beginning of its row in the copy as in the whole
            indptr, positions = kernels.csr.csr_rows(whole.indptr, rows)
            stays = np.ones(len(positions), np.bool_)
            stays[indptr[np.searchsorted(rows, row)] + left_out - whole.indptr[row]] = False
            kept = np.flatnonzero(stays)
            positions = positions[kept]
            ends = np.searchsorted(kept, indptr)
            ids = whole.in_form(COMPILED).ids(positions)
            return Edges._trusted(ends, whole.indices[positions], ids), positions

        # made when first asked for: it takes memory for all edges of the rows, and some samplers
        # need only left_out
        self._set(rows=rows, left_out=left_out, _copied=Lazy(copied))

    @property
    def edges(self) -> Edges:
        """The rows without the edges that are left out."""
        return self._copied.get()[0]

    @property
    def positions(self) -> Ints:
        """The positions of these edges in the whole."""
        return self._copied.get()[1]


@checked
def edges_along(graph: GraphOfPeers, direction: str) -> Edges:
    """Return the edges of ``graph`` by which nodes look up neighbours: "in", "out" or "both".

    Raises ValueError for another direction.

    >>> from nodeflow import Graph
    >>> edges_along(Graph.from_edges([0, 1, 1], [1, 2, 0]), "out").indptr
    array([0, 1, 3, 3])
    """
    check_one_of(direction, "direction", ("in", "out", "both"))
    held = graph.held_part
    if direction != "both":
        return Edges._trusted(*(held.csc() if direction == "in" else held.csr()), whole=held.whole)
    begin, src, ids_in = held.csc()
    begin_out, dst, ids_out = held.csr()
    assert ids_out is not None  # out-edges are sorted, so they have ids
    nodes = np.arange(len(begin) - 1)
    row_out = np.repeat(nodes, np.diff(begin_out))
    others = np.flatnonzero(dst != row_out)  # a loop is one way
    # The in-edges of a node come before its out-edges, as in a graph to which reverse edges were
    # added: the sort by rows keeps the order in a row.
    row = np.concatenate([np.repeat(nodes, np.diff(begin)), row_out[others]])
    indptr, order = kernels.csr.sort_by_destination(row, len(nodes))
    if ids_in is None:
        ids_in = np.arange(len(src), dtype=ids_out.dtype)
    ids = np.concatenate([ids_in, ids_out[others]])[order]
    indices = np.concatenate([src, dst[others]])[order]
    return Edges._trusted(indptr, indices, ids, whole=held.whole)


def _inverse(edge_ids: Array | None) -> Ints:
    """Return the positions of every edge id, or -1: ``[1, ids]``, ``[2, ids]`` for both ways."""
    if edge_ids is None:
        return NOTHING[None]
    every = np.arange(len(edge_ids))
    last = np.full(int(edge_ids.max(initial=-1)) + 1, -1)
    last[edge_ids] = every
    # those that a later position has replaced
    first = np.flatnonzero(last[edge_ids] != every)
    if not len(first):
        return last[None]
    # with both directions an edge has two positions
    positions = np.stack([last, np.full_like(last, -1)])
    positions[1, edge_ids[first]] = first
    return positions
