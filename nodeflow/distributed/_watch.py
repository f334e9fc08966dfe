"""Signs of life of all processes, so that an error can say which of them is missing."""

from __future__ import annotations

import atexit
import json
import threading
import time
import weakref
from typing import Any

PERIOD = 1.0
"""Seconds between two signs of life."""
_CHANNELS = 64  # the newest ones, which a sign tells of
_threads = weakref.WeakKeyDictionary[threading.Thread, threading.Event]()


class Watch:
    """Writes a sign of life into the store of the processes every second, and reads those of the others.

    A sign is the number of the sign, and for every channel the number of its last exchange and what that was of. A
    thread writes the signs, so a process whose main thread computes for long lives, and one that has ended or is
    stopped does not.

    Args:
        store: the store that the processes share, a ``torch.distributed.PrefixStore``.
        rank, size: the number of this process, and of processes.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self._beat, self._last = 0, list[tuple[int, str]]()
        self._over = threading.Event()
        self.beat()
        thread = threading.Thread(target=_beats, args=(weakref.ref(self), self._over), daemon=True)
        thread.name = "nodeflow-watch"
        _threads[thread] = self._over
        thread.start()

    def channel(self) -> int:
        """Return the number of a new channel."""
        self._last.append((0, "the start"))
        return len(self._last) - 1

    def enter(self, channel: int, what: str) -> None:
        """Note that this process comes to the next exchange of a channel."""
        self._last[channel] = (self._last[channel][0] + 1, what)

    def beat(self) -> None:
        """Write a sign of life."""
        self._beat += 1
        first = max(0, len(self._last) - _CHANNELS)
        self.store.set(f"sign/{self.rank}", json.dumps([self._beat, first, self._last[first:]]))

    def close(self) -> None:
        """End the thread."""
        self._over.set()

    def missing(self, channel: int) -> str:
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
        last = {r: after[r][1].get(channel, (0, "the start")) for r in others}
        where = {r: f"its last exchange was number {number}, {what}" for r, (number, what) in last.items()}
        silent = [r for r in others if after[r][0] == before[r][0]]
        if silent:
            return "; ".join(
                f"rank {r} does not answer: its process has ended or is stopped ({where[r]})" for r in silent
            )
        here = self._last[channel][0]
        late = [r for r in others if last[r][0] < here]
        if late:
            return "; ".join(f"rank {r} lives, but has not come to exchange {here}: {where[r]}" for r in late)
        return "all other processes live and came to this exchange, but a connection broke"

    def _signs(self) -> list[tuple[int, dict[int, tuple[int, str]]]]:
        """The number of the last sign of each process, 0 of one that has written none, and its channels."""
        found = []
        for key in (f"sign/{r}" for r in range(self.size)):
            beat, first, last = json.loads(self.store.get(key)) if self.store.check([key]) else (0, 0, [])
            found.append((beat, dict(enumerate(last, first))))
        return found


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


@atexit.register
def _end_threads() -> None:
    """End all threads: one that the interpreter ends while it is inside the store aborts the process."""
    for over in list(_threads.values()):
        over.set()
    for thread in list(_threads):
        thread.join(timeout=10 * PERIOD)  # not for ever: the process that keeps the store may be gone
