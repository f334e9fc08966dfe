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
        is_first = torch.ones_like(order, dtype=torch.bool)
        torch.ne(ordered[1:], ordered[:-1], out=is_first[1:])
        del ordered  # of all memory that draws take, this function takes the most
        # the sort is stable: of equal ids the one that appears first is the first
        number = torch.empty_like(is_first).scatter_(0, order, is_first).cumsum(0)
        count, size = len(self.nodes), int(number[-1:].sum())  # waits
        group = is_first.cumsum(0).sub_(1)
        appears = order.new_full((size,), len(every)).scatter_reduce_(0, group, order, "amin")
        number = number.index_select(0, appears).sub_(1)
        self.nodes = torch.empty_like(appears).scatter_(0, number, every.index_select(0, appears))
        del every, appears
        return torch.empty_like(order).scatter_(0, order, number.index_select(0, group))[count:]
