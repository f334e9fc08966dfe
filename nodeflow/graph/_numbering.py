"""Local ids for parent ids, in order of first appearance."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints

_KEPT: Final = 16
_scratch: deque[tuple[Ints, Ints]] = deque(maxlen=_KEPT)
"""Memory that nothing uses, last what was used last. Single steps of the deque need no lock."""


class Numbering:
    """Numbers parent ids 0, 1, 2, ... as they first appear; ``nodes`` are the ids numbered so far, in order.

    Use it in a ``with`` block: the memory behind it (a hash table, and room for ids that all may be new) is kept for
    the next one afterwards, because fresh memory would cost as much as filling it.
    """

    def __init__(self, num_nodes: int) -> None:
        self.nodes: Ints = np.zeros(0, np.int64)
        self._packed = num_nodes <= kernels.relabel.MAX_ID + 1
        none = np.zeros(0, np.int64)
        try:
            self._memory, self._room = _scratch.pop()
        except IndexError:
            self._memory, self._room = none, none
        self._table: Ints = self._memory[:0]

    def __enter__(self) -> Numbering:
        return self

    def __exit__(self, *_: object) -> None:
        # what one batch needed the next one likely needs: starting with it saves numbering again in a larger table; but
        # one huge batch does not keep its memory for good
        enough = 64 * _power_of_two(len(self.nodes))
        none = np.zeros(0, np.int64)
        memory, room = (m if len(m) <= enough else none for m in (self._memory, self._room))
        _scratch.append((memory, room))

    def extend(self, ids: Ints) -> Ints:
        """Number ``ids``, going on from ``nodes``; returns the numbers, written over ``ids`` where that is faster."""
        if not self._packed:
            return self._extend_wide(ids)
        count, most = len(self.nodes), len(self.nodes) + len(ids)
        if len(self._room) <= most:
            self._room = np.empty(most + most // 4 + 1, np.int64)
            self._room[:count] = self.nodes
        if len(self._table) == 0:  # a quarter of what is surely enough, since most ids come repeatedly
            self._renew(max(_power_of_two(2.5 * most) // 4, len(self._memory)), count)
        done = 0
        while True:
            more, count = kernels.relabel.relabel(self._table, ids[done:], self._room, count)
            done += more
            if done == len(ids):
                break
            self._renew(2 * len(self._table), count)
        self.nodes = self._room[:count].copy()
        return ids

    def _renew(self, size: int, count: int) -> None:
        """Take a table of ``size`` slots that holds the first ``count`` ids."""
        if len(self._memory) < size:
            self._memory = np.empty(size, np.int64)
        self._table = self._memory[:size]
        self._table.fill(-1)
        kernels.relabel.insert(self._table, self._room[:count])

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
