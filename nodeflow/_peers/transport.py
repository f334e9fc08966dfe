"""Exchanges over torch.distributed: bytes between processes; ``watch`` says which of them is missing."""

from __future__ import annotations

import ctypes
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._peers import watch as watched
from nodeflow._peers.expected import Expected
from nodeflow._peers.watch import Watch
from nodeflow._rows.rows import new_rows

_T = TypeVar("_T")
Bytes = NDArray[np.uint8]
if dist.is_available():
    # its functions keep, as a default argument, the group that is torch's default when they are imported, for ever; the
    # group's threads would live to the end of the process, and one that then drops a tensor aborts it. So: now
    import torch.distributed.nn.functional

_LOST = ("gloo", "NCCL", "Connection closed")  # words of torch's errors when communication fails


class PeerError(RuntimeError):
    """Another process failed, does not answer, or does something else than this one."""


class GroupTransport:
    """Moves bytes between the processes of the default group, over a gloo group of its own; their meaning is others'.

    ``rank`` and ``size`` are the number of this process and of processes, ``expected`` the sizes of the parcels to
    come. ``broken`` are words where an operation did not end, after which no other one can. ``timeout`` is in seconds.
    Making one is collective.
    """

    def __init__(self, watch: Watch, timeout: float) -> None:
        self.rank, self.size, self.broken = watch.rank, watch.size, ""
        self._watch, self._timeout, self._channel = watch, timeout, watch.channel()
        self._warned, self._used_default, self.expected = False, False, Expected(watch.size)
        self._come_together()
        try:
            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        except RuntimeError as error:
            raise PeerError(f"processes did not come together: {watch.missing(self._channel)}") from error
        # threads and descriptors of the group go with this object; at the end of the process torch ends them itself
        weakref.finalize(self, _release, self._group).atexit = False

    def send(self, parcels: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send ``parcels[r]`` to process r; return what each process sent, ``sizes[r]`` bytes; to itself nothing."""
        sent = [len(parcel) for parcel in parcels]
        mine, theirs = (new_rows(size, (), torch.uint8) for size in (sum(sent), sum(sizes)))
        np.concatenate(parcels, out=mine.numpy())
        split = list(sizes), sent
        self._run(lambda: self._wait(dist.all_to_all_single(theirs, mine, *split, group=self._group, async_op=True)))
        return [part.numpy() for part in theirs.split(list(sizes))]

    def add_up(self, tensor: Tensor) -> Callable[[], None]:
        """Begin to replace a tensor by its sum over the processes, always added in the same order; returns the wait."""
        work = self._run(lambda: dist.all_reduce(tensor, group=self._group_of(tensor), async_op=True))
        return lambda: self._run(lambda: self._wait(work))

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Give the tensors the values that they have on the first process."""
        # begun together, because most are small
        works = self._run(lambda: [dist.broadcast(one, 0, group=self._group_of(one), async_op=True) for one in tensors])
        for work in works:
            self._run(partial(self._wait, work))

    def _group_of(self, tensor: Tensor) -> Any:
        """The group whose backend moves a tensor: for those on a GPU the default group's, None."""
        group = None if tensor.is_cuda else self._group
        self._used_default |= group is None
        return group

    def beside(self) -> GroupTransport:
        """Return a transport of a further group, for exchanges of another thread; collective."""
        return GroupTransport(self._watch, self._timeout)

    def enter(self, what: str) -> None:
        """Come to an exchange; raises PeerError where an earlier one did not end."""
        if self.broken:
            raise PeerError(self.broken)
        self._watch.enter(self._channel, what)

    def give_up(self, why: str) -> None:
        """Note that an exchange did not end here: gloo ends a process that gets more bytes than it expects."""
        self.broken = f"{why}; the processes must be started again"

    def leave(self, what: str) -> None:
        """Give up where this process leaves an exchange that the others may have come to the end of."""
        self.give_up(f"this process left an exchange before its end, at {what}")

    def abandon(self) -> None:
        """Keep the group to the end of the process: its threads may wait in operations that others do not come to.

        A default group that may be in such an operation cannot be replaced: then ``broken`` says so.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._group))
        if self._used_default and not self.broken:
            self.give_up("the mean of gradients was left before its end")

    def _run(self, action: Callable[[], _T]) -> _T:
        """Begin an operation, or wait until it has ended."""
        if self.broken:
            raise PeerError(self.broken)
        try:
            return action()
        except RuntimeError as error:
            # others, such as a lack of memory, are errors of this process
            if isinstance(error, PeerError) or not (
                isinstance(error, dist.DistError) or any(word in str(error) for word in _LOST)
            ):
                raise
            why = f"an exchange between processes broke off: {self._watch.missing(self._channel)}"
            self.give_up(why)
            raise PeerError(f"{why} ({str(error).splitlines()[0]})") from error

    def _wait(self, work: Any) -> None:
        """Wait for an operation; raises PeerError as soon as it is known that it will not end."""
        begun = time.monotonic()
        while True:
            try:
                work.wait(timedelta(seconds=watched.LOOK / 4))
                return
            except RuntimeError:
                if work.is_completed():  # it has failed, or has ended just now
                    work.wait()
                    return
            if why := self._look(begun):
                self.give_up(why)
                # gloo's thread still waits in the operation, and the group's end would wait for the thread
                self.abandon()
                raise PeerError(why)

    def _come_together(self) -> None:
        """Wait until all processes make this channel; gloo itself would wait for the whole timeout without a word."""
        begun = looked = time.monotonic()
        pause = 0.001
        while not self._watch.have_come(self._channel):
            now = time.monotonic()
            if now - begun > self._timeout:
                raise PeerError(f"processes did not come together: {self._watch.missing(self._channel)}")
            if now - looked > watched.LOOK / 4:
                looked = now
                if why := self._look(begun):
                    raise PeerError(why)
            time.sleep(pause := min(2 * pause, 0.1))

    def _look(self, begun: float) -> str:
        """Return why an exchange that began then will not end; "" where it may, with a warning, once."""
        why, late = self._watch.look(self._channel, begun)
        if late and not why and not self._warned:
            self._warned = True
            warnings.warn(f"an exchange between processes waits: {late}", RuntimeWarning, stacklevel=2)
        return f"an exchange between processes will not end: {why}" if why else ""


def _release(group: Any) -> None:
    with suppress(Exception):  # the group may already be gone
        dist.destroy_process_group(group)
