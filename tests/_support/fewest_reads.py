"""Plans of a cache whose batches are known, and the least that any cache must read."""

from __future__ import annotations

from collections.abc import Iterator

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.storage._plan import Plan


def served(plan: Plan, coming: Iterator[Array]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield what ``plan.advance`` returns until the last of the coming batches."""
    while (step := plan.advance(lambda: next(coming, None))) is not None:
        yield step


def fewest_reads(batches: list[Array], room: int) -> int:
    """Return how many rows must be read at least to serve batches of distinct ids with a cache of ``room`` rows."""
    if not batches:
        return 0
    num_nodes = 1 + max((int(ids.max(initial=-1)) for ids in batches), default=-1)
    plan, coming = Plan(num_nodes, room, len(batches), None), iter(batches)
    return sum(int((hit < 0).sum()) for _, hit, _ in served(plan, coming))
