"""Columns of a graph that lies on several processes: rows are fetched from those that hold them."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.types import IdsLike
from nodeflow._peers.fetching import fetch_from_owners
from nodeflow._peers.held import Peers
from nodeflow._rows.base import RowsBase
from nodeflow._rows.rows import Rows, fetch_rows, layout_of
from nodeflow.distributed._graph_parts import GraphParts


class DistributedRows(RowsBase):
    """Rows of a column by parent id, each held by one process: ``Rows`` that fetch from the owners.

    ``fetch`` is collective: every process calls it, in the same order, with ids of its own, which may be none. An id
    that is asked for repeatedly travels once. ``held`` are the rows that this process holds, in the order of its part.

    Args:
        peers: the processes.
        parts: says where a row lies among those of its owner: the folder of the parts.
        kind: "node" or "edge", what the rows belong to.
        name: the name of the column, for messages.
        held: the rows that this process holds, ``[k, ...]``: a tensor, or ``Rows``.
    """

    collective = True

    def __init__(self, peers: Peers, parts: GraphParts, kind: str, name: str, held: Tensor | Rows) -> None:
        self._peers, self._parts, self._kind, self._name = peers, parts, kind, name
        self.held: Tensor | Rows = held
        self.shape = (parts.num_nodes if kind == "node" else parts.num_edges, *held.shape[1:])
        self.dtype, self.layout = held.dtype, layout_of(held)

    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as ``[k, ...]``; see ``RowsBase.fetch``; collective."""
        with self._peers.together(f"{self._kind} column {self._name}", exchanges=2):
            return super().fetch(ids, out)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        what = f"{self._kind} column {self._name}"
        return fetch_from_owners(self._peers, what, ids, self._owners, self._rows_at)

    def _owners(self, ids: Ints) -> Ints:
        return self._peers.owners(ids) if self._kind == "node" else self._peers.edge_owners(ids)

    def _rows_at(self, ids: Ints) -> Tensor:
        parts = self._parts
        places = parts.places(ids) if self._kind == "node" else parts.edge_places(ids)
        return fetch_rows(self.held, torch.from_numpy(places))

    def _details(self) -> str:
        return f"{self.held.shape[0]} rows here"
