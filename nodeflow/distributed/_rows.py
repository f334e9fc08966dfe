"""Columns whose rows several processes hold: fetched from their owners, and those that are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.peers.peers import ALONE, Peers, collective_call
from nodeflow._core.rows.base import RowsBase, with_stored
from nodeflow._core.rows.pieces import Piece, distinct_in_place, put_pieces
from nodeflow._core.rows.rows import Rows, fetch_rows, is_sparse, layout_of
from nodeflow.distributed._graph_parts import GraphParts


class HeldColumns(Mapping[str, Any]):
    """The rows that some edges, at hand here, have in the edge columns of a graph.

    With ``fetches``, they may lie on other processes: the first look-up of a column is collective,
    and its rows are kept. Else they are the edges of the part that this process holds.
    """

    def __init__(
        self, columns: Mapping[str, Tensor | Rows], edge_ids: Array, *, fetches: bool = False
    ) -> None:
        self._columns = columns
        self._edge_ids = edge_ids
        self._fetches = fetches
        # a column, and its rows here
        self._fetched = dict[str, tuple[Tensor | Rows, Tensor | Rows]]()

    def __getitem__(self, name: str) -> Tensor | Rows:
        column = self._columns[name]
        # a tensor is here, and its numbers may change
        if not self._fetches or isinstance(column, Tensor):
            return with_stored(column, self._held)
        if name not in self._fetched or self._fetched[name][0] is not column:
            self._fetched[name] = column, with_stored(column, self._held)
        return self._fetched[name][1]

    def _held(self, column: Tensor | Rows) -> Tensor | Rows:
        if isinstance(column, DistributedRows) and not self._fetches:
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

    def of_part(self) -> DistributedRows:
        """Return these rows for a reader that asks only for those of this process: no call is
        collective.
        """
        rows = copy(self)
        rows.peers = ALONE
        rows.collective = False
        return rows

    def here(self, ids: Ints) -> NDArray[np.bool_]:
        """Return which of the rows ``ids`` this process holds."""
        return cast("NDArray[np.bool_]", self._owners(ids + self.ids.start) == self.peers.rank)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return self._put(self.pieces(ids), len(ids))

    def _put(self, pieces: Sequence[Piece], count: int) -> Tensor:
        none = np.zeros(0, np.int64)
        empty = Piece(*self._located(none), none)
        return put_pieces(pieces, count, empty.copied())

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
