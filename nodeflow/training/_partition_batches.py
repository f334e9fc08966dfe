"""The batches of an epoch over a partition buffer, state after state."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from nodeflow._base.checks import as_count
from nodeflow.flow import NodeFlow
from nodeflow.loader import Epochs, NodeFlowLoader, Pass
from nodeflow.partitions import BufferState, PartitionBuffer


class PartitionBatches(Epochs):
    """Goes through the batches of the states of a partition buffer. It follows the protocol ``Batches``.

    An iteration is an epoch. A state is a pure function of the epoch and its number, and so are its batches: an epoch
    goes on at any batch, without reading the states before. The number of batches depends on the epoch, since states
    have different numbers of training nodes, and a last batch each that is smaller than the others.

    Args:
        buffer: writes nothing back, and has training nodes.
        batch_size: seeds per batch of ``make``.
        make: returns the loader of a state, whose first epoch are the batches of that state. They must not share the
            memory of the state.
    """

    def __init__(self, buffer: PartitionBuffer, batch_size: int, make: Callable[[BufferState], NodeFlowLoader]) -> None:
        super().__init__()
        self.buffer, self.batch_size = buffer, as_count(batch_size, "batch_size", 1)
        self._make = make
        self._counts: dict[int, list[int]] = {}

    def num_batches(self, epoch: int) -> int:
        """Return the number of batches of an epoch, counted from 0; reads no partition."""
        return sum(self._batches_per_state(epoch))

    def __iter__(self) -> Iterator[NodeFlow]:
        return self._iterate(self.begin())

    def _iterate(self, this: Pass) -> Generator[NodeFlow, None, None]:
        epoch, start = this.epoch, this.start
        counts = self._batches_per_state(epoch)
        ends = np.cumsum(counts)
        if start >= sum(counts):
            return
        first = int(np.searchsorted(ends, start, side="right"))  # the state that has batch ``start``
        done, number = start - int(ends[first]) + counts[first], start
        self.buffer.set_epoch(epoch, first)
        states: Any = iter(self.buffer)
        with closing(states):
            for state in states:
                if not counts[state.number]:
                    continue
                loader = self._make(state)
                loader.set_epoch(0)
                loader.load_state_dict({**loader.state_dict(), "batch_number": done})
                done, batches = 0, iter(loader)
                # closed before the next state, whose rows take the memory that threads of this loader read
                with closing(batches):  # type: ignore[type-var]  # iterations of a loader are generators
                    for batch in batches:
                        number += 1
                        self.reached(this, number)
                        yield batch

    def _batches_per_state(self, epoch: int) -> list[int]:
        if epoch not in self._counts:
            self._counts[epoch] = [-(-seeds // self.batch_size) for seeds in self.buffer.seeds_per_state(epoch)]
        return self._counts[epoch]

    def settings(self) -> dict[str, Any]:
        """Return what the batches depend on, by name."""
        buffer = self.buffer
        partitions = buffer.partitions.num_parts
        return {"batch_size": self.batch_size, "num_partitions": partitions, "slots": buffer.slots, "seed": buffer.seed}

    def __repr__(self) -> str:
        parts, slots = self.buffer.partitions.num_parts, self.buffer.slots
        states = len(self.buffer.order_of(max(self.epoch, 0)).states)
        return (
            f"PartitionBatches({slots} of {parts} partitions in memory, {states} states, {len(self)} batches of "
            f"{self.batch_size})"
        )
