"""Cutting a graph: which part has which node."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_ids, check_length, check_one_of
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Array, IdsLike
from nodeflow._core.random import Random, derive_key
from nodeflow.graph import Graph
from nodeflow.sampling import partition

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
        # the place of a node is its position in the order less where its part begins
        place[order] = np.arange(len(owner)) - np.repeat(begin[:-1], np.diff(begin))
        self._set(owner=owner, order=order, begin=begin, place=place)

    @property
    def sizes(self) -> Ints:
        """Nodes of each part, int64 ``[num_parts]``."""
        return np.diff(self.begin)

    def nodes(self, part: int) -> Ints:
        """Return the nodes of a part, ascending."""
        return self.order[self.begin[part] : self.begin[part + 1]]


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
    equal: bool = False,
) -> Masters:
    """Return the parts of all nodes; see ``partition_graph`` and ``write_partitions`` for arguments
    and errors.

    ``equal``: of each type, sizes differ by at most one, the first parts are the larger ones, and
    random nodes of other cuts move.
    """
    types = graph.schema.nodes.values()
    if isinstance(method, str):
        check_one_of(method, "method", METHODS)
        ranges = types if equal else [range(graph.num_nodes)]
        owner = _owners(graph, num_parts, method, train, seed, ranges)
    else:
        owner = as_ids(method, "method", num_parts, "part")
        check_length(owner, "method", graph.num_nodes, "node")
    if equal:
        of_types = [owner[ids.start : ids.stop] for ids in types]
        owner = np.concatenate([_equal(parts, num_parts, seed) for parts in of_types])
    return Masters(owner, num_parts)


def _owners(
    graph: Graph,
    num_parts: int,
    method: str,
    train: Ints | None,
    seed: int,
    types: Collection[range],
) -> Array:
    """Return the parts by a named method; ``types`` are ranges of ids that are cut apart."""
    count = graph.num_nodes
    if method == "metis":
        return partition(graph, num_parts, seed).numpy()
    random = Random(derive_key("hash" if method == "hash" else "cut", seed))
    # of the id alone: the master of a node can be found without a folder, in a larger graph too
    if method == "hash":
        return random.integers(range(count), num_parts).numpy()
    order = np.arange(count) if method == "ranges" else random.permutation(count).numpy()
    if method == "train-first":
        if train is None or not len(train):
            raise ValueError("method='train-first' needs training nodes; pass train")
        trains = np.isin(order, train)
        order = np.concatenate([order[trains], order[~trains]])
    owner = np.empty(count, part_type(num_parts))
    # each type apart, so that every part has its share of it; the first parts get what is left over
    for ids in types:
        nodes = order[(order >= ids.start) & (order < ids.stop)]
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
