"""The threads of a loader: they draw batches ahead of the caller, or several at once when it asks for one.

Both functions call ``prepare(number)`` in the caller's thread, in the order of the batches. It returns a function that
draws the batch and is called in any thread. ``lead`` is the number of batches that are prepared beyond the one that the
caller has asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from nodeflow._runtime.threads import run_all
from nodeflow._runtime.workers import Workers
from nodeflow.flow import NamesLike, NodeFlow
from nodeflow.loader._epochs import Pass


class Timed(NamedTuple):
    """A batch, and the seconds of sampling it and of fetching its columns."""

    batch: NodeFlow
    sampling: float
    fetching: float


class Iteration(NamedTuple):
    """An iteration of a loader: its epoch and first batch, inputs by batch, the node columns to copy, and ``fill``."""

    place: Pass
    inputs: dict[int, Any]
    ndata: NamesLike
    fill: Callable[[NodeFlow], None] | None


Draw = Callable[[], Timed]


def draw_ahead(
    prepare: Callable[[int], Draw], numbers: range, lead: int, num_workers: int, *, finish: bool = False
) -> Generator[Timed, None, None]:
    """Yield the batches ``numbers`` in order, drawn by ``num_workers`` threads as soon as they are prepared.

    Where it ends early, draws that no thread has begun are dropped, unless all that were prepared must ``finish``.
    """
    workers = Workers(num_workers, "nodeflow-loader")
    ahead: deque[Draw] = deque()
    try:
        for number in numbers:
            ahead.append(workers.submit(prepare(number)))
            if len(ahead) > lead:
                yield ahead.popleft()()
        while ahead:
            yield ahead.popleft()()
    finally:
        while finish and ahead:
            with suppress(Exception):
                ahead.popleft()()
        workers.stop()


def draw_on_request(
    prepare: Callable[[int], Draw], numbers: range, lead: int, num_workers: int
) -> Generator[Timed, None, None]:
    """Yield the batches ``numbers`` in order; when the next one is not drawn yet, up to ``num_workers`` are at once."""
    left = iter(numbers)
    prepared: deque[Draw] = deque()
    drawn: deque[Timed | Exception] = deque()
    for _ in numbers:
        while len(prepared) + len(drawn) <= lead and (number := next(left, None)) is not None:
            prepared.append(prepare(number))
        if not drawn:
            drawn.extend(_draw_together([prepared.popleft() for _ in range(min(num_workers, len(prepared)))]))
        batch = drawn.popleft()
        if isinstance(batch, Exception):
            raise batch
        yield batch


def _draw_together(draws: list[Draw]) -> list[Timed | Exception]:
    """Draw some batches in parallel; a draw that raises gives its exception in place of a batch."""
    results: list[Timed | Exception] = [IndexError()] * len(draws)
    inference, recorded = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def draw(k: int) -> None:
        try:  # torch keeps these modes per thread
            with torch.inference_mode(inference), torch.set_grad_enabled(recorded):
                results[k] = draws[k]()
        except Exception as error:
            results[k] = error

    run_all(draw, len(draws), len(draws))
    return results
