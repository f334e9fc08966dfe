"""Batches that travel to a GPU while it computes the step before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from nodeflow.flow import NodeFlow
from nodeflow.loader import NodeFlowLoader


class SentAhead(NodeFlowLoader):
    """A ``NodeFlowLoader`` whose batches are copied to a GPU one step ahead, on a stream of its own.

    A copy begins before the caller gets the batch before, so that it overlaps with the step on that batch. The batches
    and their order are those of the loader. ``state_dict`` counts the batches that the caller got. Not for samplers
    that add columns as late as possible (``SamplerBase.complete``): they would add them a step too early.

    Args:
        arguments: as for ``NodeFlowLoader``, without ``device``.
        target: the GPU.
        options: as for ``NodeFlowLoader``, without ``pin_memory``.
    """

    def __init__(self, *arguments: Any, target: torch.device, **options: Any) -> None:
        super().__init__(*arguments, pin_memory=target.type == "cuda", **options)
        self.target = target
        self._sent = 0  # batches that were taken from the loader and not given yet

    def state_dict(self) -> dict[str, Any]:
        """Return the state from which the next batch that the caller gets is the same: see ``NodeFlowLoader``."""
        state = super().state_dict()
        return {**state, "batch_number": state["batch_number"] - self._sent}

    @property
    def seed_weight(self) -> float:
        """Weight of every seed of the last batch that the caller got: see ``NodeFlowLoader``."""
        return self._shares.seed_weight(len(self.seeds), self.batch_number - self._sent - 1)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration epoch ``epoch`` (counted from 0), from its first batch."""
        super().set_epoch(epoch)
        self._sent = 0

    def load_state_dict(self, state: Any) -> None:
        """Make the next iteration go on where ``state`` was taken: see ``NodeFlowLoader``."""
        super().load_state_dict(state)
        self._sent = 0

    def __iter__(self) -> Iterator[NodeFlow]:
        self._sent = 0
        return self._given(super().__iter__())

    def _given(self, batches: Iterator[NodeFlow]) -> Iterator[NodeFlow]:
        lane = self._lane()
        coming = next(batches, None)
        arrival = None if coming is None else lane.send(coming)
        while arrival is not None:
            coming = next(batches, None)
            self._sent = int(coming is not None)
            following = None if coming is None else lane.send(coming)
            yield lane.receive(arrival)
            arrival = following

    def _lane(self) -> Lane:
        return Lane(self.target)


class Lane:
    """Copies batches to a GPU on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)

    def send(self, batch: NodeFlow) -> tuple[NodeFlow, torch.cuda.Event]:
        """Queue the copies of a batch in page-locked memory; return it there, and the event of its arrival.

        The copies wait for the work that is queued now. So they never write into memory that this work still reads,
        which torch may give to them once the host has let go of it.
        """
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            moved = batch.to(self._device, non_blocking=True)
        return moved, self._stream.record_event()

    def receive(self, sent: tuple[NodeFlow, torch.cuda.Event]) -> NodeFlow:
        """Make the work that is queued from now on wait for a batch; return it."""
        batch, arrived = sent
        torch.cuda.current_stream(self._device).wait_event(arrived)
        return batch
