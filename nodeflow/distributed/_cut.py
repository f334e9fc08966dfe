"""Cutting a graph: which part has which node."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_ids, check_length, check_one_of
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.random import Random, derive_key
from nodeflow.graph import Graph
from nodeflow.sampling import partition, undirected_pairs

METHODS = ("random", "train-first", "metis", "ranges", "hash")


class Masters(Frozen):
    """The part of every node, which is its *master*.

    ``owner``, ``[num_nodes]``, is the part of every node, in the narrowest of uint8, int16 and
    int32. ``order``, int64 ``[num_nodes]``, are the nodes part by part, ascending within a part;
    those of part k begin at ``begin[k]``. ``place``, int32 or int64 ``[num_nodes]``, is the row of
    every node among the nodes of its part.
    """

    __slots__ = ("begin", "order", "owner", "place")
    owner: Array
    order: Ints
    begin: Ints
    place: Array

    def __init__(self, owner: Array, num_parts: int) -> None:
        owner = owner.astype(part_type(num_parts), copy=False)
        begin, order = kernels.csr.sort_by_destination(owner, num_parts)
        place = np.empty(len(owner), np.int32 if len(owner) < 2**31 else np.int64)
        place[order] = np.arange(len(owner)) - np.repeat(begin[:-1], np.diff(begin))
        self._set(owner=owner, order=order, begin=begin, place=place)

    @property
    def sizes(self) -> Ints:
        """Nodes of each part, int64 ``[num_parts]``."""
        return np.diff(self.begin)

    def nodes(self, part: int) -> Ints:
        """Return the nodes of a part, ascending."""
        return self.order[self.begin[part] : self.begin[part + 1]]

    def renumbered(self, nodes: Array) -> Ints:
        """Return the places of nodes in ``order``: their ids where every part has consecutive
        ones.
        """
        return self.begin[self.owner[nodes]] + self.place[nodes]


def part_type(num_parts: int) -> np.dtype[Any]:
    """Return the narrowest type of the numbers of parts."""
    if num_parts <= 2**8:
        return np.dtype(np.uint8)
    return np.dtype(np.int16) if num_parts <= 2**15 else np.dtype(np.int32)


def cut_nodes(
    graph: Graph,
    num_parts: int,
    method: str | IdsLike,
    train: Ints | None,
    seed: int,
    *,
    balance: bool = False,
    equal: bool = False,
) -> Masters:
    """Return the parts of all nodes; see ``partition_graph`` and ``write_partitions`` for arguments
    and errors.

    ``equal``: of each type, sizes differ by at most one, the first parts are the larger ones, and
    random nodes of other cuts move.
    """
    count = graph.num_nodes
    types = graph.schema.nodes.values()
    if balance and (train is None or not len(train)):
        raise ValueError("balance=True balances training nodes, and there are none; pass train")
    chosen = np.zeros(count, np.bool_)
    if train is not None:
        chosen[train] = True
    if isinstance(method, str):
        check_one_of(method, "method", METHODS)
        ranges = types if equal else [range(count)]
        owner = _owners(graph, num_parts, method, chosen, seed, ranges, balance=balance)
    else:
        owner = as_ids(method, "method", num_parts, "part")
        check_length(owner, "method", count, "node")
    if balance and not (isinstance(method, str) and method in ("random", "ranges", "hash")):
        owner = balanced(graph, owner, chosen, num_parts)
    if equal:
        of_types = [owner[ids.start : ids.stop] for ids in types]
        owner = np.concatenate([_equal(parts, num_parts, seed) for parts in of_types])
    return Masters(owner, num_parts)


def _owners(
    graph: Graph,
    num_parts: int,
    method: str,
    chosen: Array,
    seed: int,
    types: Collection[range],
    *,
    balance: bool,
) -> Array:
    """Return the parts by a named method; ``types`` are ranges of ids that are cut apart."""
    if method == "metis":
        return partition(graph, num_parts, seed).numpy()
    if method == "train-first" and not chosen.any():
        raise ValueError("method='train-first' needs training nodes; pass train")
    count = graph.num_nodes
    random = Random(derive_key("hash" if method == "hash" else "cut", seed))
    if method == "hash" and not balance:
        return random.integers(range(count), num_parts).numpy()
    order = np.arange(count) if method == "ranges" else random.permutation(count).numpy()
    owner = np.empty(count, part_type(num_parts))
    of_kinds = [order[chosen[order]], order[~chosen[order]]]
    if balance and method in ("random", "hash"):
        # in turn, the chosen ones first: sizes of both kinds, and of all, differ by at most one
        owner[np.concatenate(of_kinds)] = np.arange(count) % num_parts
        return owner
    if not balance:
        if method == "train-first":
            order = np.concatenate(of_kinds)
        of_kinds = [order[(order >= ids.start) & (order < ids.stop)] for ids in types]
    for nodes in of_kinds:
        owner[nodes] = np.repeat(np.arange(num_parts), _sizes(len(nodes), num_parts))
    return owner


def _sizes(count: int, num_parts: int) -> Ints:
    """Return sizes of parts that differ by at most one, the larger ones first."""
    return count // num_parts + (np.arange(num_parts) < count % num_parts)


def _equal(owner: Array, num_parts: int, seed: int) -> Array:
    """Move as few nodes as possible, random ones, from parts that are too large to those that are
    too small.
    """
    sizes = _sizes(len(owner), num_parts)
    before = np.bincount(owner, minlength=num_parts)
    if (before == sizes).all():
        return owner
    random = Random(derive_key("cut", seed))
    shuffled = random.permutation(len(owner)).numpy()
    begin, order = kernels.csr.sort_by_destination(owner[shuffled], num_parts)
    order = shuffled[order]
    # the nodes of a part beyond its size, in random order, fill the parts that lack some
    moved = [order[begin[p] + sizes[p] : begin[p + 1]] for p in np.flatnonzero(before > sizes)]
    lacking = np.maximum(sizes - before, 0)
    equal = owner.copy()
    equal[np.concatenate(moved)] = np.repeat(np.arange(num_parts), lacking)
    return equal


SLACK = 0.05
"""The share by which the number of nodes of a kind in a part may differ from its mean."""
_COUNTS = 2**24  # entries of the node-by-part table of link counts that is in memory at a time


def balanced(graph: Graph, owner: Array, chosen: Array, num_parts: int) -> Array:
    """Return the parts of the nodes, moved so that the chosen nodes, and the others too, are
    balanced within 5 %.

    METIS balances one weight only as pymetis calls it, so nodes are moved after it, in rounds:
    first those whose moves lose the fewest edges within parts (some gain), counted anew in each
    round.
    """
    moved = owner.astype(np.int64)
    between = undirected_pairs(graph)
    for nodes in (np.flatnonzero(chosen), np.flatnonzero(~chosen)):
        while moves := _moves(np.bincount(moved[nodes], minlength=num_parts)):
            _one_round(between, moved, nodes, *moves)
    return moved


def bounds(total: int, num_parts: int) -> tuple[int, int]:
    """Return the fewest and the most nodes of a balanced part; whole numbers next to the mean are
    always balanced.

    >>> bounds(1000, 4), bounds(10, 4)
    ((238, 262), (2, 3))
    """
    mean = total / num_parts
    least = min(total // num_parts, math.ceil(mean * (1 - SLACK)))
    most = max(math.ceil(mean), int(mean * (1 + SLACK)))
    return least, most


def _moves(sizes: Ints) -> tuple[Ints, Ints] | None:
    """Return how many nodes each part may give and take now, None where all are balanced."""
    least, most = bounds(int(sizes.sum()), len(sizes))
    over = sizes > most
    under = sizes < least
    if not (over.any() or under.any()):
        return None
    give = np.maximum(sizes - (most if over.any() else least), 0)
    take = np.maximum((least if under.any() else most) - sizes, 0)
    return give, take


def _one_round(between: Any, owner: Ints, nodes: Ints, give: Ints, take: Ints) -> None:
    """Move up to a quarter of what is to be moved, at least one node, changing ``owner``, ``give``
    and ``take``.
    """
    import scipy.sparse

    movable = nodes[give[owner[nodes]] > 0]
    targets = np.flatnonzero(take)
    # one row per node with a 1 at its part: a product with links counts links into every part
    ones = np.ones(len(owner), np.int32)
    indptr = np.arange(len(owner) + 1)
    parts = scipy.sparse.csr_array((ones, owner, indptr), shape=(len(owner), len(give)))
    loss = np.empty(len(movable), np.int64)
    best = np.empty(len(movable), np.int64)
    step = max(_COUNTS // len(give), 1)
    for first in range(0, len(movable), step):
        some = movable[first : first + step]
        num_links = (between[some].astype(np.int32) @ parts).toarray()
        outside = num_links[:, targets]
        inside = num_links[np.arange(len(some)), owner[some]]
        best[first : first + step] = outside.argmax(1)
        loss[first : first + step] = inside - outside.max(1)
    # a quarter at a time, since every move changes what the others lose
    total = int(min(give.sum(), take.sum()))
    left = max(-(-total // 4), 1)
    for i in np.argsort(loss, kind="stable").tolist():
        source = owner[movable[i]]
        target = targets[best[i]]
        if give[source] and take[target]:
            owner[movable[i]] = target
            give[source] -= 1
            take[target] -= 1
            left -= 1
            if not left:
                return
