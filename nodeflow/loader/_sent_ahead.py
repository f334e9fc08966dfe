"""Batches copied to a GPU while it computes the previous step.

Work that is queued on one CUDA stream runs in order, so a copy queued there would wait for the step
before it. Hence a second stream, with an event by which the step waits for its own batch alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from itertools import chain
from typing import Any

import torch

from nodeflow.flow import NamesLike, NodeFlow
from nodeflow.loader._epochs import Pass
from nodeflow.loader._loader import NodeFlowLoader


class SentAhead(NodeFlowLoader):
    """A ``NodeFlowLoader`` whose batches are copied to the GPU ``target`` one step ahead, on a
    stream of its own.

    A copy begins before the caller gets the batch before, so that it overlaps with the step on that
    batch. All else is as of the loader, but for ``device`` and ``pin_memory``. Not for samplers
    that add columns as late as possible (``SamplerBase.complete``): they would add them a step too
    early.
    """

    def __init__(self, *arguments: Any, target: torch.device, **options: Any) -> None:
        super().__init__(*arguments, pin_memory=target.type == "cuda", **options)
        self.target = target

    def iterate(
        self, ndata: NamesLike, fill: Callable[[NodeFlow], None] | None = None
    ) -> Generator[NodeFlow]:
        batches = super().iterate(ndata, fill)
        assert self._newest is not None  # it has begun just now
        return self._received(batches, self._newest)

    def _received(self, batches: Generator[NodeFlow], current: Pass) -> Generator[NodeFlow]:
        lane = self._lane()
        sent = deque[Any]()
        # one batch more is sent than the caller has got, so its copies run beside the caller's
        # step; the last turn has nothing to send, and gives the last batch
        for number, batch in enumerate(chain(batches, [None]), current.start):
            if batch is not None:
                sent.append(lane.send(batch))
            if sent and number > current.start:
                # the loader has counted the batch taken early, but the caller is one batch behind
                self.reached(current, number)
                yield lane.receive(sent.popleft())

    def _lane(self) -> Lane:
        return Lane(self.target)


class Lane:  # pragma: no cover: needs a GPU
    """Copies batches to a GPU on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def send(self, batch: NodeFlow) -> tuple[NodeFlow, torch.cuda.Event]:
        """Queue the copies of a batch in page-locked memory; return it there, and the event of its
        arrival.
        """
        # the copies wait for queued work: it may still read memory that the host let go of and
        # torch gives to them
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            moved = batch.to(self._device, non_blocking=True)
        return moved, self._stream.record_event()

    def receive(self, sent: tuple[NodeFlow, torch.cuda.Event]) -> NodeFlow:
        """Make the work that is queued from now on wait for a batch; return it."""
        batch, arrived = sent
        torch.cuda.current_stream(self._device).wait_event(arrived)
        return batch
