"""Local ids for parent ids, in order of first appearance."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from nodeflow._check import Ints
from nodeflow.kernels.relabel import MAX_ID, insert, relabel

_scratch = threading.local()


class Numbering:
    """Numbers parent ids 0, 1, 2, ... as they first appear; ``nodes`` are the ids numbered so far, in order.

    Use it in a ``with`` block: the hash table behind it goes back to its thread afterwards, because fresh memory would
    cost as much as filling it.
    """

    def __init__(self, num_nodes: int) -> None:
        self.nodes: Ints = np.zeros(0, np.int64)
        self._packed = num_nodes <= MAX_ID + 1
        self._memory: Ints = getattr(_scratch, "table", np.zeros(0, np.int64))
        self._table: Ints | None = None
        _scratch.table = np.zeros(0, np.int64)  # so that a sampler called inside another finds its own

    def __enter__(self) -> Numbering:
        return self

    def __exit__(self, *_: object) -> None:
        _scratch.table = self._memory

    def extend(self, source: Any, positions: Ints) -> Ints:
        """Number ``source[positions]``, going on from ``nodes``; returns the numbers, int64 ``[len(positions)]``."""
        if not self._packed:
            return self._extend_wide(source[positions].astype(np.int64))
        table = self._room_for(len(self.nodes) + len(positions))
        nodes = np.empty(len(self.nodes) + len(positions), np.int64)
        nodes[: len(self.nodes)] = self.nodes
        local, count = relabel(table, source, positions, nodes, len(self.nodes))
        self.nodes = nodes[:count]
        found: Ints = local
        return found

    def _room_for(self, entries: int) -> Ints:
        """Return a table for that many ids, at most about 70 % full, that holds ``nodes``."""
        table = self._table
        if table is None or len(table) < 1.4 * entries:
            size = 1 << max(8, int(np.ceil(np.log2(1.4 * entries + 1))))
            if len(self._memory) < size:
                self._memory = np.empty(size, np.int64)
            # what the batch before needed, this one likely needs: a larger table now saves filling another later
            self._table = table = self._memory[: min(len(self._memory), 16 * size)]
            table.fill(-1)
            insert(table, self.nodes)
        return table

    def _extend_wide(self, found: Ints) -> Ints:
        # ids beyond 31 bits do not fit the packed entries; such graphs are rare and pay with a sort
        everything = np.concatenate([self.nodes, found])
        _, first, place = np.unique(everything, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        local: Ints = rank[place][len(self.nodes) :]
        self.nodes = everything[first[order]]
        return local
