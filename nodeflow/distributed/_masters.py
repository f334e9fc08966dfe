"""Which part is the master of which node."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_ids, check_length, check_one_of
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array, IdsLike
from nodeflow.distributed._balance import balanced
from nodeflow.graph import Graph
from nodeflow.random import Random, derive_key
from nodeflow.sampling import partition

METHODS = ("metis", "random", "ranges", "hash")
_RANDOM, _HASH = 0x72616E64, 0x68617368


class Masters(Frozen):
    """The master of every node.

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
        for k in range(num_parts):
            place[order[begin[k] : begin[k + 1]]] = np.arange(begin[k + 1] - begin[k])
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


def assign_masters(
    graph: Graph, num_parts: int, method: str | IdsLike, train: Ints | None, balance: bool, seed: int
) -> Masters:
    """Return the masters of all nodes; arguments and errors are those of ``partition_graph``."""
    if balance and (train is None or not len(train)):
        raise ValueError("balance=True balances training nodes, and there are none; pass train")
    chosen = np.zeros(graph.num_nodes, np.bool_)
    if train is not None and balance:
        chosen[train] = True
    if not isinstance(method, str):
        owner = as_ids(method, "method", num_parts, "part")
        check_length(owner, "method", graph.num_nodes, "node")
    else:
        check_one_of(method, "method", METHODS)
        owner = _cut(graph, num_parts, method, chosen, balance, seed)
    if balance and (not isinstance(method, str) or method == "metis"):
        owner = balanced(graph, owner, chosen, num_parts)
    return Masters(owner, num_parts)


def _cut(graph: Graph, num_parts: int, method: str, chosen: Array, balance: bool, seed: int) -> Array:
    count = graph.num_nodes
    if method == "metis":
        return partition(graph, num_parts, seed).numpy()
    if method == "hash" and not balance:
        return Random(derive_key(_HASH, seed)).integers(range(count), num_parts).numpy()
    if method == "ranges":
        order = np.arange(count)
    else:
        order = Random(derive_key(_HASH if method == "hash" else _RANDOM, seed)).permutation(count).numpy()
    owner = np.empty(count, part_type(num_parts))
    if method == "ranges":
        for nodes in (order[chosen], order[~chosen]):
            owner[nodes] = np.arange(len(nodes)) * num_parts // max(len(nodes), 1)
    else:  # in turn, the chosen ones first: sizes of both kinds, and of all, differ by at most one
        order = np.concatenate([order[chosen[order]], order[~chosen[order]]])
        owner[order] = np.arange(count) % num_parts
    return owner
