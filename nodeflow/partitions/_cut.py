"""Cutting a graph: which part has which node."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_ids, check_length, check_one_of
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array, IdsLike
from nodeflow.graph import Graph
from nodeflow.partitions._balance import balanced
from nodeflow.random import Random, derive_key
from nodeflow.sampling import partition

METHODS = ("random", "train-first", "metis", "ranges", "hash")


class Masters(Frozen):
    """The part of every node, which is its *master*.

    ``owner``, ``[num_nodes]``, is the part of every node, in the narrowest of uint8, int16 and int32. ``order``, int64
    ``[num_nodes]``, are the nodes part by part, ascending within a part; those of part k begin at ``begin[k]``.
    ``place``, int32 or int64 ``[num_nodes]``, is the row of every node among the nodes of its part.
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
        """Return the places of nodes in ``order``: their ids where every part has consecutive ones."""
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
    """Return the parts of all nodes; see ``partition_graph`` and ``write_partitions`` for arguments and errors.

    ``equal``: sizes differ by at most one, the first parts are the larger ones, and random nodes of other cuts move.
    """
    count = graph.num_nodes
    if balance and (train is None or not len(train)):
        raise ValueError("balance=True balances training nodes, and there are none; pass train")
    chosen = np.zeros(count, np.bool_)
    if train is not None:
        chosen[train] = True
    if isinstance(method, str):
        check_one_of(method, "method", METHODS)
        owner = _owners(graph, num_parts, method, chosen, balance, seed)
    else:
        owner = as_ids(method, "method", num_parts, "part")
        check_length(owner, "method", count, "node")
    if balance and not (isinstance(method, str) and method in ("random", "ranges", "hash")):
        owner = balanced(graph, owner, chosen, num_parts)
    return Masters(_equal(owner, _sizes(count, num_parts), seed) if equal else owner, num_parts)


def _owners(graph: Graph, num_parts: int, method: str, chosen: Array, balance: bool, seed: int) -> Array:
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
    if balance and method in ("random", "hash"):
        # in turn, the chosen ones first: sizes of both kinds, and of all, differ by at most one
        owner[np.concatenate([order[chosen[order]], order[~chosen[order]]])] = np.arange(count) % num_parts
        return owner
    if method == "train-first":
        order = np.concatenate([order[chosen[order]], order[~chosen[order]]])
    for nodes in (order[chosen[order]], order[~chosen[order]]) if balance else (order,):
        owner[nodes] = np.repeat(np.arange(num_parts), _sizes(len(nodes), num_parts))
    return owner


def _sizes(count: int, num_parts: int) -> Ints:
    """Return sizes of parts that differ by at most one, the larger ones first."""
    return count // num_parts + (np.arange(num_parts) < count % num_parts)


def _equal(owner: Array, sizes: Ints, seed: int) -> Array:
    """Move as few nodes as possible, random ones, from parts that are too large to those that are too small."""
    before = np.bincount(owner, minlength=len(sizes))
    if (before == sizes).all():
        return owner
    shuffled = Random(derive_key("cut", seed)).permutation(len(owner)).numpy()
    begin, order = kernels.csr.sort_by_destination(owner[shuffled], len(sizes))
    order = shuffled[order]
    moved = [order[begin[p] + sizes[p] : begin[p + 1]] for p in np.flatnonzero(before > sizes)]
    equal = owner.copy()
    equal[np.concatenate(moved)] = np.repeat(np.arange(len(sizes)), np.maximum(sizes - before, 0))
    return equal
