"""Signs of life of all processes, so that an error can say which of them is missing."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any, NamedTuple

PERIOD = 1.0
"""Seconds between two signs of life."""


class _Sign(NamedTuple):
    beat: int
    exchange: int
    what: str

    @classmethod
    def of(cls, text: str) -> _Sign:
        beat, exchange, what = text.split(" ", 2)
        return cls(int(beat), int(exchange), what)

    def text(self) -> str:
        return f"{self.beat} {self.exchange} {self.what}"


class Watch:
    """Writes a sign of life into the store of the processes every second, and reads those of the others.

    Args:
        store: the store that the processes share, a ``torch.distributed.PrefixStore``.
        rank, size: the number of this process, and of processes.

    A thread writes the signs, so a process whose main thread computes for long lives, and one that has ended or is
    stopped does not.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self._exchange, self._what, self._beat = 0, "the start", 0
        self._over = threading.Event()
        self.beat()
        thread = threading.Thread(target=_beats, args=(weakref.ref(self), self._over), daemon=True)
        thread.name = "nodeflow-watch"
        thread.start()

    def enter(self, what: str) -> None:
        """Note that this process comes to its next exchange."""
        self._exchange, self._what = self._exchange + 1, what

    def beat(self) -> None:
        """Write a sign of life."""
        self._beat += 1
        self.store.set(f"sign/{self.rank}", _Sign(self._beat, self._exchange, self._what).text())

    def close(self) -> None:
        """End the thread."""
        self._over.set()

    def missing(self) -> str:
        """Return which process is missing in the exchange where this one is, after some seconds of watching."""
        try:
            self.beat()
            before = self._signs()
            time.sleep(2.5 * PERIOD)
            self.beat()
            after = self._signs()
        except Exception as error:
            return f"rank 0, which keeps the store of the processes, does not answer ({type(error).__name__})"
        others = [r for r in range(self.size) if r != self.rank]
        silent = [r for r in others if after[r].beat == before[r].beat]
        if silent:
            return "; ".join(
                f"rank {r} does not answer: its process has ended or is stopped (its last exchange was number "
                f"{after[r].exchange}, {after[r].what})"
                for r in silent
            )
        late = [r for r in others if after[r].exchange < self._exchange]
        if late:
            return "; ".join(
                f"rank {r} lives, but has not come to exchange {self._exchange}: its last one was number "
                f"{after[r].exchange}, {after[r].what}"
                for r in late
            )
        return "all other processes live and came to this exchange, but a connection broke"

    def _signs(self) -> list[_Sign]:
        return [_Sign.of(self.store.get(f"sign/{r}").decode()) for r in range(self.size)]


def _beats(watch: weakref.ref[Watch], over: threading.Event) -> None:
    """Write signs until the watch is closed or gone, or the store is."""
    while not over.wait(PERIOD):
        alive = watch()
        if alive is None:
            return
        try:
            alive.beat()
        except Exception:  # the store ends with the processes
            return
        del alive
