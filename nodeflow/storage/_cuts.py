"""How nodes are cut into partitions of equal size."""

from __future__ import annotations

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_ids, check_length, check_one_of
from nodeflow._base.types import Array, IdsLike
from nodeflow.graph import Graph
from nodeflow.random import Random, derive_key
from nodeflow.sampling import partition

METHODS = ("random", "train-first", "metis")
_CUT = 0x637574


def cut(graph: Graph, num_partitions: int, method: str | IdsLike, train: Ints | None, seed: int) -> Array:
    """Return the row of every node, ``[num_nodes]``: its partition times the rows of a partition, plus its place there.

    Sizes differ by at most one; the first partitions are the larger ones. Within a partition nodes are in the order of
    their ids. Arguments and errors are those of ``write_partitions``.
    """
    count = graph.num_nodes
    sizes = np.full(num_partitions, count // num_partitions, np.int64)
    sizes[: count % num_partitions] += 1
    random = Random(derive_key(_CUT, seed))
    if not isinstance(method, str):
        given = as_ids(method, "method", num_partitions, "partition")
        check_length(given, "method", count, "node")
        numbers = _equal(given, sizes, random)
    else:
        check_one_of(method, "method", METHODS)
        if method == "metis":
            numbers = _equal(partition(graph, num_partitions, seed).numpy(), sizes, random)
        else:
            if method == "train-first" and (train is None or not len(train)):
                raise ValueError("method='train-first' needs training nodes; pass train")
            order = random.permutation(count).numpy()
            if method == "train-first" and train is not None:
                first = np.zeros(count, np.bool_)
                first[train] = True
                order = np.concatenate([order[first[order]], order[~first[order]]])
            numbers = np.empty(count, np.int32)
            numbers[order] = np.repeat(np.arange(num_partitions, dtype=np.int32), sizes)
    begin, order = kernels.csr.sort_by_destination(numbers, num_partitions)
    size = int(sizes.max(initial=0))
    rows = np.empty(count, np.int32 if num_partitions * size < 2**31 else np.int64)
    for p in range(num_partitions):
        rows[order[begin[p] : begin[p + 1]]] = np.arange(p * size, p * size + begin[p + 1] - begin[p])
    return rows


def _equal(numbers: Ints, sizes: Ints, random: Random) -> Ints:
    """Move as few nodes as possible, random ones, from parts that are too large to those that are too small."""
    shuffled = random.permutation(len(numbers)).numpy()
    begin, order = kernels.csr.sort_by_destination(numbers[shuffled], len(sizes))
    order = shuffled[order]
    found = np.diff(begin)
    moved = [order[begin[p] + sizes[p] : begin[p + 1]] for p in np.flatnonzero(found > sizes)]
    equal = numbers.copy()
    if moved:
        equal[np.concatenate(moved)] = np.repeat(np.arange(len(sizes)), np.maximum(sizes - found, 0))
    return equal


def parents_of(rows: Array, num_rows: int) -> Array:
    """Return the node at every row, ``[num_rows]``, -1 where there is none."""
    parents = np.full(num_rows, -1, np.int64)
    parents[rows] = np.arange(len(rows))
    return parents
