"""A cache with the rule LRU, to compare with: ``storage.Cached`` and ``storage.Lookahead`` need
fewer reads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import torch
from torch import Tensor

from nodeflow.storage import Rows


class RecentlyUsed:
    """Rows of a dense column, of which ``room`` that were fetched last are known. Only reads are
    counted.

    ``hits`` and ``misses`` count rows of ``fetch`` that were in memory, and that were not.
    """

    def __init__(self, rows: Tensor | Rows, room: int) -> None:
        self.rows = rows
        self.room = room
        self.shape = tuple(rows.shape)
        self.dtype = rows.dtype
        self.hits = self.misses = 0
        self._kept = OrderedDict[int, Tensor]()
        self._lock = threading.Lock()

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``."""
        with self._lock:
            cold = [i for i, node in enumerate(ids.tolist()) if node not in self._kept]
            missing = ids[cold]
            read = self.rows[missing] if isinstance(self.rows, Tensor) else self.rows.fetch(missing)
            rows = (
                torch.empty((len(ids), *self.shape[1:]), dtype=self.dtype) if out is None else out
            )
            rows[cold] = read
            for i, node in enumerate(ids.tolist()):
                if node in self._kept:
                    rows[i] = self._kept[node]
            self.hits, self.misses = self.hits + len(ids) - len(cold), self.misses + len(cold)
            for i, node in enumerate(ids.tolist()):
                self._kept[node] = rows[i].clone()
                self._kept.move_to_end(node)
            while len(self._kept) > self.room:
                self._kept.popitem(last=False)
        return rows
