"""Local ids for parent ids, in order of first appearance."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.runtime.memory import leave_scratch, take_scratch

_IDS_PER_SLOT: Final = 2
"""Ids of which a direct table is as large as a slot of a hash table. One that is no larger is
faster.
"""


class Numbering:
    """Numbers parent ids 0, 1, 2, ... in order of first appearance; ``nodes`` are the ids numbered
    so far, in order.

    Use it in a ``with`` block: at its end the scratch memory (a table, and space for ids that all
    may be new) is left to the next numbering.
    """

    def __init__(self, num_nodes: int) -> None:
        self.nodes: Ints = np.zeros(0, np.int64)
        self._num_nodes = num_nodes
        self._packed = num_nodes <= kernels.relabel.MAX_ID
        self._slots, self._ids = take_scratch()
        self._table: Ints = self._slots[:0]
        self._relabel = kernels.relabel.relabel

    def __enter__(self) -> Numbering:
        return self

    def __exit__(self, *_: object) -> None:
        # the next batch likely needs as much as this one, and a table of that size need not grow;
        # but one huge batch must not keep its memory for good
        leave_scratch(self._slots, self._ids, most=64 * _power_of_two(len(self.nodes)))

    def extend(self, ids: Ints) -> Ints:
        """Number ``ids``, going on from ``nodes``; returns the numbers, written over ``ids`` where
        that is faster.
        """
        count = len(self.nodes)
        if not self._packed:
            self.nodes, local = distinct_in_order(np.concatenate([self.nodes, ids]))
            return local[count:]
        most = count + len(ids)
        # a quarter more than asked: flows of a batch grow, and each would copy all ids so far
        if len(self._ids) <= most:
            self._ids = np.empty(most + most // 4 + 1, np.int64)
            self._ids[:count] = self.nodes
        # a quarter of the size that is surely enough, since most ids come repeatedly
        if len(self._table) == 0:
            self._renew(max(_power_of_two(2.5 * most) // 4, len(self._slots)), count)
        # ``relabel`` stops when the table is full enough: a larger one is filled with the ids so
        # far, and goes on
        done = 0
        while True:
            more, count = self._relabel(self._table, ids[done:], self._ids, count)
            done += more
            if done == len(ids):
                break
            self._renew(2 * len(self._table), count)
        self.nodes = self._ids[:count].copy()
        return ids

    def _renew(self, size: int, count: int) -> None:
        """Take a table that holds the first ``count`` ids: a direct one, or a hash table of
        ``size`` slots.
        """
        ids = self._ids[:count]
        if self._num_nodes <= _IDS_PER_SLOT * size:
            slots = _power_of_two(max(self._num_nodes - 1, 0) // _IDS_PER_SLOT)
            self._table = self._empty(slots).view(np.int32)
            self._table[ids] = np.arange(count)
            self._relabel = kernels.relabel.direct
        else:
            self._table = self._empty(size)
            kernels.relabel.insert(self._table, ids)

    def _empty(self, size: int) -> Ints:
        """Return a table of ``size`` empty slots, a power of two."""
        if len(self._slots) < size:
            self._slots = np.empty(size, np.int64)
        table = self._slots[:size]
        table.fill(-1)
        return table


def distinct_in_order(ids: Ints) -> tuple[Ints, Ints]:
    """Return the distinct ids, in order of first appearance, and the index of every id among
    them.
    """
    distinct, first, index = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return distinct[order], np.argsort(order)[index]


def _power_of_two(least: float) -> int:
    return 1 << max(8, math.ceil(math.log2(least + 1)))
