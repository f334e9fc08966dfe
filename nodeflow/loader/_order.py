"""The order of the seeds of an epoch: as given, at random, with near ones together, or drawn by
weight.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    Ints,
    as_array,
    as_count,
    as_flag,
    as_ids,
    describe,
    first_true,
)
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Floats, IdsLike, NumbersLike
from nodeflow._core.random import Random, derive_key, hash_ids
from nodeflow.loader._checks import hash_times
from nodeflow.sampling.base import SamplerBase


class LocalShuffle(Frozen):
    """A random order in which seeds of a group stay near each other, for
    ``NodeFlowLoader(..., shuffle=...)``.

    In every epoch the groups are put in a random order, and the seeds of every ``mix`` groups in
    that order are shuffled together. Where groups are parts of the graph, a batch then has
    neighbours in common, and so fewer input rows. ``mix`` is the dial: with 1 batches are most
    local; with as many as there are groups every order is equally likely, as with ``shuffle=True``.

    What it costs: an epoch still has every seed once, and every seed is equally likely in every
    place, since the epoch begins at a random place of the order. So the mean loss of a whole batch
    has the expectation of a random batch's. Its variance is larger, because seeds of a group are
    alike, and batches of an epoch that follow each other depend on each other.

    Args:
        groups: the group of every possible seed (of every node, or of every edge for seeds that are
            edges), integers of at least 0, such as those of ``partition(graph, 256)``. A row of
            several nodes has the group of the first.
        mix: number of groups whose seeds are shuffled together.

    Raises TypeError for groups that are not integers, IndexError for negative ones, ValueError for
    ``mix`` below 1; the loader raises ValueError for another number of groups than of possible
    seeds.

    >>> from nodeflow import Graph, NeighborSampler, NodeFlowLoader
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 0, 3, 2])
    >>> order = LocalShuffle([0, 0, 1, 1])
    >>> loader = NodeFlowLoader(NeighborSampler(graph, [1]), range(4), batch_size=4, shuffle=order)
    >>> [sorted(batch.seeds.tolist()) for batch in loader]
    [[0, 1, 2, 3]]
    """

    __slots__ = ("groups", "mix")
    groups: Ints
    mix: int

    @checked
    def __init__(self, groups: IdsLike, mix: int = 1) -> None:
        self._set(
            groups=as_ids(groups, "groups", np.iinfo(np.int64).max, "group"),
            mix=as_count(mix, "mix", 1),
        )

    def __repr__(self) -> str:
        return f"LocalShuffle({len(np.unique(self.groups))} groups, mix={self.mix})"


class SeedOrder(NamedTuple):
    """The order of an epoch's seeds.

    ``positions`` of the seed of the loader and an epoch are as many as there are seeds, int64;
    ``facts`` are what they depend on, as numbers by name.
    """

    positions: Callable[[int, int], Tensor]
    facts: dict[str, int]
    repeats: bool = False  # whether a seed may come several times in an epoch


def first_nodes(seeds: Tensor) -> Ints:
    """Return the ids of seeds, ``[n]``: of a row of several nodes, that of the first."""
    ids: Ints = (seeds if seeds.ndim == 1 else seeds[:, 0]).numpy()
    return ids


def _as_given(size: int, seed: int, epoch: int) -> Tensor:
    return torch.arange(size, device="cpu")


def _shuffled(size: int, seed: int, epoch: int) -> Tensor:
    random = Random(derive_key("shuffle", seed, epoch))
    return random.permutation(size)


def _local(groups: Ints, mix: int, seed: int, epoch: int) -> Tensor:
    """Return the order of seeds of ``groups``, whose numbers go from 0 without gaps."""
    size = len(groups)
    order = _shuffled(size, seed, epoch).numpy()
    num_groups = groups.max(initial=-1) + 1
    of_groups = Random(derive_key("groups", seed, epoch))
    place = of_groups.permutation(num_groups).numpy()
    together = place[groups[order]] // mix
    order = order[np.argsort(together, kind="stable")]
    # without it a seed of a small group would come first more often than one of a large group
    random = Random(derive_key("first seed", seed, epoch))
    begin = int(random.integers([0], max(size, 1)))
    return torch.from_numpy(np.roll(order, -begin))


def balanced_weights(labels: IdsLike) -> Tensor:
    """Return a weight for every label with which all classes are drawn equally often.

    The weight is 1 / the number of entries with this label, so the weights of a class add up to 1.
    For the seeds of a loader, pass the labels of the seeds:
    ``NodeFlowLoader(sampler, train, weights=balanced_weights(label[train]))``.

    Args:
        labels: an integer per seed, ``[num_seeds]``. Negative ones mean "no label": their weight is
            0.

    Returns float64 ``[num_seeds]``. Raises TypeError for labels that are not integers, and
    ValueError for labels of another shape, and where no entry has a label.

    >>> balanced_weights(torch.tensor([0, 0, 2, -1]))
    tensor([0.5000, 0.5000, 1.0000, 0.0000], dtype=torch.float64)
    """
    limits = np.iinfo(np.int64)
    array = as_ids(labels, "labels", limits.max, "class", lower=limits.min)
    if not (array >= 0).any():
        raise ValueError(
            f"labels must have an entry of 0 or more, got {describe(labels)}: no seed has a label"
        )
    _, classes, counts = np.unique(array, return_inverse=True, return_counts=True)
    return torch.from_numpy(np.where(array >= 0, 1.0 / counts[classes], 0.0))


def running_sums(weights: NumbersLike, num_seeds: int) -> Floats:
    """Return the sums of the first 1, 2, ... weights, float64; raise an error unless each is finite
    and at least 0.
    """
    array = as_array(weights, "weights", "numbers")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"weights must be numbers, one per seed, got dtype {array.dtype}")
    if array.shape != (num_seeds,):
        raise ValueError(
            f"weights must have one entry per seed ({num_seeds}), got shape {array.shape}; for "
            "weights by node pass weights[seeds]"
        )
    array = array.astype(np.float64)
    if (i := first_true(~(np.isfinite(array) & (array >= 0)))) is not None:
        raise ValueError(f"weights must be finite and at least 0, but weights[{i}] is {array[i]}")
    with np.errstate(over="ignore"):
        sums: Floats = np.cumsum(array)
    if num_seeds and not 0 < sums[-1] < np.inf:
        raise ValueError(f"weights must add up to a number above 0, got {sums[-1]}")
    return sums


def draw(sums: Floats, random: Random) -> Tensor:
    """Return as many positions as there are weights, int64: each is i with the probability weight i
    / their sum.
    """
    if not len(sums):
        return torch.zeros(0, dtype=torch.int64)
    numbers = np.arange(len(sums))
    uniform = random.uniform(numbers).numpy()
    # rounding may give the total itself, which lies past the last positive weight
    last = np.searchsorted(sums, sums[-1])
    positions = np.searchsorted(sums, uniform * sums[-1], side="right")
    return torch.from_numpy(np.minimum(positions, last))


def _weighted(sums: Floats, seed: int, epoch: int) -> Tensor:
    return draw(sums, Random(derive_key("weights", seed, epoch)))


def order_of(
    seeds: Tensor, sampler: SamplerBase, shuffle: bool | LocalShuffle, weights: NumbersLike | None
) -> SeedOrder:
    """Return the order of a loader's seeds; see ``NodeFlowLoader`` for the arguments and errors."""
    local = shuffle if isinstance(shuffle, LocalShuffle) else None
    if local and len(local.groups) != sampler.num_seeds:
        raise ValueError(
            f"shuffle must have a group per {sampler.seed_kind} ({sampler.num_seeds}), got "
            f"{len(local.groups)}"
        )
    facts = {"shuffle": int(as_flag(bool(local) or shuffle, "shuffle"))}
    if weights is not None:
        sums = running_sums(weights, len(seeds))
        facts["weights_hash"] = hash_times(torch.from_numpy(sums))
        return SeedOrder(partial(_weighted, sums), facts, repeats=True)
    if local:
        groups = local.groups[first_nodes(seeds)]
        facts["groups_hash"] = hash_ids(groups)
        facts["mix"] = local.mix
        numbers = np.unique(groups, return_inverse=True)[1]
        return SeedOrder(partial(_local, numbers, local.mix), facts)
    positions = _shuffled if shuffle else _as_given
    return SeedOrder(partial(positions, len(seeds)), facts)
