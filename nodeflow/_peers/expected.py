"""How large the parcels of the next exchange will be, guessed from the exchanges before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_LEAST = 256  # bytes: a second message costs more than they do
_MOST = 2**17  # bytes: where more are expected, the room that is left empty would cost more than a second message
_KINDS = 1024  # exchanges that are remembered; a program that repeats its steps has far fewer


class Sizes(NamedTuple):
    """Bytes that are kept for parcels in lines, multiples of 8: to each process, and from each."""

    sent: list[int]
    received: list[int]


class Expected:
    """Sizes of the parcels of a channel, so that lines have room for them: ``next`` are those of the coming exchange.

    Programs repeat their steps, so an exchange that follows the same two others as one before it is expected to be
    about as large. Both ends of a line know what went over it, and so expect the same.
    """

    def __init__(self, size: int) -> None:
        self._least = self.next = Sizes([_LEAST] * size, [_LEAST] * size)
        self._after, self._before = dict[tuple[str, str], Sizes](), ("", "")

    def learn(self, what: str, sent: Iterable[int], received: Iterable[int]) -> None:
        """Note the bytes of the parcels of an exchange, to and from each process."""
        if len(self._after) == _KINDS:
            self._after.clear()
        self._after[self._before] = Sizes([_kept(size) for size in sent], [_kept(size) for size in received])
        self._before = (self._before[1], what)
        self.next = self._after.get(self._before, self._least)

    def forget(self) -> None:
        """Begin anew, as all processes do where one has failed or is at another exchange."""
        self._after.clear()
        self._before, self.next = ("", ""), self._least


def _kept(size: int) -> int:
    """Bytes to keep for the next parcel after one of ``size`` bytes."""
    kept = size + size // 4 + _LEAST
    return kept // 8 * 8 if kept <= _MOST else _LEAST
