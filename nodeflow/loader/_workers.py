"""The threads of a loader: they draw batches ahead of the caller, or several at once when it asks
for one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress

import torch

from nodeflow._core.runtime.threads import run_all
from nodeflow._core.runtime.workers import Workers
from nodeflow.flow import NodeFlow


class Timings:
    """Seconds per batch of one iteration of a loader; a number in each list for every batch that
    the caller got.

    Attributes:
        sampling: seconds that the draw of each batch took, in whichever thread drew it.
        fetching: seconds of copying the columns of ``ndata`` and ``edata``, of page-locking, and of
            the columns that ``sampler.complete`` adds.
        waiting: seconds between the caller's request and the batch. They hold all of ``transform``
            and of moves to a device; without workers they hold ``sampling`` and ``fetching`` too.

    With workers, sampling and fetching overlap with the caller's own work, and with each other:
    their sum can exceed the time of the epoch. ``sum(timings.waiting)`` is what the loader costs
    the epoch; more workers help while it is not small. Moves to a GPU are counted until they are
    queued.

    >>> timings = Timings()
    >>> timings.add((0.25, 0.0625), 0.5)
    >>> timings
    Timings(1 batch: sampling 0.25 s, fetching 0.0625 s, waiting 0.5 s)
    """

    def __init__(self) -> None:
        self.sampling: list[float] = []
        self.fetching: list[float] = []
        self.waiting: list[float] = []

    def add(self, worked: tuple[float, float], waited: float) -> None:
        """Add a batch: its seconds of sampling and fetching, and the seconds that the caller waited
        for it.
        """
        self.sampling.append(worked[0])
        self.fetching.append(worked[1])
        self.waiting.append(waited)

    def __len__(self) -> int:
        return len(self.waiting)

    def __repr__(self) -> str:
        parts = ((name, sum(getattr(self, name))) for name in ("sampling", "fetching", "waiting"))
        text = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in parts)
        return f"Timings({len(self)} batch{'es' * (len(self) != 1)}: {text})"


Timed = tuple[NodeFlow, float, float]
"""A batch, and the seconds of sampling it and of fetching its columns."""
Draw = Callable[[], Timed]


class TogetherOnRequest:
    """Stands for ``Workers`` where nothing is drawn while the caller is busy: the first result that
    is asked for draws up to ``count`` batches at once.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting = deque[tuple[Draw, list[Timed | Exception]]]()

    def submit(self, draw: Draw) -> Draw:
        """Keep a draw for later; return a function that gives its batch, or raises its error."""
        outcome: list[Timed | Exception] = []
        self._waiting.append((draw, outcome))

        def drawn() -> Timed:
            if not outcome:
                self._draw()
            batch = outcome.pop()
            # an error is raised when the turn of its batch comes: those before are given first
            if isinstance(batch, Exception):
                raise batch
            return batch

        return drawn

    def _draw(self) -> None:
        count = min(self._count, len(self._waiting))
        draws = [self._waiting.popleft() for _ in range(count)]
        inference = torch.is_inference_mode_enabled()
        recorded = torch.is_grad_enabled()

        def draw_one(k: int) -> None:
            draw, outcome = draws[k]
            try:  # torch keeps these modes per thread
                with torch.inference_mode(inference), torch.set_grad_enabled(recorded):
                    outcome.append(draw())
            except Exception as error:
                outcome.append(error)

        # the caller waits meanwhile, so its threads are free
        run_all(draw_one, count, count)

    def stop(self) -> None:
        """Drop what nobody has asked for."""
        self._waiting.clear()


def draw_ahead(
    workers: Workers | TogetherOnRequest,
    prepare: Callable[[int], Draw],
    numbers: range,
    lead: int,
    *,
    finish: bool,
) -> Generator[Timed]:
    """Yield the batches ``numbers`` in order, which ``workers`` draw.

    ``prepare(number)`` is called in the caller's thread, in the order of the batches. It returns a
    function that draws the batch and is called in any thread. ``lead`` is the number of batches
    that are prepared beyond the one that the caller has asked for. Where it ends early, draws that
    no thread has begun are dropped, unless all that were prepared must ``finish``.
    """
    ahead = deque[Draw]()
    try:
        for number in numbers:
            ahead.append(workers.submit(prepare(number)))
            # given out in the order of submission, whichever thread is faster
            if len(ahead) > lead:
                yield ahead.popleft()()
        while ahead:
            yield ahead.popleft()()
    finally:
        # draws that several processes make together: the others have begun them, and would wait
        # for this one for ever
        while finish and ahead:
            with suppress(Exception):
                ahead.popleft()()
        workers.stop()
