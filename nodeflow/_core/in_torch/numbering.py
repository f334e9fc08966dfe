"""Local ids for parent ids, in order of first appearance: what ``_core/edges/numbering.py`` does, in
tensors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._core.in_torch.ragged import indices_of, integers_for


class TensorNumbering:
    """Numbers parent ids 0, 1, 2, ... in order of first appearance; ``nodes`` are the ids numbered
    so far, in order.

    Used as ``_core.edges.numbering.Numbering`` is, for ids below ``num_ids``. It sorts, so its memory is
    that of the ids.
    """

    def __init__(self, num_ids: int, device: torch.device) -> None:
        self.nodes = torch.zeros(0, dtype=torch.int64, device=device)
        # which takes three times as long
        self._sorted_as = integers_for(num_ids)

    def __enter__(self) -> TensorNumbering:
        return self

    def __exit__(self, *_: object) -> None:
        pass  # no scratch memory is kept: torch's own allocators do that for devices

    def extend(self, ids: Tensor) -> Tensor:
        """Number ``ids``, going on from ``nodes``; returns the numbers, written over ``ids``."""
        # of all memory that draws take, this function takes the most: nothing is kept for longer
        # than it is needed
        count = len(self.nodes)
        ordered, order = torch.cat([self.nodes, ids]).to(self._sorted_as).sort(stable=True)
        is_first = torch.ones_like(order, dtype=torch.bool)
        torch.ne(ordered[1:], ordered[:-1], out=is_first[1:])
        del ordered
        # the sort is stable: of equal ids the one that appears first is the first
        is_new = torch.empty_like(is_first).scatter_(0, order, is_first)
        new = ids.index_select(0, indices_of(is_new[count:]))
        self.nodes = torch.cat([self.nodes, new])
        group = is_first.cumsum(0).sub_(1)
        appears = order.new_full(self.nodes.shape, len(order)).scatter_reduce_(
            0, group, order, "amin"
        )
        kind = integers_for(len(order) + 1)
        number = is_new.cumsum(0, dtype=kind).index_select(0, appears).sub_(1)
        del appears
        number = number.index_select(0, group)
        return ids.copy_(torch.empty_like(number).scatter_(0, order, number)[count:])
