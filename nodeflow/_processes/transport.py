"""Bytes between processes, over torch.distributed; where they do not come, which process is
missing.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.rows.rows import new_rows

_T = TypeVar("_T")
Bytes = NDArray[np.uint8]
if dist.is_available():
    # its functions keep, as a default argument, the group that is torch's default when they are
    # imported, for ever; the group's threads would live to the end of the process, and one that
    # then drops a tensor aborts it. So: now
    import torch.distributed.nn.functional  # noqa: F401

# words of torch's errors when communication fails
_LOST = ("gloo", "NCCL", "Connection closed", "imed out")
# seconds of a wait after which a process says where it waits, and a signal such as Ctrl-C is heard
_TURN = 1.0
# seconds for the others to say that they wait too, before this process asks who does not
_MOMENT = 3.0
# seconds after which a store that has not answered is out of reach
_SILENCE = 30.0


class PeerError(RuntimeError):
    """Another process failed, does not answer, or does something else than this one."""


class GroupTransport:
    """Moves bytes between the processes of the default group, over a gloo group of its own; their
    meaning is others'.

    ``rank`` and ``size`` are the number of this process and of processes, ``broken`` says why an
    operation did not end, after which no other one can. Making one is collective.

    Args:
        store: the keys and values that all processes share, by which they say where they wait.
        timeout: seconds after which an operation that has not ended never will.
        numbers: numbers of transports, the same on all processes.
    """

    def __init__(self, store: Any, timeout: float, numbers: count[int] | None = None) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.broken = ""
        self._store = store
        self._timeout = timeout
        self._numbers = numbers or count()
        self._name = f"channel/{next(self._numbers)}"
        self._begun = 0  # operations so far
        self._come_together()
        try:
            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        except RuntimeError as error:
            raise PeerError(f"processes did not come together: {self._missing(0)}") from error
        # threads and descriptors of the group go with this object; at the end of the process torch
        # ends them itself
        weakref.finalize(self, _release, self._group).atexit = False

    def begin(
        self, what: str, parcels: Sequence[Bytes], sizes: Sequence[int]
    ) -> Callable[[], list[Bytes]]:
        """Begin to send ``parcels[r]`` to process r; what is returned waits for those of all,
        ``sizes[r]`` bytes.

        Raises PeerError, there and here, where another process does not come; ``what`` says to
        what.
        """
        sent = [len(parcel) for parcel in parcels]
        mine = new_rows(sum(sent), (), torch.uint8)
        theirs = new_rows(sum(sizes), (), torch.uint8)
        np.concatenate(parcels, out=mine.numpy())
        split = list(sizes), sent
        options = {"group": self._group, "async_op": True}
        wait = self._start(what, lambda: [dist.all_to_all_single(theirs, mine, *split, **options)])

        def received() -> list[Bytes]:
            wait()
            return [part.numpy() for part in theirs.split(list(sizes))]

        return received

    def add_up(self, what: str, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over the processes, always added in the same order."""
        self._on_each(what, tensors, dist.all_reduce)

    def copy_first(self, what: str, tensors: Sequence[Tensor]) -> None:
        """Give the tensors the values that they have on the first process."""
        self._on_each(what, tensors, partial(dist.broadcast, src=0))

    def beside(self) -> GroupTransport:
        """Return a transport of a further group, for exchanges of another thread; collective."""
        return GroupTransport(self._store, self._timeout, self._numbers)

    def leave(self, what: str) -> None:
        """Give up where this process leaves an operation that the others may come to the end of."""
        self._give_up(f"this process left an exchange before its end, at {what}")

    def _on_each(self, what: str, tensors: Sequence[Tensor], operation: Callable[..., Any]) -> None:
        """Make an operation on every tensor; those of tensors on a GPU are of the default group and
        of its stream.
        """

        # begun together, because most tensors are small
        def action() -> list[Any]:
            works = []
            for tensor in tensors:
                group = None if tensor.is_cuda else self._group
                works.append(operation(tensor, group=group, async_op=not tensor.is_cuda))
            return works

        self._start(what, action)()

    def _give_up(self, why: str) -> None:
        """Note that an operation did not end here: gloo ends a process that gets more bytes than it
        expects.
        """
        self.broken = f"{why}; the processes must be started again"
        # gloo's thread may still wait in the operation, and the end of the group would wait for the
        # thread
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._group))

    def _start(self, what: str, action: Callable[[], list[Any]]) -> Callable[[], None]:
        """Begin operations that belong together; what is returned waits for their end."""
        self._begun += 1
        number = self._begun
        works = self._run(what, number, action)

        def wait() -> None:
            for work in works:
                if work is not None:
                    self._run(what, number, partial(self._wait, work, number))

        return wait

    def _run(self, what: str, number: int, action: Callable[[], _T]) -> _T:
        """Begin operation ``number``, or wait for it; raises PeerError where another process is
        missing.
        """
        if self.broken:
            raise PeerError(self.broken)
        try:
            return action()
        except RuntimeError as error:
            # others, such as a lack of memory, are errors of this process
            if not (isinstance(error, dist.DistError) or any(word in str(error) for word in _LOST)):
                raise
            why = f"an exchange between processes broke off at {what}: {self._missing(number)}"
            self._give_up(why)
            raise PeerError(f"{why} ({str(error).splitlines()[0]})") from error
        except BaseException:
            self.leave(what)
            raise

    def _wait(self, work: Any, number: int) -> None:
        """Wait for the end of an operation, in turns: torch's own wait would hear no signal until
        the timeout.
        """
        while not work.is_completed():
            with suppress(RuntimeError):
                work.wait(timedelta(seconds=_TURN))
                return
            with suppress(Exception):  # the store may be gone
                self._say(number)
        work.wait()

    def _come_together(self) -> None:
        """Wait until all processes make this transport: gloo would also wait for one that has ended
        before.
        """
        begun = time.monotonic()
        pause = _TURN / 1000
        self._say(0)
        while away := self._away(0):
            if any(self._end_of(rank) for rank in away) or time.monotonic() - begun > self._timeout:
                raise PeerError(f"processes did not come together: {self._missing(0)}")
            time.sleep(pause)
            pause = min(2 * pause, _TURN / 4)

    def _say(self, number: int) -> None:
        """Tell the other processes that this one waits in operation ``number``, or, with 0, for the
        first one.
        """
        self._store.set(f"{self._name}/{self.rank}", str(number))

    def _missing(self, number: int) -> str:
        """Say which processes are missing in operation ``number``, in which this one waits."""
        answers = SimpleQueue[str]()

        def ask() -> None:
            answers.put(self._asked(number))

        # behind a dead network, torch's calls of a store wait for a quarter of an hour whatever
        # their timeout
        threading.Thread(target=ask, daemon=True).start()
        try:
            return answers.get(timeout=_SILENCE)
        except Empty:
            return (
                "the store of the processes does not answer: its host has ended, or the network to "
                "it is down"
            )

    def _asked(self, number: int) -> str:
        """Ask the store which processes are missing in operation ``number``."""
        try:
            self._say(number)
            time.sleep(_MOMENT)
            away = {rank: self._end_of(rank) for rank in self._away(number)}
        except Exception as error:
            return f"the store of the processes has ended ({type(error).__name__})"
        if not away:
            return "all other processes came to this exchange, but a connection broke"
        return "; ".join(
            f"rank {rank} {end or 'has ended, is stopped, or is elsewhere'}"
            for rank, end in away.items()
        )

    def _away(self, number: int) -> list[int]:
        """The processes that have not said that they wait in operation ``number``, or a later
        one.
        """
        numbers = [self._read(f"{self._name}/{rank}") for rank in range(self.size)]
        # one that has said nothing is missing from the first operation, 0, too
        return [rank for rank, reached in enumerate(numbers) if int(reached or -1) < number]

    def _end_of(self, rank: int) -> str:
        """How the program of a process has ended; "" where it has not, or not by itself. See
        ``say_end``.
        """
        return self._read(f"end/{rank}")

    def _read(self, key: str) -> str:
        """The value of a key of the store; "" where there is none."""
        return str(self._store.get(key).decode()) if self._store.check([key]) else ""


def say_end(store: Any, rank: int, process: int) -> None:
    """Tell the other processes, at the end of the program, how it has ended; not in a child made by
    fork.
    """
    if os.getpid() != process:
        return
    error = getattr(sys, "last_value", None)
    end = "has ended its program"
    if error:
        end = f"has ended with {type(error).__name__}: {error}"

    def tell() -> None:
        with suppress(Exception):  # the store may have ended before
            store.set(f"end/{rank}", end)

    # by a thread, since a call that waits behind a dead network keeps others out of the store
    thread = threading.Thread(target=tell, daemon=True)
    # no thread begins at the end of the interpreter
    with suppress(RuntimeError):
        thread.start()
        thread.join(_MOMENT)


def _release(group: Any) -> None:
    with suppress(Exception):  # the group may already be gone
        dist.destroy_process_group(group)
