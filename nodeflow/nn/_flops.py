"""Counting floating-point operations while a model runs."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode


def flop_counter(**options: Any) -> FlopCounterMode:
    """Return torch's counter of floating-point operations, which then also counts sums over the edges of flows.

    Torch's own counter knows matrix products; a sum over edges counts one addition for every number of a row that is
    added, and one multiplication more where edges have weights.

    Args:
        options: those of ``torch.utils.flop_counter.FlopCounterMode``: ``display`` (False unless given: the table it
            prints needs the package tabulate), ``depth``, ``custom_mapping``.

    >>> from nodeflow import flow_from_edges
    >>> from nodeflow.nn import GraphConv
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> conv = GraphConv(4, 3, norm="none", self_loops=False)
    >>> with flop_counter() as counter:
    ...     out = conv(flow, torch.ones(2, 4))
    >>> counter.get_total_flops() == conv.flops(flow)[conv.order_for(flow)]
    True
    """
    aten, options = torch.ops.aten, {"display": False, **options}
    known = {aten._embedding_bag: _bag, aten._embedding_bag_forward_only: _bag, aten.addmm_: _added}
    return FlopCounterMode(custom_mapping={**known, **options.pop("custom_mapping", {})}, **options)


def _bag(
    weight: torch.Size, indices: torch.Size, offsets: torch.Size, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: torch.Size | None = None, *rest: Any, **kwargs: Any,
) -> int:  # fmt: skip
    return indices[0] * weight[1] * (1 if per_sample_weights is None else 2)


def _added(total: torch.Size, left: torch.Size, right: torch.Size, *rest: Any, **kwargs: Any) -> int:
    """A matrix product added to what is there; torch counts others only."""
    return 2 * left[0] * left[1] * right[1]
