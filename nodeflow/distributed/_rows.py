"""Columns of a graph that lies on several processes: rows are fetched from those that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_ids
from nodeflow._rows.rows import Rows, as_array, fetch_rows, from_numpy
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
            distinct, index = _distinct(asked)
            owner = self._owners(distinct)
            begin, order = kernels.csr.sort_by_destination(owner, self._peers.size)
            wanted = distinct[order]
            parts = [wanted[begin[r] : begin[r + 1]] for r in range(self._peers.size)]
            questions = self._peers.exchange(f"ids of {what}", [[part] if len(part) else [] for part in parts])
            answers = [[self._rows_at(part[0])] if part else [] for part in questions]
            found = self._peers.exchange(f"rows of {what}", [[as_array(a[0])] if a else [] for a in answers])
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            place = place if index is None else place[index]
            result = torch.empty((len(asked), *self.shape[1:]), dtype=self.dtype) if out is None else out
            if len(asked):
                rows = [from_numpy(arrays[0], self.dtype) for arrays in found if arrays]
                torch.index_select(torch.cat(rows), 0, torch.from_numpy(place), out=result)
            return result

    def _owners(self, ids: Ints) -> Ints:
        return self._peers.owners(ids) if self._kind == "node" else self._peers.edge_owners(ids)

    def _rows_at(self, ids: Ints) -> Tensor:
        parts = self._parts
        places = parts.places(ids) if self._kind == "node" else parts.edge_places(ids)
        return fetch_rows(self.held, torch.from_numpy(places))

    def __repr__(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        return f"DistributedRows({kind} {list(self.shape)}, {self.held.shape[0]} rows here)"


def _distinct(ids: Ints) -> tuple[Ints, Ints | None]:
    """Ids without repeats, and where each is among them; None where nothing repeats (the nodes of a layer, say)."""
    distinct, index = np.unique(ids, return_inverse=True)
    return (ids, None) if len(distinct) == len(ids) else (distinct, index)
