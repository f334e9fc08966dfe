"""The progress bar of a run, on a terminal only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodeflow._base.progress import progress_bar


class Progress:
    """Bars of the epochs of a run: each counts all batches of the run, and shows the time left of all epochs."""

    def __init__(self) -> None:
        self._start: tuple[float, float] | None = None  # time and batches of the whole run at the first bar

    def bar(self, counts: Sequence[int], epoch: int, done: int, *, shown: bool) -> Any:
        """Return the bar of an epoch.

        ``counts`` are the numbers of batches of all epochs, ``epoch`` counts from 1, ``done`` are the batches of it
        that are done, ``shown`` whether this process shows it.
        """
        begun = sum(counts[: epoch - 1]) + done
        bar = progress_bar(
            f"epoch {epoch}/{len(counts)}",
            sum(counts),
            "batch",
            shown=shown,
            terminal_only=True,
            initial=begun,
            smoothing=0,
        )
        if not bar.disable:  # the time left counts validation too, which lies between the bars of two epochs
            start = self._start = self._start or (bar.start_t, bar.initial)
            bar.start_t, bar.initial = start
        return bar
