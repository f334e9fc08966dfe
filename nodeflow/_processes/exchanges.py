"""The exchanges of several processes: all come to each of them in the same order, or all hear why
one does not.

An exchange is a *swap* of lines: every process sends one to every other. A line says in which
*operation* the sender is (a call that all processes make, numbered on each of them), at which
exchange, and whether the operation has failed there. It has room for a parcel; where a parcel is
larger, it follows in a second message.

Where an operation fails on one process, that process begins one more swap, whose lines say so, and
does not wait for the lines of the others. These are then

- in the same operation: they get these lines in place of those that they wait for, and raise an
  error too;
- or past it, because it failed there after its last exchange: the lines are of an earlier operation
  than theirs, so all swap again.

All processes see the lines of all, so they agree on which of these it is, and nobody needs to count
exchanges.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nodeflow._processes.transport import Bytes, GroupTransport, PeerError

_T = TypeVar("_T")
_E = TypeVar("_E", bound=BaseException)
_HEARD = "All processes hear of this error."
_WELL = 0
_FAILED = 1
_HEAD = np.dtype(
    [
        ("operation", np.int64),
        ("exchange", np.int64),  # a number for its name
        ("state", np.int64),
        ("size", np.int64),  # bytes of the parcel
        ("largest", np.int64),  # bytes of the largest parcel that the sender has for anyone
        ("goes_on", np.int64),
    ]
)
# bytes of room for a parcel: a second message costs more than they do
_LEAST = 512
# bytes of room in all lines of a process: where more are needed, empty room costs more than a
# message
_MOST = 2**18
_NO_BYTES = np.zeros(0, np.uint8)


class Swapped(NamedTuple):
    """What came in an exchange: the parcel of each process, and whether any process has sent one,
    or goes on.
    """

    parcels: list[Bytes]
    any_sent: bool
    any_goes_on: bool


class Exchanges:
    """The exchanges of one channel, which one thread uses at a time.

    ``operation`` is the number of the operation where this process is, or was the last time.
    """

    def __init__(self, transport: GroupTransport) -> None:
        self.transport = transport
        self.operation = 0
        self._depth = 0  # of operations inside each other
        # swaps that told the others of an error, whose lines from the others are still to come
        self._notices = list[Callable[[], list[Bytes]]]()
        # room for parcels in lines, by the two exchanges before, see ``_learn``
        self._rooms = dict[tuple[int, int], int]()
        self._before = (0, 0)

    @contextmanager
    def inside(self, what: str) -> Iterator[None]:
        """Enter an operation, or inside another one a part of it: an error is raised on all
        processes.
        """
        if self._depth == 0:
            self.operation += 1
        self._depth += 1
        try:
            yield
        except PeerError:
            raise  # the others raise it too, or are gone
        except BaseException as error:
            # of a part, the enclosing operation tells
            if self._depth == 1 and not self.transport.broken:
                words = f"{type(error).__name__}: {error} (at {what})"
                self._notices.append(self._begin(what, _FAILED, self._to_all(words)))
                self._forget()
                heard_by_all(error)
            raise
        finally:
            self._depth -= 1

    def meet(self, what: str, parcels: Sequence[Bytes], *, goes_on: bool = False) -> Swapped:
        """Send a parcel to every process, and tell all of them whether this one ``goes_on``,
        whatever that means.

        Raises PeerError, on all processes, where one has failed, or is elsewhere.
        """
        with self.inside(what):
            # First the answers to what this process told the others of its own failure: one that
            # failed in the same swap told it of that there.
            while self._notices:
                self._check(what, self._notices.pop(0)())
            # Again after lines of an earlier operation, which told of a failure at its end.
            arrived = False
            while not arrived:
                room = self._room
                lines = self._begin(what, _WELL, parcels, goes_on=goes_on)()
                arrived = self._check(what, lines)
            heads = _heads_of(lines)
            sizes = heads["size"].tolist()
            received = [
                line[_HEAD.itemsize :][:size] for line, size in zip(lines, sizes, strict=True)
            ]
            largest = int(heads["largest"].max())
            # all know the largest parcel of anyone, so all come to the second message or none
            if largest > room:
                long = self._long_parcels(what, room, parcels, sizes)
                received = [
                    late if len(late) else short for late, short in zip(long, received, strict=True)
                ]
            self._learn(int(heads["exchange"][0]), largest)
            return Swapped(received, largest > 0, bool(heads["goes_on"].any()))

    def joined(self, what: str, action: Callable[[], _T]) -> _T:
        """Come to an exchange, then take part in what all processes do there by other means than
        swaps.
        """
        with self.inside(what):
            self.meet(what, [_NO_BYTES] * self.transport.size)
            return self.second_half(what, action)

    def second_half(self, what: str, action: Callable[[], _T]) -> _T:
        """Take part in what all processes do after an exchange that all have come to, which cannot
        fail on one.
        """
        try:
            return action()
        except PeerError:
            raise
        except BaseException:
            # no line can tell the others of an error here: it is the last exchange then
            self.transport.leave(what)
            raise

    @property
    def _room(self) -> int:
        """Bytes of the parcel that the next line has room for, the same on all processes."""
        return self._rooms.get(self._before, _LEAST)

    def _learn(self, exchange: int, largest: int) -> None:
        """Note the largest parcel of an exchange, so that lines have room for it where the program
        repeats its steps.

        What follows the same two exchanges is expected to be about as large. All processes know
        what these were, whatever comes next, and so expect the same.
        """
        room = (largest + largest // 4) // 8 * 8 + _LEAST
        self._rooms[self._before] = room if room * self.transport.size <= _MOST else _LEAST
        self._before = (self._before[1], exchange)

    def _forget(self) -> None:
        """Expect nothing, as all processes do from a swap on where one has failed, or is at another
        exchange.
        """
        self._rooms.clear()
        self._before = (0, 0)

    def _long_parcels(
        self, what: str, room: int, parcels: Sequence[Bytes], sizes: Sequence[int]
    ) -> list[Bytes]:
        """Swap the parcels that had no room in their lines; the others are empty here."""
        sent = [_NO_BYTES] * len(parcels)
        expected = [0] * len(parcels)
        for rank, parcel in enumerate(parcels):
            if len(parcel) > room:
                sent[rank] = parcel
            if sizes[rank] > room:
                expected[rank] = sizes[rank]
        return self.second_half(what, lambda: self.transport.begin(what, sent, expected)())

    def _begin(
        self, what: str, state: int, parcels: Sequence[Bytes], *, goes_on: bool = False
    ) -> Callable[[], list[Bytes]]:
        """Begin to swap lines; what is returned waits for those of the others."""
        sizes = [len(parcel) for parcel in parcels]
        room = self._room
        length = _HEAD.itemsize + room
        lines = np.zeros((len(parcels), length), np.uint8)
        heads = lines[:, : _HEAD.itemsize].view(_HEAD)[:, 0]
        heads["operation"] = self.operation
        heads["exchange"] = zlib.crc32(what.encode())
        heads["state"] = state
        heads["size"] = sizes
        heads["largest"] = max(sizes)
        heads["goes_on"] = goes_on
        for line, parcel in zip(lines, parcels, strict=True):
            if len(parcel) <= room:
                line[_HEAD.itemsize :][: len(parcel)] = parcel
        return self.transport.begin(what, list(lines), [length] * len(parcels))

    def _check(self, what: str, lines: Sequence[Bytes]) -> bool:
        """Return whether all processes are at this exchange, and have not failed.

        Raises PeerError where one has failed in this operation, or all are well and at different
        exchanges.
        """
        heads = _heads_of(lines)
        failed = heads["state"] == _FAILED
        if failed.any():
            self._forget()
            failed_in_this = failed & (heads["operation"] == self.operation)
            for rank in np.flatnonzero(failed_in_this).tolist():
                words = f"rank {rank} failed while this one was at {what}: {_text_of(lines[rank])}"
                raise heard_by_all(PeerError(words))
            # in an operation before this one, where it was the last that happened
            return False
        own_head = heads[self.transport.rank]
        strange = (heads["operation"] != own_head["operation"]) | (
            heads["exchange"] != own_head["exchange"]
        )
        if strange.any():
            self._forget()
            raise self._elsewhere(what, int(strange.argmax()), int(heads["operation"].max()))
        return True

    def _elsewhere(self, what: str, rank: int, operation: int) -> PeerError:
        """Tell the other processes where this one is, as all do then, and return an error that
        names one of them.
        """
        own_place = f"{what} (operation {self.operation})"
        self.operation = operation  # from now on the same on all
        lines = self._begin(what, _WELL, self._to_all(own_place))()
        return PeerError(
            f"rank {rank} is at another exchange: {_text_of(lines[rank])} there, {own_place} here; "
            "all processes must draw, fetch and bind in the same order"
        )

    def _to_all(self, text: str) -> list[Bytes]:
        """A parcel with a text for every process, as much of it as has room in a line."""
        return [np.frombuffer(text.encode()[:_LEAST], np.uint8)] * self.transport.size


def heard_by_all(error: _E) -> _E:
    """Note on an error that all processes hear of it, so that one of them is enough to print it."""
    error.add_note(_HEARD)
    return error


def is_heard_by_all(error: Exception) -> bool:
    """Return whether all processes hear of an error."""
    return _HEARD in getattr(error, "__notes__", ())


def _heads_of(lines: Sequence[Bytes]) -> Any:
    """The heads of the lines that came, a structured array ``[size]``."""
    return np.concatenate([line[: _HEAD.itemsize] for line in lines]).view(_HEAD)


def _text_of(line: Bytes) -> str:
    size = int(line[: _HEAD.itemsize].view(_HEAD)["size"][0])
    return line[_HEAD.itemsize :][:size].tobytes().decode(errors="replace")
