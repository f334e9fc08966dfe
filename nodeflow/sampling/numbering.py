"""Local ids for parent ids, in order of first appearance."""

from __future__ import annotations

import math
import threading

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
        self._memory: Ints = getattr(_scratch, "memory", np.zeros(0, np.int64))
        self._table: Ints = self._memory[:0]
        _scratch.memory = np.zeros(0, np.int64)  # so that a sampler called inside another finds its own

    def __enter__(self) -> Numbering:
        return self

    def __exit__(self, *_: object) -> None:
        # what one batch needed the next one likely needs: starting with it saves filling a larger table later; but one
        # huge batch does not keep its memory for good
        _scratch.memory = self._memory if len(self._memory) <= 16 * len(self._table) else self._table.copy()

    def extend(self, ids: Ints) -> Ints:
        """Number ``ids``, going on from ``nodes``; returns the numbers, written over ``ids`` where that is faster."""
        if not self._packed:
            return self._extend_wide(ids)
        count, most = len(self.nodes), len(self.nodes) + len(ids)
        nodes = np.empty(most, np.int64)
        nodes[:count] = self.nodes
        if len(self._table) == 0:  # a quarter of what is surely enough, since most ids come repeatedly
            enough = _power_of_two(1.5 * most)
            self._renew(min(max(enough // 4, len(self._memory)), enough), nodes[:count])
        done = 0
        while True:
            done, count = relabel(self._table, ids, done, nodes, count)
            if done == len(ids):
                break
            self._renew(4 * len(self._table), nodes[:count])
        # the room for ids that all might have been new is not worth keeping as long as the layer lives
        self.nodes = nodes[:count] if 2 * count > most else nodes[:count].copy()
        return ids

    def _renew(self, size: int, nodes: Ints) -> None:
        """Take a table of ``size`` slots that holds ``nodes``."""
        if len(self._memory) < size:
            self._memory = np.empty(size, np.int64)
        self._table = self._memory[:size]
        self._table.fill(-1)
        insert(self._table, nodes)

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


def _power_of_two(least: float) -> int:
    return 1 << max(8, math.ceil(math.log2(least + 1)))
