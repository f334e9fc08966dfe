"""Moving nodes between parts until two kinds of nodes are spread evenly, for few more edges between parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.graph import Graph
from nodeflow.sampling import links

SLACK = 0.05
"""The share by which the number of nodes of a kind in a part may differ from its mean."""
_COUNTS = 2**24  # links from nodes into parts that are counted at a time


def balanced(graph: Graph, owner: Array, chosen: Array, num_parts: int) -> Array:
    """Return the parts of the nodes, moved so that the chosen nodes, and the others too, are balanced within 5 %.

    METIS balances one weight only as pymetis calls it, so nodes are moved after it: first those whose edges within
    parts become the fewest less (a move may also gain some). They are moved in rounds; the losses are counted anew in
    each.
    """
    moved, between = owner.astype(np.int64), links(graph)
    for nodes in (np.flatnonzero(chosen), np.flatnonzero(~chosen)):
        while moves := _moves(np.bincount(moved[nodes], minlength=num_parts)):
            _one_round(between, moved, nodes, *moves)
    return moved


def bounds(total: int, num_parts: int) -> tuple[int, int]:
    """Return the fewest and the most nodes of a balanced part; whole numbers next to the mean are always balanced.

    >>> bounds(1000, 4), bounds(10, 4)
    ((238, 262), (2, 3))
    """
    mean = total / num_parts
    return min(total // num_parts, int(np.ceil(mean * (1 - SLACK)))), max(int(np.ceil(mean)), int(mean * (1 + SLACK)))


def _moves(sizes: Ints) -> tuple[Ints, Ints] | None:
    """Return how many nodes each part may give and take now, None where all are balanced."""
    least, most = bounds(int(sizes.sum()), len(sizes))
    over, under = sizes > most, sizes < least
    if not (over.any() or under.any()):
        return None
    give = np.maximum(sizes - (most if over.any() else least), 0)
    take = np.maximum((least if under.any() else most) - sizes, 0)
    return give, take


def _one_round(between: Any, owner: Ints, nodes: Ints, give: Ints, take: Ints) -> None:
    """Move up to a quarter of what is to be moved, at least one node, changing ``owner``, ``give`` and ``take``."""
    import scipy.sparse

    movable, targets = nodes[give[owner[nodes]] > 0], np.flatnonzero(take)
    parts = scipy.sparse.csr_array(
        (np.ones(len(owner), np.int32), owner, np.arange(len(owner) + 1)), shape=(len(owner), len(give))
    )
    loss, best = np.empty(len(movable), np.int64), np.empty(len(movable), np.int64)
    step = max(_COUNTS // len(give), 1)
    for first in range(0, len(movable), step):
        some = movable[first : first + step]
        near = (between[some].astype(np.int32) @ parts).toarray()  # links into every part
        outside = near[:, targets]
        best[first : first + step] = outside.argmax(1)
        loss[first : first + step] = near[np.arange(len(some)), owner[some]] - outside.max(1)
    rest = max(-(-int(min(give.sum(), take.sum())) // 4), 1)
    for i in np.argsort(loss, kind="stable").tolist():
        source, target = owner[movable[i]], targets[best[i]]
        if give[source] and take[target]:
            owner[movable[i]] = target
            give[source] -= 1
            take[target] -= 1
            rest -= 1
            if not rest:
                return
