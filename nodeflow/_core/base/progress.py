"""Progress bars, all of them made here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm


class Bar(tqdm):  # type: ignore[type-arg]  # generic for type checkers alone
    """A bar of this process.

    tqdm's own lock is shared with forked processes: one that is killed while it holds it would
    block all others.
    """


Bar.set_lock(threading.RLock())


def progress_bar(
    what: str,
    total: int,
    unit: str = "it",
    *,
    shown: bool,
    terminal_only: bool = False,
    **options: Any,
) -> tqdm[Any]:
    """Return a bar on standard error that is removed at its end; hidden without ``shown``.

    It is hidden too where the process has no standard error, as a daemon, or with ``terminal_only``
    no terminal. ``options`` are further ones of tqdm.
    """
    disable: bool | None = not shown or sys.stderr is None
    if terminal_only and not disable:
        disable = None  # tqdm's word for: look for a terminal
    return Bar(desc=what, total=total, unit=unit, disable=disable, leave=False, **options)


class Progress:
    """Bars of the epochs of a run: each counts all batches of the run, and shows the time left of
    all epochs.
    """

    def __init__(self) -> None:
        # time and batches of the whole run at the first bar
        self._start: tuple[float, float] | None = None

    def bar(self, counts: Sequence[int], epoch: int, done: int, *, shown: bool) -> Any:
        """Return the bar of an epoch.

        ``counts`` are the numbers of batches of all epochs, ``epoch`` counts from 1, ``done`` are
        the batches of it that are done, ``shown`` whether this process shows it.
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
        # the time left counts validation too, which lies between the bars of two epochs
        if not bar.disable:
            start = self._start = self._start or (bar.start_t, bar.initial)
            bar.start_t, bar.initial = start
        return bar
