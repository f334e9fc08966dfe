"""Columns of a graph that lies on several processes: rows are fetched from those that hold them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids
from nodeflow._rows.rows import Rows, fetch_rows
from nodeflow.graph._fetch_apart import fetch_apart
from nodeflow.graph._held import Peers


class DistributedRows:
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

    def __init__(self, peers: Peers, parts: Any, kind: str, name: str, held: Tensor | Rows) -> None:
        self._peers, self._parts, self._kind, self._name = peers, parts, kind, name
        self.held: Tensor | Rows = held

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole column, ``(num_rows, ...)``."""
        count = self._parts.num_nodes if self._kind == "node" else self._parts.num_edges
        return (count, *self.held.shape[1:])

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers."""
        return self.held.dtype

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, as ``[k, ...]``; IndexError for an id that is no row."""
        what = f"{self._kind} column {self._name}"
        with self._peers.together(what, exchanges=2):
            asked = as_ids(ids, "ids", self.shape[0], self._kind)
            return fetch_apart(self._peers, what, asked, self._owners, self._rows_at, out)

    def _owners(self, ids: Ints) -> Ints:
        return self._peers.owners(ids) if self._kind == "node" else self._peers.edge_owners(ids)

    def _rows_at(self, ids: Ints) -> Tensor:
        parts = self._parts
        places = parts.places(ids) if self._kind == "node" else parts.edge_places(ids)
        return fetch_rows(self.held, torch.from_numpy(places))

    def __repr__(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        return f"DistributedRows({kind} {list(self.shape)}, {self.held.shape[0]} rows here)"
