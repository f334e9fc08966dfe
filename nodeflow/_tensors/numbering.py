"""Local ids for parent ids, in order of first appearance: what ``_edges/numbering.py`` does, in tensors."""

from __future__ import annotations

import torch
from torch import Tensor


class Numbering:
    """Numbers parent ids 0, 1, 2, ... in order of first appearance; ``nodes`` are the ids numbered so far, in order.

    Used as ``_edges.numbering.Numbering`` is, for ids below ``num_ids``. It sorts, so its memory is that of the ids.
    """

    def __init__(self, num_ids: int, device: torch.device) -> None:
        self.nodes = torch.zeros(0, dtype=torch.int64, device=device)
        self._sorted_as = torch.int32 if num_ids <= 2**31 else torch.int64  # which takes three times as long

    def __enter__(self) -> Numbering:
        return self

    def __exit__(self, *_: object) -> None:
        pass  # no scratch memory is kept: torch's own allocators do that for devices

    def extend(self, ids: Tensor) -> Tensor:
        """Number ``ids``, going on from ``nodes``; returns the numbers."""
        every = torch.cat([self.nodes, ids])
        ordered, order = every.to(self._sorted_as).sort(stable=True)
        # the sort is stable: of equal ids the one that appears first is the first
        is_first = torch.ones_like(order, dtype=torch.bool)
        torch.ne(ordered[1:], ordered[:-1], out=is_first[1:])
        appears = torch.empty_like(is_first).scatter_(0, order, is_first)
        number = appears.cumsum(0)
        count, size = len(self.nodes), int(number[-1:].sum())  # waits
        number.sub_(1)
        begin = torch.arange(len(every), device=every.device).mul_(is_first).cummax(0)[0] if len(every) else order
        local = torch.empty_like(number).scatter_(0, order, number.index_select(0, order.index_select(0, begin)))
        # every id is written to its place, again and again: all are the same
        self.nodes = torch.empty(size, dtype=torch.int64, device=every.device).scatter_(0, local, every)
        return local[count:]
