"""Division of the seeds of a step among several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import (
    Ints,
    as_array,
    as_count,
    as_ids,
    as_int,
    check_one_of,
)
from nodeflow._core.base.types import IdsLike
from nodeflow._core.peers.peers import ALONE, Peers
from nodeflow._core.random import hash_ids
from nodeflow._processes.default_group import peers_of
from nodeflow.graph import Graph
from nodeflow.loader._order import first_nodes
from nodeflow.sampling.base import SamplerBase

Owner: TypeAlias = "IdsLike | Callable[[Ints], Any]"
"""The rank that owns each possible seed, one entry per seed, or a function from ids to ranks."""


class Share(NamedTuple):
    """One process's part of a step."""

    step: Tensor  # numbers of all seeds of the step, int64 ``[S]``
    rows: Ints | None  # which of them are this process's, int64 ``[B]``, ascending; None: all

    @property
    def ours(self) -> Tensor:
        """Numbers of this process's seeds, int64 ``[B]``."""
        return self.step if self.rows is None else self.step[torch.from_numpy(self.rows)]


class Shares(NamedTuple):
    """The division of the seeds of every step among the processes."""

    batch_size: int  # seeds of a step per process
    rank: int = 0
    world_size: int = 1
    together: int = 1  # number of consecutive seeds of a step that stay on one process
    # rank that owns each seed of the loader, ``[num_seeds]``; None: even shares
    owner: Ints | None = None

    @property
    def step_size(self) -> int:
        return self.batch_size * self.world_size

    def num_steps(self, num_seeds: int, drop_last: bool) -> int:
        return num_seeds // self.step_size if drop_last else -(-num_seeds // self.step_size)

    def of(self, order: Tensor, number: int) -> Share:
        """Return this process's share of step ``number`` of an epoch whose seeds have the order
        ``order``.
        """
        step = order[number * self.step_size : (number + 1) * self.step_size]
        if self.world_size == 1:
            return Share(step, None)
        size = len(step)
        unit = self.together
        # a unit belongs to the owner of its first seed
        if self.owner is not None:
            owner = np.repeat(self.owner[step[::unit].numpy()], unit)[:size]
            return Share(step, np.flatnonzero(owner == self.rank))
        # consecutive shares of the step, so that they are those of one process with a larger batch;
        # the first ``more`` processes take one unit more
        least, more = divmod(-(-size // unit), self.world_size)
        first = least * self.rank + min(self.rank, more)
        end = first + least + (self.rank < more)
        return Share(step, np.arange(min(first * unit, size), min(end * unit, size)))

    def seed_weight(self, num_seeds: int, number: int) -> float:
        """Return the weight of a seed of step ``number``: see ``NodeFlowLoader.seed_weight``."""
        if number < 0:
            raise RuntimeError(
                "seed_weight belongs to the batch that was taken last, and this epoch has given "
                "none"
            )
        return self.world_size / min(self.step_size, num_seeds - number * self.step_size)


def as_group(rank: int | None, world_size: int | None, graph: Graph) -> tuple[int, int]:
    """Return ``(rank, world_size)``, checked; see ``NodeFlowLoader`` for the defaults."""
    peers = peers_of(graph)
    if rank is None and world_size is None:
        return peers.rank, peers.size
    if rank is None or world_size is None:
        raise ValueError(
            f"rank or world_size is missing: pass both, or neither to take both from the default "
            f"process group, got {rank} and {world_size}"
        )
    # processes that each hold a whole graph may share steps or not; those that hold one together
    # share them
    if graph.peers.size > 1 and (rank, world_size) != (peers.rank, peers.size):
        raise ValueError(
            f"rank and world_size must be {peers.rank} and {peers.size}, those of the processes "
            f"that hold the graph, or be left out; got {rank} and {world_size}"
        )
    size = as_count(world_size, "world_size", 1)
    number = as_int(rank, "rank")
    if not 0 <= number < size:
        raise ValueError(
            f"rank must be from 0 to {size - 1}, since world_size is {size}; got {number}"
        )
    return number, size


def sharing(graph: Graph, shares: Shares) -> Peers:
    """Return the processes that share the steps of a loader, as far as they can be asked.

    Those of the graph or of torch's default group; of others, whose numbers a user has passed,
    nothing is known.
    """
    peers = peers_of(graph)
    # a process made by fork inherits the group of its parent, but is no member: to ask would hang
    shared = (peers.rank, peers.size) == (shares.rank, shares.world_size) and not peers.inherited
    return peers if shared else ALONE


def as_facts(settings: Mapping[str, Any], shares: Shares, **more: int) -> dict[str, str]:
    """Return what must be the same on all processes that share steps, as text."""
    owner = None if shares.owner is None else f"hash {hash_ids(shares.owner):#018x}"
    return {name: repr(value) for name, value in {**settings, **more, "owner": owner}.items()}


def join(
    peers: Peers, shares: Shares, settings: Callable[[], dict[str, Any]], workers: tuple[int, int]
) -> object:
    """Make sure that all processes draw the same batches in the same order; return a channel for a
    thread that does.
    """
    num_workers, prefetch = workers
    # draws of several threads would come in another order on each process
    if num_workers > 1 and peers.size > 1:
        raise ValueError(
            "num_workers must be 0 or 1 for a graph that lies on several processes, which draw "
            f"each batch together, got {num_workers}"
        )
    work = {"num_workers": num_workers, "prefetch": prefetch}
    # before the first draw: processes with other arguments would wait for each other for ever
    peers.agree("arguments of NodeFlowLoader", lambda: as_facts(settings(), shares, **work))
    return peers.channel() if num_workers and prefetch else None


def shares_of(
    sampler: SamplerBase,
    seeds: Tensor,
    batch_size: int,
    share: str | Owner,
    process: tuple[int | None, int | None],
) -> Shares:
    """Return how the processes share the seeds of a loader; see ``NodeFlowLoader`` for the
    arguments and errors.
    """
    group = as_group(*process, sampler.graph)
    peers = sampler.graph.peers
    if isinstance(share, str):
        check_one_of(share, "share", ("even", "owned"))
        if share == "even":
            return Shares(batch_size, *group, sampler.seeds_together)
        # processes that are not those of the graph each have all of it
        if peers.size != group[1] or sampler.seed_kind not in ("node", "edge"):
            raise ValueError(
                "share='owned' needs a graph that lies on several processes; for a whole graph "
                f"pass the rank that owns each {sampler.seed_kind}, as an array or a function of "
                "ids: share=ranks"
            )
        share = partial(peers.owners, kind=sampler.seed_kind)
    # a row of several nodes is one unit of work, so it has one owner
    owners = _owners(share, first_nodes(seeds), sampler, group[1])
    return Shares(batch_size, *group, sampler.seeds_together, owners)


def _owners(owner: Owner, ids: Ints, sampler: SamplerBase, world_size: int) -> Ints:
    """The checked owners of the seeds ``ids``, int64 of the same length."""
    kind = sampler.seed_kind
    values = owner
    num_ranks = sampler.num_seeds
    if callable(owner):
        values = owner(ids)
        num_ranks = len(ids)
    ranks = as_array(values, "share")
    if ranks.shape != (num_ranks,):
        raise ValueError(
            f"share must be even, owned, one rank per {kind}, or a function that returns one per "
            f"id: {num_ranks} ranks, got shape {ranks.shape}"
        )
    if not callable(owner):
        ranks = ranks[ids]  # of other seeds it may hold anything
    return as_ids(ranks, f"share of the {kind}s", world_size, "rank")
