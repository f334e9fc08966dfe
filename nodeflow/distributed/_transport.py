"""Exchanges over torch.distributed: bytes between the processes of a group."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from nodeflow._base.checks import Ints
from nodeflow._rows.rows import new_rows
from nodeflow.distributed._packing import Bytes
from nodeflow.distributed._peers import PeerError
from nodeflow.distributed._watch import Watch


class GroupTransport:
    """Moves bytes between the processes of the default group, over a gloo group of its own.

    Args:
        watch: the signs of life of the processes.
        timeout: seconds after which an exchange that has not ended is an error.

    Making one is collective: all processes do it, in the same order.
    """

    def __init__(self, watch: Watch, timeout: float) -> None:
        self._watch, self._timeout, self._channel = watch, timeout, watch.channel()
        try:
            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        except RuntimeError as error:
            raise PeerError(f"processes did not come together: {watch.missing(self._channel)}") from error
        # threads and descriptors of the group go with this object; at the end of the process torch ends them itself
        weakref.finalize(self, _release, self._group).atexit = False
        self._broken = ""

    @property
    def rank(self) -> int:
        """The number of this process."""
        return self._watch.rank

    @property
    def size(self) -> int:
        """The number of processes."""
        return self._watch.size

    @property
    def broken(self) -> bool:
        """Whether an operation did not end."""
        return bool(self._broken)

    def swap(self, words: Ints) -> Ints:
        """Send row r of ``words`` ``[size, k]`` to process r; return what each process sent, ``[size, k]``."""
        heard = np.empty_like(words)
        mine, theirs = torch.from_numpy(words).view(-1), torch.from_numpy(heard).view(-1)
        self._run(lambda: dist.all_to_all_single(theirs, mine, group=self._group))
        return heard

    def send(self, parcels: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send ``parcels[r]`` to process r; return what each process sent, ``sizes[r]`` bytes."""
        sent = [len(parcel) for parcel in parcels]
        mine, theirs = (new_rows(size, (), torch.uint8) for size in (sum(sent), sum(sizes)))
        np.concatenate(parcels, out=mine.numpy())
        self._run(lambda: dist.all_to_all_single(theirs, mine, list(sizes), sent, group=self._group))
        return [part.numpy() for part in theirs.split(list(sizes))]

    def beside(self) -> GroupTransport:
        """Return a transport of a further group; collective."""
        return GroupTransport(self._watch, self._timeout)

    def enter(self, what: str) -> None:
        """Note the exchange that begins."""
        self._watch.enter(self._channel, what)

    def _run(self, operation: Callable[[], object]) -> None:
        if self._broken:
            raise PeerError(self._broken)
        try:
            operation()
        except RuntimeError as error:
            why = f"an exchange between processes broke off: {self._watch.missing(self._channel)}"
            self._broken = f"{why}; the processes must be started again"
            raise PeerError(f"{why} ({str(error).splitlines()[0]})") from error


def _release(group: Any) -> None:
    with suppress(Exception):  # the processes may have parted before
        dist.destroy_process_group(group)
