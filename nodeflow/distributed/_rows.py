"""Columns whose rows several processes hold: fetched from their owners, and those that are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.peers.peers import Peers, collective_call
from nodeflow._core.rows.base import RowsBase, with_stored
from nodeflow._core.rows.pieces import Piece, distinct_in_place, put_pieces
from nodeflow._core.rows.rows import Rows, fetch_rows, is_sparse, layout_of
from nodeflow.distributed._graph_parts import GraphParts


class HeldColumns(Mapping[str, Any]):
    """The rows that the edges of a part have in edge columns of the whole graph."""

    def __init__(self, columns: Mapping[str, Tensor | Rows], edge_ids: Array) -> None:
        self._columns = columns
        self._edge_ids = edge_ids

    def __getitem__(self, name: str) -> Tensor | Rows:
        return with_stored(self._columns[name], self._held)

    def _held(self, column: Tensor | Rows) -> Tensor | Rows:
        if isinstance(column, DistributedRows):
            return column.held_rows
        return fetch_rows(column, torch.from_numpy(self._edge_ids.astype(np.int64)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class DistributedRows(RowsBase):
    """Rows of a column by parent id, each held by one process: ``Rows`` that fetch from the owners.

    ``fetch`` is collective: every process calls it, in the same order, with ids of its own, which
    may be none. An id that is asked for repeatedly travels once. ``kind`` says what rows belong to,
    "node" or "edge"; ``parts`` where a row lies among those of its owner. ``held_rows`` are those
    that this process holds, ``[k, ...]``, in the order of its part. A column of one type or
    relation has its ``ids``, and ``held_ids``, those of them that this process holds, ascending:
    its rows are asked for by local ids.
    """

    collective = True

    def __init__(
        self,
        peers: Peers,
        parts: GraphParts,
        kind: str,
        name: str,
        held_rows: Tensor | Rows,
        ids: range | None = None,
        held_ids: Array | None = None,
    ) -> None:
        self.peers = peers
        self._kind = kind
        self.what = f"{kind} column {name}"
        self.held_rows = held_rows
        self._owners = partial(peers.owners, kind=kind)
        self._places: Callable[[Ints], Ints] = partial(parts.places, kind=kind)
        if ids is None:
            ids = range(parts.num_nodes if kind == "node" else parts.num_edges)
        self.ids = ids
        if held_ids is not None:
            self._places = partial(_rows_among, held_ids)
        self.shape = (len(self.ids), *held_rows.shape[1:])
        self.dtype = held_rows.dtype
        self.layout = layout_of(held_rows)

    @collective_call("{self.what}")
    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as ``[k, ...]``; see ``RowsBase.fetch``;
        collective.
        """
        return super().fetch(ids, out)

    @collective_call("{self.what}")
    def pieces(self, ids: Ints) -> list[Piece]:
        """Return the rows ``ids``, those of this process where they lie; collective."""
        # a row that is asked for repeatedly travels once
        distinct, index = distinct_in_place(ids)
        pieces = self.peers.pieces(
            self.what, distinct + self.ids.start, self._owners, self._located
        )
        if index is None:
            return pieces
        return [Piece(self._put(pieces, len(distinct)), index, np.arange(len(ids)))]

    def here(self, ids: Ints) -> NDArray[np.bool_]:
        """Return which of the rows ``ids`` this process holds."""
        return cast("NDArray[np.bool_]", self._owners(ids + self.ids.start) == self.peers.rank)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return self._put(self.pieces(ids), len(ids))

    def _put(self, pieces: Sequence[Piece], count: int) -> Tensor:
        return put_pieces(pieces, count, self.rows_here(np.zeros(0, np.int64)))

    def rows_here(self, ids: Ints) -> Tensor:
        """Return rows that this process holds, by their ids in the graph."""
        return Piece(*self._located(ids), ids).copied()

    def _located(self, ids: Ints) -> tuple[Tensor, Ints | None]:
        places = self._places(ids)
        # dense rows stay where they lie, and are copied once, by who needs them
        if (
            isinstance(self.held_rows, Tensor)
            and not is_sparse(self.held_rows)
            and self.held_rows.is_contiguous()
        ):
            return self.held_rows, places
        return fetch_rows(self.held_rows, torch.from_numpy(places)), None

    def _details(self) -> str:
        return f"{self.held_rows.shape[0]} rows here"


def _rows_among(held_ids: Array, ids: Ints) -> Ints:
    # of one data type: numpy would convert all that it searches
    return np.searchsorted(held_ids, ids.astype(held_ids.dtype))


class HeldRows(RowsBase):
    """The rows of a distributed column that this process holds, by their ids in the column; no
    others are asked for.
    """

    def __init__(self, rows: DistributedRows) -> None:
        self._rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype
        self.layout = rows.layout

    @classmethod
    def of(cls, column: Tensor | Rows) -> Tensor | Rows:
        """Return the rows of a column that are here; another column as it is."""
        return with_stored(
            column, lambda rows: cls(rows) if isinstance(rows, DistributedRows) else rows
        )

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return self._rows.rows_here(ids + self._rows.ids.start)
