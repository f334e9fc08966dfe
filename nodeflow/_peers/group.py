"""Several processes, as one of them sees them: exchanges that end on all of them, or on none."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._peers.conversation import Conversation, kind_of
from nodeflow._peers.gradients import Averaging
from nodeflow._peers.packed import pack, unpack
from nodeflow._peers.peers import MANY, Answer, Facts, Located, Peers
from nodeflow._peers.routes import Routes
from nodeflow._peers.transport import Bytes, GroupTransport, PeerError
from nodeflow._rows.pieces import Piece, distinct_in_place, put_pieces
from nodeflow._rows.rows import as_array, fetch_rows, from_arrays, from_numpy, take_rows, to_arrays
from nodeflow._runtime import process

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Exception)
_WELL, _FAILED = 0, 1
_HEAD = 32  # bytes of a line before its parcel
_HEARD = "All processes have heard of this error."
_NO_BYTES = np.zeros(0, np.uint8)


class _State(threading.local):
    """The state of a thread: exchanges so far, its channel, and the conversation that goes on."""

    exchanges = 0
    channel: Any = None
    talk: Conversation | None = None


class PeerGroup(Peers):
    """Exchanges between several processes, with the methods of ``Peers``.

    Every exchange begins with a line to each process: what is exchanged, how many bytes its parcel has, and whether the
    sender has failed. So processes that do different things, or of which one has raised, all end with an error. A line
    has room for a parcel of the size that is expected; where every parcel has room, nothing follows.
    """

    def __init__(self, rank: int, size: int, connect: Callable[[], GroupTransport], book: Any = None) -> None:
        super().__init__()
        self.rank, self.size, self._connect = rank, size, connect  # called for the first exchange
        self.book = book  # the folder of the parts, known once all processes have agreed on what they open
        self._state, self._process = _State(), os.getpid()
        self._gradients: GroupTransport | None = None

    @property
    def broken(self) -> bool:
        return bool(self._transport.broken)

    @property
    def inherited(self) -> bool:
        return os.getpid() != self._process

    def owners(self, ids: Ints, kind: str = "node") -> Ints:
        owners: Ints = self.book.owners(ids, kind)
        return owners

    def exchange(self, what: str, parcels: Sequence[Sequence[Array]], detail: str = "") -> list[list[Array]]:
        self._settle()
        packed = [_NO_BYTES if r == self.rank else pack(parcel) for r, parcel in enumerate(parcels)]
        received, _ = self._counted(f"{what} ({detail})" if detail else what, packed)
        self._state.exchanges += 1
        by_kind = self.counters.by_kind
        by_kind[what] = by_kind.get(what, 0) + sum(map(len, packed))
        return [list(parcels[r]) if r == self.rank else unpack(received[r]) for r in range(self.size)]

    def _counted(self, what: str, packed: Sequence[Bytes], note: int = 0) -> tuple[list[Bytes], Ints]:
        """Come to an exchange and count it."""
        begun, counters = perf_counter(), self.counters
        received, notes = self._meet(what, packed, note)
        sent = list(map(len, packed))
        counters.exchanges += 1
        counters.messages += sum(size > 0 for size in sent)
        counters.bytes_sent += sum(sent)
        counters.bytes_received += sum(map(len, received))
        counters.seconds += perf_counter() - begun
        return received, notes

    def ask(
        self, what: str, parcels: Sequence[Sequence[Array]], answer: Answer, *, last: bool = False
    ) -> list[list[Array]]:
        state = self._state
        if state.talk is None:
            with self.conversation(what):
                return self.ask(what, parcels, answer, last=True)
        answers = state.talk.ask(what, parcels, answer, last=last)
        state.exchanges += 2  # a question and an answer, however many rounds: the same in all processes
        return answers

    @contextmanager
    def conversation(self, what: str) -> Iterator[None]:
        state = self._state
        if state.talk is not None:
            with state.talk.part():
                yield
            return
        talk = state.talk = Conversation(what, self.rank, self.size, self._counted, self.counters)
        try:
            with self._telling(what, lambda: not talk.over):
                yield
                talk.settle()
        except BaseException as error:
            # questions of the others would meet those of another conversation
            if not isinstance(error, Exception) and not talk.over:
                self._transport.leave(what)
            raise
        finally:
            state.talk = None

    def _settle(self) -> None:
        """Let all processes come here before they exchange anything else: what they ask in a conversation may wait."""
        if self._state.talk is not None:
            self._state.talk.settle()

    def asked(self, what: str, ids: Ints, owners: Callable[[Ints], Ints]) -> Ints:
        distinct = np.unique(ids)
        wanted = self.exchange(what, Routes(owners(distinct), self.size).parcels(distinct))
        return np.unique(np.concatenate([ids[:0], *(array for (array,) in filter(None, wanted))]))

    def pieces(self, what: str, ids: Ints, owners: Callable[[Ints], Ints], held: Located) -> list[Piece]:
        def located(ids: Ints, to: Ints) -> Piece:
            rows, at = held(ids)
            return Piece(rows.detach().cpu(), at, to)

        routes, empty = Routes(owners(ids), self.size), located(ids[:0], ids[:0]).copied()
        entries = [routes.to(r) for r in range(self.size)]
        # rows of this process stay where they are; found before the others are asked, so that all hear of an error
        own, entries[self.rank] = entries[self.rank], ids[:0]
        pieces = [located(ids[own], own)] if len(own) else []
        # ascending ids take fewer bytes
        entries = [each[np.argsort(ids[each])] for each in entries]
        questions = [[ids[each]] if len(each) else [] for each in entries]
        # often the last question of a batch
        answers = self.ask(what, questions, lambda ids: to_arrays(located(ids, ids).copied()), last=True)
        arrived = [Piece(from_arrays(arrays, empty), None, entries[r]) for r, arrays in enumerate(answers) if arrays]
        return pieces + arrived

    def fetch(self, what: str, ids: Ints, owners: Callable[[Ints], Ints], held: Callable[[Ints], Tensor]) -> Tensor:
        distinct, index = distinct_in_place(ids)
        pieces = self.pieces(what, distinct, owners, lambda ids: (held(ids), None))
        rows = put_pieces(pieces, len(distinct), held(distinct[:0]).cpu())
        return rows if index is None else fetch_rows(rows, torch.from_numpy(index))

    def send(
        self, what: str, facts: Array, columns: Sequence[tuple[Ints, Tensor]]
    ) -> tuple[Array, list[list[tuple[Ints, Tensor]]]]:
        parcels: list[list[Array]] = [[facts] for _ in range(self.size)]
        for ids, rows in columns:
            routes = Routes(self.owners(ids), self.size)
            for rank, parcel in enumerate(parcels):
                own = routes.to(rank)
                parcel += [ids[own], as_array(take_rows(rows.cpu(), torch.from_numpy(own)).contiguous())]
        received = self.exchange(what, parcels)
        return np.stack([arrays[0] for arrays in received]), [
            [(arrays[1 + 2 * k], from_numpy(arrays[2 + 2 * k], rows.dtype)) for arrays in received]
            for k, (_, rows) in enumerate(columns)
        ]

    def _come(self, what: str) -> None:
        """Come to an exchange without parcels."""
        self._settle()
        self._meet(what, self._nothing)
        self._state.exchanges += 1

    def copy_first(self, what: str, tensors: Iterable[Tensor]) -> None:
        self._come(what)
        self._transport.copy_first(list(tensors))

    def rows_of_all(self, what: str, places: Tensor, rows: Tensor, count: int) -> Tensor:
        whole = super().rows_of_all(what, places, rows, count)
        self._come(what)
        self._transport.add_up(whole)()
        return whole

    @contextmanager
    def averaging(self, parameters: Iterable[nn.Parameter], *numbers: float) -> Iterator[list[float]]:
        trained, means, what = [one for one in parameters if one.requires_grad], list[float](), "gradients"
        # a channel of their own: other exchanges may come in between
        transport = self._gradients = self._gradients or self._transport.beside()
        transport.enter(what)
        averaging = Averaging(trained, transport.add_up)
        try:
            with self.together(what):
                yield means
                own = [averaging.end_of_pass(), np.array(numbers, np.float64)]
                states, numbers_of_all = zip(*self.gather("which gradients there are", own), strict=True)
                averaging.end(np.stack(states))
        except BaseException:
            averaging.let_go()
            # some processes may have begun with buckets that others never will
            transport.abandon()
            if transport.broken:  # for good, with the default group
                self._transport.give_up(transport.broken)
            self._gradients = None
            raise
        means += np.mean(numbers_of_all, 0).tolist()

    def of_first(self, what: str, make: Callable[[], _T]) -> _T:
        if self.is_first:
            with self.together(what, exchanges=1):
                value = make()
                packed = np.frombuffer(pickle.dumps(value), np.uint8)
            self.gather(what, [packed])
        else:
            value = pickle.loads(self.gather(what, [])[0][0].tobytes())
        return value

    def agree(self, what: str, facts: Facts) -> None:
        facts = facts() if callable(facts) else facts
        gathered = self.gather(what, [np.frombuffer(json.dumps(dict(facts)).encode(), np.uint8)])
        check_same(what, [json.loads(array.tobytes()) for (array,) in gathered])

    def channel(self) -> object:
        return self._transport.beside()

    @contextmanager
    def using(self, channel: object) -> Iterator[None]:
        outer, self._state.channel = self._state.channel, channel
        try:
            yield
        finally:
            self._state.channel = outer

    @cached_property
    def _first(self) -> GroupTransport:
        return self._connect()

    @property
    def _transport(self) -> GroupTransport:
        process.check_same(self._process, "the connections to other processes")
        return self._state.channel or self._first

    @cached_property
    def _nothing(self) -> list[Bytes]:
        """A parcel for each process with nothing in it."""
        return [_NO_BYTES] * self.size

    def together(self, what: str, exchanges: int = MANY) -> AbstractContextManager[None]:
        begun = self._state.exchanges
        return self._telling(what, lambda: self._state.exchanges - begun < exchanges)

    @contextmanager
    def _telling(self, what: str, others_wait: Callable[[], bool]) -> Iterator[None]:
        """Tell the other processes of an error, as long as they wait."""
        try:
            yield
        except PeerError:
            # the other processes raise one too, or are gone: there is nothing to send
            raise
        except Exception as error:
            # an enclosing operation need not send it again
            if others_wait() and not is_heard_by_all(error):
                self._tell(what, error)
            raise

    def _meet(self, what: str, packed: Sequence[Bytes], note: int = 0) -> tuple[list[Bytes], Ints]:
        """Come to an exchange; return the parcel and the note of each process. Raises PeerError unless all come."""
        transport, room = self._transport, self._transport.expected.next
        transport.enter(what)
        heads, parcels = self._swap(what, _WELL, packed, note)
        self._check(what, heads)
        notes, any_follows = np.divmod(heads[:, 3], 2)
        if any_follows.any():  # a parcel somewhere has no room in its line: such parcels follow
            follow = [size * (size > own) for size, own in zip(heads[:, 2].tolist(), room.received, strict=True)]
            rest = [parcel if len(parcel) > own else _NO_BYTES for parcel, own in zip(packed, room.sent, strict=True)]
            with _to_its_end(transport, what, Exception):
                followed = transport.send(rest, follow)
            parcels = [late if size else one for one, late, size in zip(parcels, followed, follow, strict=True)]
        return parcels, notes

    def _swap(self, what: str, state: int, packed: Sequence[Bytes], note: int = 0) -> tuple[Ints, list[Bytes]]:
        """Send a line to each process; return the heads of the lines of all, ``[size, 4]``, and the parcels in them.

        A line: kind, state, bytes of the parcel, twice the note + whether any parcel of the sender follows, and the
        parcel if it fits.
        """
        expected, lines, sent = self._transport.expected, list[Bytes](), list(map(len, packed))
        room = expected.next
        any_follows = any(size > own for size, own in zip(sent, room.sent, strict=True))
        for parcel, own in zip(packed, room.sent, strict=True):
            line = np.zeros(_HEAD + own, np.uint8)
            line[:_HEAD].view(np.int64)[:] = kind_of(what), state, len(parcel), 2 * note + any_follows
            if len(parcel) <= own:
                line[_HEAD : _HEAD + len(parcel)] = parcel
            lines.append(line)
        with _to_its_end(self._transport, what):
            came = self._to_others(lines, [_HEAD + own for own in room.received])
            heads = np.stack([line[:_HEAD].view(np.int64) for line in came])
            sizes = heads[:, 2].tolist()
            if (heads[:, :2] == [kind_of(what), _WELL]).all():
                expected.learn(what, sent, sizes)
            else:
                expected.forget()
        return heads, [line[_HEAD : _HEAD + size] for line, size in zip(came, sizes, strict=True)]

    def _to_others(self, parcels: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
        """Send a parcel to each process; return those of all, of ``sizes`` bytes. That of this one does not travel."""
        others = [r != self.rank for r in range(self.size)]
        sent = [parcel if other else _NO_BYTES for parcel, other in zip(parcels, others, strict=True)]
        came = self._transport.send(sent, [size * other for size, other in zip(sizes, others, strict=True)])
        came[self.rank] = parcels[self.rank]
        return came

    def _check(self, what: str, heard: Ints) -> None:
        """Raise PeerError where a process has failed, or is at another exchange; then all processes raise it."""
        others = np.flatnonzero(heard[:, 1] == _FAILED)
        strange = np.flatnonzero(heard[:, 0] != kind_of(what))
        if not len(others) and not len(strange):
            return
        # all processes have heard of it: they tell each other what they were doing, or why they failed
        words = self._words(what.encode())
        if len(others):
            rank = int(others[0])
            raise heard_by_all(PeerError(f"rank {rank} failed while this one was at {what}: {words[rank]}"))
        rank = int(strange[0])
        raise PeerError(
            f"rank {rank} is at another exchange: {words[rank]} there, {what} here; all processes must draw, fetch and "
            "bind in the same order"
        )

    def _words(self, words: bytes) -> list[str]:
        """Send words to all other processes; return those of all."""
        parcel, size = np.frombuffer(words, np.uint8), np.array([len(words)]).view(np.uint8)
        sizes = self._to_others([size] * self.size, [len(size)] * self.size)
        came = self._to_others([parcel] * self.size, [each.view(np.int64).item() for each in sizes])
        return [each.tobytes().decode() for each in came]

    def _tell(self, what: str, error: Exception) -> None:
        """Tell the others, who wait in an exchange, that this process has failed."""
        try:
            self._transport.enter(what)
            self._swap(what, _FAILED, self._nothing)
            self._words(f"{type(error).__name__}: {error} (at {what})".encode())
            heard_by_all(error)
        except PeerError:  # the peers are gone; the error of this process is raised instead
            pass


@contextmanager
def _to_its_end(transport: GroupTransport, what: str, *also: type[Exception]) -> Iterator[None]:
    """Give the transport up where an exchange is interrupted, or raises one of ``also``.

    The others may have come to its end, and expect other sizes from then on.
    """
    try:
        yield
    except PeerError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) or isinstance(error, also):
            transport.leave(what)
        raise


def heard_by_all(error: _E) -> _E:
    """Note on an error that all processes have heard of it, so that one of them is enough to print it."""
    error.add_note(_HEARD)
    return error


def is_heard_by_all(error: Exception) -> bool:
    """Return whether all processes have heard of an error."""
    return _HEARD in getattr(error, "__notes__", ())


def check_same(what: str, facts: Sequence[Mapping[str, str]]) -> None:
    """Raise ValueError unless all processes have the same facts."""
    first = facts[0]
    for rank, other in enumerate(facts):
        for name in {**first, **other}:
            if first.get(name) != other.get(name):
                raise heard_by_all(
                    ValueError(
                        f"{what} must be the same on all processes, but {name} is {first.get(name, 'not there')} on "
                        f"rank 0 and {other.get(name, 'not there')} on rank {rank}"
                    )
                )
