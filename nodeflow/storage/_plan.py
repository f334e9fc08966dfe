"""Which rows stay in memory, when the batches that come next are known: those that are needed soonest (Belady 1966)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array, Floats

_UNKNOWN = 256  # classes of heat for rows whose next use is not known


class Plan:
    """A cache of ``room`` rows that serves batches in order, and knows the ids of a window of batches ahead.

    ``advance`` serves the next batch. Of the rows in the cache and those of the batch it keeps the ``room`` whose next
    use is nearest. With all batches known no other choice reads less (Belady 1966). Rows that no known batch uses come
    after these, the hottest first.

    Args:
        num_nodes, room: numbers of rows, of all and of the cache.
        window: how many batches beyond the present one are known.
        heat: float64 by node, or None.
    """

    def __init__(self, num_nodes: int, room: int, window: int, heat: Floats | None) -> None:
        self.window = window
        self._cold = np.zeros(num_nodes, np.uint8)
        if heat is not None:
            order = np.argsort(-heat, kind="stable")
            self._cold[order] = np.arange(num_nodes) * _UNKNOWN // max(num_nodes, 1)
        self._place = np.full(num_nodes, -1, np.int32)
        kind = np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64
        self._node, self._next = np.full(room, -1, kind), np.full(room, -1, np.int32)
        self._filled = 0  # slots in use
        self._counts = np.zeros(window + _UNKNOWN + 2, np.int64)
        self.forget()

    def empty(self) -> None:
        """Drop all rows of the cache, and what is known of coming batches."""
        self._place[:] = -1
        self._filled = 0
        self.forget()

    def forget(self) -> None:
        """Drop what is known of coming batches. The rows in the cache stay."""
        self._latest = np.full(len(self._place), -1)
        self._next[:] = -1
        self._known: deque[Array] = deque()
        self._uses = np.empty(0, np.int32)  # the next use of every use from ``_base`` on
        self._base = self._served = self._end = 0
        self._now = self._last = 0  # numbers of the next batch to serve, and of the next to become known

    def advance(self, ids_ahead: Callable[[], Ints | None]) -> tuple[Ints, Ints, Ints] | None:
        """Serve the next batch. ``ids_ahead`` gives the distinct ids of the next unknown batch, None after the last.

        Returns ``(ids, hit, kept)``, int64 ``[k]`` each: the ids of the batch; the slot of the cache where each row
        lies, or -1 for a row to be read; the slot that each row which was read is to be copied to, or -1. Rows must be
        copied out of the cache before others are copied in. None: there is no further batch.
        """
        while self._last <= self._now + self.window and (ids := ids_ahead()) is not None:
            self._foresee(ids)
        if not self._known:
            return None
        ids = self._known.popleft().astype(np.int64)
        uses = self._uses[self._served - self._base : self._served - self._base + len(ids)]
        hit, kept = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
        self._filled = kernels.caching.keep_nearest(
            ids, uses, self._now, self.window, self._cold, self._place, self._node, self._next, self._filled,
            self._counts, hit, kept,
        )  # fmt: skip
        self._served += len(ids)
        self._now += 1
        return ids, hit, kept

    def _foresee(self, ids: Ints) -> None:
        if self._end - self._base + len(ids) > len(self._uses):
            live = self._uses[self._served - self._base : self._end - self._base]
            self._uses = np.empty(2 * (len(live) + len(ids)), np.int32)
            self._uses[: len(live)] = live
            self._base = self._served
        kernels.caching.foresee(
            ids, self._end, self._last, self._served, self._base, self._latest, self._uses, self._place, self._next
        )
        self._known.append(ids.astype(self._node.dtype))
        self._end += len(ids)
        self._last += 1


def served(plan: Plan, coming: Iterator[Array]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield what ``plan.advance`` returns until the last of the coming batches."""
    while (step := plan.advance(lambda: next(coming, None))) is not None:
        yield step
