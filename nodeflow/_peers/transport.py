"""Exchanges over torch.distributed: bytes between processes, and signs of life that tell which of them is missing.

An exchange that breaks off says only that a connection was closed, or that it took too long. Signs of life tell a
process that has ended or is stopped from one that is late; without them ``tests/distributed/test_processes.py
test_all_end_with_an_error_that_names_the_one_that_is_missing`` fails.
"""

from __future__ import annotations

import atexit
import json
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._rows.rows import new_rows

Bytes = NDArray[np.uint8]
PERIOD = 1.0
"""Seconds between two signs of life."""
_CHANNELS = 64  # a sign of life lists this many of the newest channels
_LOST = ("gloo", "NCCL", "Connection closed")  # words of torch's errors when communication fails
_threads = weakref.WeakKeyDictionary[threading.Thread, threading.Event]()


class PeerError(RuntimeError):
    """Another process failed, does not answer, or does something else than this one."""


class GroupTransport:
    """Moves bytes between the processes of the default group, over a gloo group of its own; their meaning is others'.

    ``rank`` and ``size`` are the number of this process and of processes. ``broken`` are words where an operation did
    not end, after which no other one can: ``timeout`` is in seconds. Making one is collective.
    """

    def __init__(self, watch: Watch, timeout: float) -> None:
        self.rank, self.size, self.broken = watch.rank, watch.size, ""
        self._watch, self._timeout, self._channel = watch, timeout, watch.channel()
        try:
            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        except RuntimeError as error:
            raise PeerError(f"processes did not come together: {watch.missing(self._channel)}") from error
        # threads and descriptors of the group go with this object; at the end of the process torch ends them itself
        weakref.finalize(self, _release, self._group).atexit = False

    def swap(self, words: Ints) -> Ints:
        """Send row r of ``words`` ``[size, k]`` to process r; return what each process sent, ``[size, k]``."""
        heard = np.empty_like(words)
        mine, theirs = torch.from_numpy(words).view(-1), torch.from_numpy(heard).view(-1)
        self._run(lambda: dist.all_to_all_single(theirs, mine, group=self._group))
        return heard

    def send(self, parcels: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send ``parcels[r]`` to process r; return what each process sent, ``sizes[r]`` bytes; to itself nothing."""
        sent = [len(parcel) for parcel in parcels]
        mine, theirs = (new_rows(size, (), torch.uint8) for size in (sum(sent), sum(sizes)))
        np.concatenate(parcels, out=mine.numpy())
        self._run(lambda: dist.all_to_all_single(theirs, mine, list(sizes), sent, group=self._group))
        return [part.numpy() for part in theirs.split(list(sizes))]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over the processes, always added in the same order."""

        def add_up() -> None:
            # begun together, because most are small
            for work in [dist.all_reduce(each, group=self._group_of(each), async_op=True) for each in tensors]:
                work.wait()

        self._run(add_up)

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Give the tensors the values that they have on the first process."""
        for each in tensors:
            self._run(partial(dist.broadcast, each, 0, group=self._group_of(each)))

    def _group_of(self, tensor: Tensor) -> Any:
        """The group whose backend moves a tensor: for those on a GPU the default group's, None."""
        return None if tensor.is_cuda else self._group

    def beside(self) -> GroupTransport:
        """Return a transport of a further group, for exchanges of another thread; collective."""
        return GroupTransport(self._watch, self._timeout)

    def enter(self, what: str) -> None:
        self._watch.enter(self._channel, what)

    def _run(self, operation: Callable[[], object]) -> None:
        if self.broken:
            raise PeerError(self.broken)
        try:
            operation()
        except RuntimeError as error:
            # others, such as a lack of memory, are errors of this process
            if not (isinstance(error, dist.DistError) or any(word in str(error) for word in _LOST)):
                raise
            why = f"an exchange between processes broke off: {self._watch.missing(self._channel)}"
            self.broken = f"{why}; the processes must be started again"
            raise PeerError(f"{why} ({str(error).splitlines()[0]})") from error


def _release(group: Any) -> None:
    with suppress(Exception):  # the group may already be gone
        dist.destroy_process_group(group)


class Watch:
    """Writes a sign of life into the store of the processes every second, and reads those of the others.

    A sign is the number of the sign, and for every channel the number of its last exchange and what that was of. A
    thread writes them, so a process whose main thread computes for long lives, and one that is stopped does not.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self._beat, self._last = 0, list[tuple[int, str]]()
        self.beat()
        over = threading.Event()
        thread = threading.Thread(target=_beats, args=(weakref.ref(self), over), name="nodeflow-watch", daemon=True)
        _threads[thread] = over
        thread.start()

    def channel(self) -> int:
        self._last.append((0, "the start"))
        return len(self._last) - 1

    def enter(self, channel: int, what: str) -> None:
        self._last[channel] = (self._last[channel][0] + 1, what)

    def beat(self) -> None:
        self._beat += 1
        first = max(0, len(self._last) - _CHANNELS)
        self.store.set(f"sign/{self.rank}", json.dumps([self._beat, first, self._last[first:]]))

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
        own = self._last[channel][0]
        late = [r for r in others if last[r][0] < own]
        if late:
            return "; ".join(f"rank {r} lives, but has not come to exchange {own}: {where[r]}" for r in late)
        return "all other processes live and came to this exchange, but a connection broke"

    def _signs(self) -> list[tuple[int, dict[int, tuple[int, str]]]]:
        """The number of the last sign of each process, 0 of one that has written none, and its channels."""
        signs = []
        for key in (f"sign/{r}" for r in range(self.size)):
            beat, first, last = json.loads(self.store.get(key)) if self.store.check([key]) else (0, 0, [])
            signs.append((beat, dict(enumerate(last, first))))
        return signs


def _beats(watch: weakref.ref[Watch], over: threading.Event) -> None:
    """Write signs until the watch or the store is gone."""
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
