"""Counting floating-point operations while a model runs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.flop_counter import FlopCounterMode


def flop_counter(
    *,
    display: bool = False,
    depth: int = 2,
    custom_mapping: dict[Callable[..., object], Callable[..., int]] | None = None,
) -> FlopCounterMode:
    """Return torch's counter of floating-point operations, which then also counts sums over the edges of flows.

    Torch's own counter knows matrix products; a sum over edges counts one addition for every number of a row that is
    added, and one multiplication more where edges have weights.

    Args:
        display: print a table when the ``with`` block ends, which needs the package tabulate.
        depth: how many levels of modules within modules the table shows.
        custom_mapping: functions that count operations of your own, see ``torch.utils.flop_counter.FlopCounterMode``.

    >>> from nodeflow import flow_from_edges
    >>> from nodeflow.nn import GraphConv
    >>> flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    >>> conv = GraphConv(4, 3, norm="none", self_loops=False)
    >>> with flop_counter() as counter:
    ...     out = conv(flow, torch.ones(2, 4))
    >>> counter.get_total_flops() == conv.flops(flow)[conv.order_for(flow)]
    True
    """
    aten = torch.ops.aten
    # what embedding_bag calls; torch gives them no public name
    bags = [getattr(aten, name) for name in ("_embedding_bag", "_embedding_bag_forward_only")]
    counts = {aten.addmm_: _added, **dict.fromkeys(bags, _bag)}
    return FlopCounterMode(display=display, depth=depth, custom_mapping={**counts, **(custom_mapping or {})})


def _bag(rows: torch.Size, indices: torch.Size, *rest: object, **kwargs: object) -> int:
    """Count what torch calls with ``offsets, scale_grad_by_freq, mode, sparse, per_sample_weights`` in ``rest``."""
    is_weighted = len(rest) > 4 and rest[4] is not None
    return indices[0] * rows[1] * (2 if is_weighted else 1)


def _added(total: torch.Size, left: torch.Size, right: torch.Size, *rest: object, **kwargs: object) -> int:
    """Count a matrix product that is added to a matrix in place, which torch's own counter leaves out."""
    return 2 * left[0] * left[1] * right[1]
