"""Questions of processes to each other, in rounds: one that has nothing to ask goes on without the others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._peers.packed import pack, unpack
from nodeflow._peers.peers import Answer, Counters
from nodeflow._peers.transport import Bytes

_HEAD = 32  # bytes before a question and an answer
_NO_CALL, _NO_BYTES = -1, np.zeros(0, np.uint8)
_SETTLED, _BUSY = 1, 2
Meet = Callable[[str, Sequence[Bytes], int], tuple[list[Bytes], Ints]]


def kind_of(what: str) -> int:
    """Return a number for the name of an exchange, the same in all processes."""
    return zlib.crc32(what.encode())


class _Call(NamedTuple):
    what: str
    answer: Answer


class _Question(NamedTuple):
    rank: int
    call: int
    kind: int
    arrays: list[Array]


class Conversation:
    """The questions of a number of calls of ``ask``, which all processes make in the same order.

    A process whose call asks no other one returns from it at once. Else it takes part in *rounds*, exchanges of all
    processes, until it has its answers; so do those that have come to the end, until nobody will ask more. A question
    waits until the process that it is for has come to the same call. Every process tells all others in
    each round whether it will ask more, and whether answers of its own are missing or to come: so all know the last
    round.

    ``meet`` sends the parcels of a round and a number to the other processes, and returns those of all.
    """

    def __init__(self, what: str, rank: int, size: int, meet: Meet, counters: Counters) -> None:
        self._what, self._rank, self._size, self._meet, self._counters = what, rank, size, meet, counters
        self._calls, self._open = list[_Call](), list[_Question]()
        self._settled = self._ended = False  # nothing more will be asked here; nor anywhere
        self._rounds = self._parts = 0
        self._last = False

    @property
    def over(self) -> bool:
        """Whether the call that was said to be the last has been answered everywhere: no process waits."""
        return self._last and self._ended

    @contextmanager
    def part(self) -> Iterator[None]:
        """Enter a part of the conversation: what is its last call is not that of the whole."""
        self._parts += 1
        try:
            yield
        finally:
            self._parts -= 1

    def ask(self, what: str, parcels: Sequence[Sequence[Array]], answer: Answer, *, last: bool) -> list[list[Array]]:
        """See ``Peers.ask``."""
        if self._settled:  # what was said to be the last call was not
            self.settle()
        call, self._ended = len(self._calls), False
        self._settled = self._last = last and not self._parts
        self._calls.append(_Call(what, answer))
        own, answers = parcels[self._rank], [list[Array]() for _ in parcels]
        if own:
            answers[self._rank] = list(answer(*own))
        questions = {r: pack(parcel) for r, parcel in enumerate(parcels) if len(parcel) and r != self._rank}
        waiting = set(questions)
        self._count(what, "questions", questions)
        self._count(what, "answers", {})
        while waiting:
            for rank, arrays in self._round(call, questions).items():
                answers[rank] = arrays
                waiting.discard(rank)
            questions = {}
        return answers

    def settle(self) -> None:
        """Answer the others until all have come here."""
        self._settled = True
        while self._calls and not self._ended:
            self._round(_NO_CALL, {})
        self._calls.clear()
        self._settled, self._ended = False, True

    def _round(self, call: int, questions: Mapping[int, Bytes]) -> dict[int, list[Array]]:
        """Send questions, and answers to those of earlier rounds; return the answers that came."""
        replies = self._replies()
        packed: list[Bytes] = [_NO_BYTES] * self._size
        for r in questions.keys() | replies.keys():
            question, (answered, reply) = questions.get(r, _NO_BYTES), replies.get(r, (_NO_CALL, _NO_BYTES))
            words = np.array([call if r in questions else _NO_CALL, self._kind(call), len(question), answered])
            packed[r] = np.concatenate([words.view(np.uint8), question, reply])
        note = _SETTLED * self._settled + _BUSY * bool(questions or self._open)
        self._rounds += 1
        received, notes = self._meet(f"{self._what}, round {self._rounds}", packed, note)
        answers = {}
        for r, parcel in enumerate(received):
            if not len(parcel):
                continue
            asking, kind, size, answered = parcel[:_HEAD].view(np.int64).tolist()
            if asking != _NO_CALL:
                self._open.append(_Question(r, asking, kind, unpack(parcel[_HEAD : _HEAD + size])))
            if answered != _NO_CALL:
                answers[r] = unpack(parcel[_HEAD + size :])
        self._ended = bool((notes == _SETTLED).all())
        return answers

    def _replies(self) -> dict[int, tuple[int, Bytes]]:
        """The answers to open questions of calls that this process has come to: call and bytes, by who asked."""
        replies, later = dict[int, tuple[int, Bytes]](), list[_Question]()
        for question in self._open:
            if question.call >= len(self._calls) and not self._settled:
                later.append(question)
                continue
            if question.kind != self._kind(question.call):
                raise RuntimeError(
                    f"rank {question.rank} asks something else than this process: all processes must draw, fetch and "
                    "bind in the same order"
                )
            what, answer = self._calls[question.call]
            replies[question.rank] = question.call, pack(answer(*question.arrays))
            self._count(what, "answers", {question.rank: replies[question.rank][1]})
        self._open = later
        return replies

    def _kind(self, call: int) -> int:
        return kind_of(self._calls[call].what) if 0 <= call < len(self._calls) else 0

    def _count(self, what: str, kind: str, packed: Mapping[int, Bytes]) -> None:
        by_kind, name = self._counters.by_kind, f"{what}: {kind}"
        by_kind[name] = by_kind.get(name, 0) + sum(map(len, packed.values()))
