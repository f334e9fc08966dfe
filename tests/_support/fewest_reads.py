"""The least that any cache must read, when all batches are known."""

from __future__ import annotations

from nodeflow._base.types import Array
from nodeflow.storage._plan import Plan, served


def fewest_reads(batches: list[Array], room: int) -> int:
    """Return how many rows must be read at least to serve batches of distinct ids with a cache of ``room`` rows."""
    if not batches:
        return 0
    num_nodes = 1 + max((int(ids.max(initial=-1)) for ids in batches), default=-1)
    plan, coming = Plan(num_nodes, room, len(batches), None), iter(batches)
    return sum(int((hit < 0).sum()) for _, hit, _ in served(plan, coming))
