"""The batches of an epoch over a partition buffer, state after state."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from nodeflow._base.checks import as_count, describe
from nodeflow.flow import NodeFlow
from nodeflow.loader import NodeFlowLoader
from nodeflow.storage import BufferState, PartitionBuffer


class PartitionBatches:
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
        self.buffer, self.batch_size = buffer, as_count(batch_size, "batch_size", 1)
        self._make = make
        self._epoch, self._next, self._resume = -1, 0, False
        self._counts: dict[int, list[int]] = {}
        self._newest: object = None  # the iteration that may update _epoch and _next

    def num_batches(self, epoch: int) -> int:
        """Return the number of batches of an epoch, counted from 0; reads no partition."""
        return sum(self._batches_per_state(epoch))

    def __len__(self) -> int:
        """Number of batches of the epoch that was set or begun last, of epoch 0 before that."""
        return self.num_batches(max(self._epoch, 0))

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch ``epoch`` (counted from 0), from its first batch."""
        self._epoch, self._next, self._resume, self._newest = as_count(epoch, "epoch"), 0, True, None

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the number of the next batch, and what the batches depend on."""
        return {"epoch": self._epoch, "batch_number": self._next, **self._settings()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Make the next iteration go on where ``state`` was taken; raises ValueError for a state of other batches."""
        if not isinstance(state, Mapping) or not {"epoch", "batch_number"} <= set(state):
            raise ValueError(f"state must be what state_dict returned, got {describe(state)}")
        for name, value in self._settings().items():
            if state.get(name) != value:
                raise ValueError(f"the state is of batches with {name} = {state.get(name)!r}, got {value!r}")
        epoch = as_count(state["epoch"], "state['epoch']", -1)
        number = as_count(state["batch_number"], "state['batch_number']")
        if number > (count := self.num_batches(max(epoch, 0))):
            raise ValueError(f"state['batch_number'] is {number}, but epoch {epoch} has {count} batches")
        self._epoch, self._next, self._newest = epoch, number, None
        self._resume = epoch >= 0 and number < count  # the state of a finished epoch goes on with the next one

    def __iter__(self) -> Iterator[NodeFlow]:
        if self._resume:
            self._resume = False
        else:
            self._epoch, self._next = self._epoch + 1, 0
        self._newest = object()
        return self._iterate(self._epoch, self._next, self._newest)

    def _iterate(self, epoch: int, start: int, this: object) -> Generator[NodeFlow, None, None]:
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
                        if self._newest is this:  # an older iteration must not undo set_epoch or a newer one
                            self._next = number
                        yield batch

    def _batches_per_state(self, epoch: int) -> list[int]:
        if epoch not in self._counts:
            self._counts[epoch] = [-(-seeds // self.batch_size) for seeds in self.buffer.seeds_per_state(epoch)]
        return self._counts[epoch]

    def _settings(self) -> dict[str, Any]:
        return {
            "batch_size": self.batch_size, "num_partitions": self.buffer.partitions.num_partitions,
            "slots": self.buffer.slots, "seed": self.buffer.seed,
        }  # fmt: skip

    def __repr__(self) -> str:
        parts, slots = self.buffer.partitions.num_partitions, self.buffer.slots
        states = len(self.buffer.order_of(max(self._epoch, 0)).states)
        return (
            f"PartitionBatches({slots} of {parts} partitions in memory, {states} states, {len(self)} batches of "
            f"{self.batch_size})"
        )
