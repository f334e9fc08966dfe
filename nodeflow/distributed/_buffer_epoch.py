"""An epoch of a ``PartitionBuffer``: states in turn; the next is read and the last written in the
background.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_ids
from nodeflow._core.base.types import IdsLike
from nodeflow._core.random import Random, derive_key
from nodeflow._core.runtime.workers import Workers
from nodeflow._files.disk.arrays import draft_of, map_array
from nodeflow._files.disk.manifest import MANIFEST, Manifest
from nodeflow.distributed._orders import Order
from nodeflow.distributed._partitions import Partitions
from nodeflow.distributed._slots import NODES, EdgeSlots, NodeSlots, StateEdges
from nodeflow.graph import Graph


@dataclass
class BufferCounters:
    """Counts of a ``PartitionBuffer``, over all of its epochs.

    ``bytes_read`` are those of node columns: (slots + swaps) times the bytes of a part in every
    epoch; ``edge_bytes_read`` those of edges and their columns. ``bytes_written`` are those of
    writable columns. ``seconds_filling`` went by before the first state of an epoch and after the
    last, when there is nothing to compute. In between, ``seconds_reading`` are those of reading,
    writing and making graphs for coming states, and ``seconds_waited`` those for which the caller
    waited. ``states`` counts the states that were given out.
    """

    bytes_read: int = 0
    edge_bytes_read: int = 0
    bytes_written: int = 0
    swaps: int = 0
    states: int = 0
    epochs: int = 0
    seconds_filling: float = 0.0
    seconds_reading: float = 0.0
    seconds_waited: float = 0.0

    @property
    def hidden(self) -> float:
        """The share of ``seconds_reading`` that went by behind the caller's own work; 1 where
        nothing was read.

        >>> BufferCounters(seconds_reading=4.0, seconds_waited=1.0).hidden
        0.75
        """
        if not self.seconds_reading:
            return 1.0
        return max(1 - self.seconds_waited / self.seconds_reading, 0.0)


class BufferState:
    """A state of a ``PartitionBuffer``: the parts that are in memory, until the next state is asked
    for.

    Local node ``slot * size + r`` is row r of the part in that slot, so a part that stays keeps its
    ids. With several types they are those of the first type slot after slot, then of the next. A
    part with one node less of a type than others ends it with a local node that stands for none: it
    has no edges, its parent id is -1, its rows are zeros. (There are none where ``num_parts``
    divides the number of nodes.) The graph has all types and relations.

    ``nodes``, int64 ``[slots * size]``, is the parent id of every local node. ``number`` counts the
    states of the epoch from 0; ``partitions`` are those in the slots; ``seed`` is a number of its
    own for this state, for loaders and samplers, whose draws would repeat from state to state
    otherwise.

    >>> import tempfile
    >>> from nodeflow import distributed
    >>> parts = distributed.write_partitions(Graph.from_edges([0, 1], [1, 0]), tempfile.mkdtemp(), 2, progress=False)
    >>> [state.graph for state in distributed.PartitionBuffer(parts.folder, slots=2)]
    [Graph(2 nodes, 2 edges)]
    """

    def __init__(
        self,
        parts: Partitions,
        order: Order,
        number: int,
        edges: StateEdges,
        seeds: Ints | None,
        seed: int,
    ) -> None:
        self._parts = parts
        self._order = order
        self._edges = edges
        self._seeds = seeds
        self._over = False
        self.number = number
        self.partitions = order.states[number]
        self.seed = seed
        parents = parts.parents.reshape(parts.num_parts, parts.size)[list(self.partitions)]
        of_types = [
            parents[:, ids.start : ids.stop].reshape(-1) for ids in parts.part.nodes.values()
        ]
        self.nodes = torch.from_numpy(np.concatenate(of_types).astype(np.int64))

    @property
    def graph(self) -> Graph:
        """The graph of all edges between resident parts, with the columns asked for.

        Its node columns are the memory of the buffer. Write into writable ones only, whose rows go
        back to the folder when the state ends; a new column in their place is not seen. Raises
        RuntimeError after the state has ended.
        """
        if self._over:
            raise RuntimeError(
                f"state {self.number} has ended, and its memory holds other parts now; use a state "
                "before the next one is asked for, and copy what you need later"
            )
        return self._edges.graph

    @property
    def seeds(self) -> Tensor:
        """The local ids of the training nodes of this state, int64, ascending; over an epoch each
        comes once.

        Raises ValueError where no training nodes were given.
        """
        if self._seeds is None:
            raise ValueError(
                "there are no training nodes; pass train to write_partitions or to PartitionBuffer"
            )
        return torch.from_numpy(self._seeds)

    @property
    def edges(self) -> Tensor:
        """The ids in ``graph`` of the edges to train on in this state, int64; over an epoch each
        comes once.

        Raises ValueError for an order that leaves out pairs of parts: some edges would never come.
        """
        if not self._order.complete:
            missing = int((self._order.bucket_state < 0).sum())
            raise ValueError(
                f"edges cannot be seeds with this order: no state holds {missing} of the "
                f"{self._order.bucket_state.size} pairs of parts; take one that has all, such as "
                "order='comet'"
            )
        bucket = self._edges.buckets // max(len(self._parts.schema.relations), 1)
        dst, src = np.divmod(bucket, self._order.num_parts)
        trained = self._order.bucket_state[src, dst] == self.number
        of_edges = np.repeat(trained, np.diff(self._edges.begin))
        return torch.from_numpy(np.flatnonzero(of_edges))

    def parent_edges(self, eid: IdsLike) -> Tensor:
        """Return the parent ids of edges of ``graph``, int64 ``[k]``, read from the folder."""
        # The folder has ids by bucket; a state has its edges bucket by bucket, so an edge is as far
        # from the beginning of its bucket here as there.
        begin = self._edges.begin
        local = as_ids(eid, "eid", int(begin[-1]), "edge")
        bucket = np.searchsorted(begin, local, side="right") - 1
        place = self._parts.bucket_ptr[self._edges.buckets[bucket]] + local - begin[bucket]
        ids = map_array(self._parts.folder, self._parts.manifest.arrays["edge_ids"])
        return torch.from_numpy(np.asarray(ids[place]).astype(np.int64))

    @property
    def visible_edges(self) -> float:
        """The share of the in-edges of resident nodes that the state holds; 1 where they have
        none.
        """
        return self._parts.visible_share(self.partitions)

    def end(self) -> None:
        """Mark the state as ended."""
        self._over = True

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, self.partitions))
        return f"BufferState({self.number}: parts {numbers}; {int(self._edges.begin[-1])} edges)"


@dataclass
class BufferEpoch:
    """Runs an epoch. One thread beside the caller's reads, writes and makes graphs; ``close`` ends
    it.

    Between two states the caller's thread exchanges the parts that go with those that come. The
    other thread then writes those that went before it reads any, so one that comes back at once is
    read as it was written.
    """

    parts: Partitions
    order: Order
    nodes: NodeSlots
    edges: EdgeSlots
    counters: BufferCounters
    train: Ints | None
    key: tuple[int, int]
    prefetch: bool

    def __post_init__(self) -> None:
        self._seed_states: Ints | None = None
        if self.train is not None:
            self._seed_states = seed_states(self.parts, self.order, self.train, self.key)
        self._workers = Workers(1, "nodeflow-partitions")
        self._stop = threading.Event()
        self._state: BufferState | None = None
        self.nodes.begin_epoch(self.parts)

    def states(self, start: int = 0) -> Iterator[BufferState]:
        """Yield the states in turn from number ``start`` on. Raises what the thread raises."""
        self.check_open()
        order = self.order
        counters = self.counters
        begun = perf_counter()
        for slot, part in enumerate(order.states[start]):
            counters.bytes_read += self.nodes.read(part, slot)
        edges = self._load_edges(start)
        counters.seconds_filling += perf_counter() - begun
        gone: list[int] = []
        for k in range(start, len(order.states)):
            # the thread touches only spare places, so the caller may write into the slots meanwhile
            prepare = partial(self._prepare, k + 1, gone)
            wait: Callable[[], StateEdges | None] = prepare
            if self.prefetch:
                wait = self._workers.submit(prepare)
            self.nodes.fill(edges.graph)
            seed = derive_key("state", *self.key, k) >> 1
            self._state = BufferState(self.parts, order, k, edges, self._seeds(k), seed)
            counters.states += 1
            yield self._state
            self.check_open()
            self._state.end()
            begun = perf_counter()
            coming = wait()
            if coming is not None:
                edges = coming
                gone = self._exchange(k + 1)
            counters.seconds_waited += perf_counter() - begun

    def commit(self) -> None:
        """Write the parts that are in the slots, and make all new files those of the folder."""
        begun = perf_counter()
        for slot, part in enumerate(self.order.states[-1]):
            self.counters.bytes_written += self.nodes.write(part, slot)
        written = self.nodes.written
        manifest = self.parts.manifest
        if written:
            facts = {**manifest.facts, "epoch": self.parts.epoch + 1}
            committed = replace(manifest, arrays={**manifest.arrays, **written}, facts=facts)
            committed.publish(self.parts.folder, written.values())
            remove_strays(self.parts.folder, committed)
        self.counters.seconds_filling += perf_counter() - begun

    def check_open(self) -> None:
        """Raise RuntimeError after ``close``."""
        if self._stop.is_set():
            raise RuntimeError(
                "this epoch was ended by another loop over the same PartitionBuffer, by "
                "set_epoch() or by close(); loop over one epoch at a time"
            )

    def close(self) -> None:
        """Stop the thread and wait for it."""
        if not self._stop.is_set():
            self._stop.set()
            self._workers.stop()
            if self._state is not None:
                self._state.end()

    def _seeds(self, k: int) -> Ints | None:
        """The local ids of the training nodes of state k."""
        if self.train is None:
            return None
        size = self.parts.size
        # a seed belongs to one state, whose slots give it its local id there
        slot_of = np.full(self.order.num_parts, -1, np.int64)
        slot_of[list(self.order.states[k])] = np.arange(self.order.slots)
        rows = self.train[self._seed_states == k]
        return np.sort(self.parts.local_ids(self.order.slots, slot_of[rows // size], rows % size))

    def _prepare(self, k: int, gone: list[int]) -> StateEdges | None:
        """Write the parts that went, and read those of state k; None after the last state."""
        begun = perf_counter()
        counters = self.counters
        try:
            # writes come first: reads reuse the same spare places, and a part may come back at once
            # what has gone lies in the spare places, in the order of its slots
            for place, part in enumerate(gone, self.order.slots):
                self.check_open()
                counters.bytes_written += self.nodes.write(part, place)
            if k == len(self.order.states):
                return None
            for place, part in enumerate(self.order.incoming[k], self.order.slots):
                self.check_open()
                counters.bytes_read += self.nodes.read(part, place)
            self.check_open()
            return self._load_edges(k)
        finally:
            counters.seconds_reading += perf_counter() - begun

    def _load_edges(self, k: int) -> StateEdges:
        edges, bytes_read = self.edges.load(self.order.states[k])
        self.counters.edge_bytes_read += bytes_read
        return edges

    def _exchange(self, k: int) -> list[int]:
        """Put the parts of state k into their slots; return those that were there, as they lie in
        spare places.
        """
        # a spare place holds the part that comes before, and the part that goes after
        old, new = self.order.states[k - 1 : k + 1]
        slots = [slot for slot in range(self.order.slots) if old[slot] != new[slot]]
        for place, slot in enumerate(slots, self.order.slots):
            self.nodes.exchange(slot, place)
        self.counters.swaps += len(slots)
        return [old[slot] for slot in slots]


def seed_states(partitions: Partitions, order: Order, train: Ints, key: tuple[int, int]) -> Ints:
    """Return for every training row the state that trains on it: a random one of those that hold
    its part.

    ``key`` is the seed and the number of the epoch. Raises ValueError for a row whose part no state
    holds.
    """
    holding = [order.holding(part) for part in range(order.num_parts)]
    counts = np.array(list(map(len, holding)))
    number = train // partitions.size
    missing = train[counts[number] == 0]
    if len(missing):
        row = missing[0]
        raise ValueError(
            f"training node {partitions.parents[row]} is in part {row // partitions.size}, which "
            "no state of the order holds"
        )
    # by the row alone and not by the state that asks: a resumed epoch draws the same
    random = Random(derive_key("seeds", *key))
    drawn = random.integers(train, counts[number]).numpy()
    states: Ints = np.concatenate(holding).astype(np.int64)
    # where the states that hold a part begin, and how many after that
    chosen: Ints = states[(np.cumsum(counts) - counts)[number] + drawn]
    return chosen


def remove_strays(folder: Path, manifest: Manifest) -> None:
    """Remove files of node columns that the manifest does not name, and what a killed process left
    of a manifest.
    """
    draft_of(folder / MANIFEST).unlink(missing_ok=True)
    named = {plain.file for array in manifest.arrays.values() for plain in array.plain}
    for path in (folder / NODES).glob("*"):
        if f"{NODES}/{path.name}" not in named:
            path.unlink(missing_ok=True)
