"""One epoch of a partition buffer: states in turn; the next one is read and the last one written in the background."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._disk.manifest import Manifest
from nodeflow._runtime.workers import Workers
from nodeflow.partitions._buffer_state import BufferCounters, BufferState
from nodeflow.partitions._edge_slots import EdgeSlots, StateEdges
from nodeflow.partitions._node_slots import NodeSlots
from nodeflow.partitions._orders import Order
from nodeflow.partitions._partition_files import NODES
from nodeflow.partitions._partitions import Partitions
from nodeflow.random import Random, derive_key


class BufferEpoch:
    """Runs an epoch. One thread beside the caller's reads, writes and makes graphs; ``close`` ends it.

    Between two states the caller's thread exchanges the partitions that go with those that come. The other thread then
    writes those that went before it reads any, so one that comes back at once is read as it was written.
    """

    def __init__(
        self,
        partitions: Partitions,
        order: Order,
        slots: tuple[NodeSlots, EdgeSlots],
        counters: BufferCounters,
        train: Ints | None,
        key: tuple[int, int],
        *,
        prefetch: bool,
    ) -> None:
        self._parts, self._order, self._counters, self._prefetch = partitions, order, counters, prefetch
        (self._nodes, self._edges), self._train, self._key = slots, train, key
        self._seed_states = None if train is None else seed_states(partitions, order, train, key)
        self._workers = Workers(1, "nodeflow-partitions")
        self._stop = threading.Event()
        self._state: BufferState | None = None
        self._nodes.begin_epoch(partitions)

    def states(self, start: int = 0) -> Iterator[BufferState]:
        """Yield the states in turn from number ``start`` on. Raises what the thread raises."""
        order, counters = self._order, self._counters
        begun = perf_counter()
        for slot, partition in enumerate(order.states[start]):
            counters.bytes_read += self._nodes.read(partition, slot, spare=False)
        edges = self._load_edges(start)
        counters.seconds_filling += perf_counter() - begun
        gone: list[int] = []
        for k in range(start, len(order.states)):
            prepare = partial(self._prepare, k + 1, gone)
            wait = self._workers.submit(prepare) if self._prefetch else prepare
            edges.graph.ndata.update(self._nodes.columns())
            seed = derive_key("state", *self._key, k) >> 1
            self._state = BufferState(self._parts, order, k, edges, self._seeds(k), seed)
            counters.states += 1
            yield self._state
            self._state.end()
            begun = perf_counter()
            coming = wait()
            if coming is not None:
                edges = coming
                gone = self._exchange(k + 1)
            counters.seconds_waited += perf_counter() - begun

    def commit(self) -> None:
        """Write the partitions that are in the slots, and make all new files those of the folder."""
        begun = perf_counter()
        for slot, partition in enumerate(self._order.states[-1]):
            self._counters.bytes_written += self._nodes.write(partition, slot, spare=False)
        written, manifest = self._nodes.written, self._parts.manifest
        if written:
            facts = {**manifest.facts, "epoch": self._parts.epoch + 1}
            committed = replace(manifest, arrays={**manifest.arrays, **written}, facts=facts)
            committed.publish(self._parts.folder, written.values())
            remove_strays(self._parts, committed)
        self._counters.seconds_filling += perf_counter() - begun

    def check_open(self) -> None:
        """Raise RuntimeError after ``close``."""
        if self._stop.is_set():
            raise RuntimeError(
                "this epoch was ended by another loop over the same PartitionBuffer, by set_epoch() or by close(); "
                "loop over one epoch at a time"
            )

    def close(self) -> None:
        """Stop the thread and wait for it; a second call does nothing."""
        if not self._stop.is_set():
            self._stop.set()
            self._workers.stop()
            if self._state is not None:
                self._state.end()

    def _seeds(self, k: int) -> Ints | None:
        """The local ids of the training nodes of state k."""
        if self._train is None:
            return None
        size = self._parts.size
        slot_of = np.full(self._order.num_parts, -1, np.int64)
        slot_of[list(self._order.states[k])] = np.arange(self._order.slots)
        rows = self._train[self._seed_states == k]
        local: Ints = np.sort(slot_of[rows // size] * size + rows % size)
        return local

    def _prepare(self, k: int, gone: list[int]) -> StateEdges | None:
        """Write the partitions that went, and read those of state k; None after the last state."""
        begun, counters = perf_counter(), self._counters
        try:
            for place, partition in enumerate(gone):
                self._go_on()
                counters.bytes_written += self._nodes.write(partition, place)
            if k == len(self._order.states):
                return None
            for place, partition in enumerate(self._order.incoming[k]):
                self._go_on()
                counters.bytes_read += self._nodes.read(partition, place)
            self._go_on()
            return self._load_edges(k)
        finally:
            counters.seconds_reading += perf_counter() - begun

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise InterruptedError("the epoch was left")  # nobody waits for it any more

    def _load_edges(self, k: int) -> StateEdges:
        edges, bytes_read = self._edges.load(self._order.states[k])
        self._counters.edge_bytes_read += bytes_read
        return edges

    def _exchange(self, k: int) -> list[int]:
        """Put the partitions of state k into their slots; return those that were there, as they lie in spare places."""
        old, new = self._order.states[k - 1 : k + 1]
        slots = [slot for slot in range(self._order.slots) if old[slot] != new[slot]]
        for place, slot in enumerate(slots):
            self._nodes.exchange(slot, place)
        self._counters.swaps += len(slots)
        return [old[slot] for slot in slots]


def seed_states(partitions: Partitions, order: Order, train: Ints, key: tuple[int, int]) -> Ints:
    """Return for every training row the state that trains on it: a random one of those that hold its partition.

    ``key`` is the seed and the number of the epoch. Raises ValueError for a row whose partition no state holds.
    """
    holding = [order.holding(partition) for partition in range(order.num_parts)]
    counts = np.array([len(states) for states in holding])
    number = train // partitions.size
    if len(missing := np.flatnonzero(counts[number] == 0)):
        row = train[missing[0]]
        raise ValueError(
            f"training node {partitions.parents[row]} is in partition {row // partitions.size}, which no state of the "
            "order holds"
        )
    drawn = Random(derive_key("seeds", *key)).integers(train, counts[number]).numpy()
    padded = np.array([states + [0] * (counts.max() - len(states)) for states in holding])
    chosen: Ints = padded[number, drawn]
    return chosen


def remove_strays(partitions: Partitions, manifest: Manifest) -> None:
    """Remove files of node columns that the manifest does not name: of older epochs, or of one that was cut off."""
    named = {plain.file for array in manifest.arrays.values() for plain in array.plain}
    folder = partitions.folder / NODES
    for path in folder.iterdir() if folder.is_dir() else ():
        if f"{NODES}/{path.name}" not in named:
            path.unlink(missing_ok=True)
