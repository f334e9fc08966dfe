"""The processes that hold a graph together, as one of them sees them: exchanges that end on all of them, or on none.

Arrays travel as bytes, each with its type and shape before it as 64-bit integers, all padded to 8 bytes.
"""

from __future__ import annotations

import json
import math
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._peers.held import MANY, Counters, Facts, Peers
from nodeflow._peers.routes import Routes
from nodeflow._rows.rows import as_array, fetch_rows, from_arrays, from_numpy, new_rows, take_rows, to_arrays
from nodeflow.distributed._transport import Bytes, GroupTransport, PeerError

_WELL, _FAILED = 0, 1
_KINDS = tuple(map(np.dtype, ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")))
_PADDING = np.zeros(8, np.uint8)


@cache
def _kind(what: str) -> int:
    return zlib.crc32(what.encode())


class _State(threading.local):
    """The state of a thread: exchanges so far, nesting depth, last error sent to peers, channel."""

    exchanges = 0
    depth = 0
    reported: Exception | None = None
    channel: Any = None


class PeerGroup(Peers):
    """Exchanges between several processes that hold a graph, with the methods of ``Peers``.

    Every exchange begins with a line of numbers to each process: what is exchanged, how many bytes follow, and whether
    the sender has failed. So processes that do different things, or of which one has raised, all end with an error.
    """

    def __init__(self, transport: GroupTransport, book: Any = None) -> None:
        self._first, self.rank, self.size = transport, transport.rank, transport.size
        self.book = book  # the folder of the parts, known once all processes have agreed on what they open
        self.counters = Counters()
        self._state = _State()

    @property
    def broken(self) -> bool:
        return bool(self._transport.broken)

    def owners(self, ids: Ints, kind: str = "node") -> Ints:
        owners: Ints = self.book.owners(ids, kind)
        return owners

    def exchange(self, what: str, parcels: Sequence[Sequence[Array]], detail: str = "") -> list[list[Array]]:
        packed = [np.zeros(0, np.uint8) if r == self.rank else pack(p) for r, p in enumerate(parcels)]
        received = self._swapped(what, packed, detail)
        return [list(parcels[r]) if r == self.rank else unpack(received[r]) for r in range(self.size)]

    def fetch(
        self,
        what: str,
        ids: Ints,
        owners: Callable[[Ints], Ints],
        held: Callable[[Ints], Tensor],
        before: Callable[[Ints], None] | None = None,
    ) -> Tensor:
        distinct, index = _distinct(ids)
        routes = Routes(owners(distinct), self.size)
        questions = self.exchange(f"ids of {what}", routes.parcels(distinct))
        if before is not None:
            before(np.unique(np.concatenate([part[0] for part in questions if part] or [distinct[:0]])))
        answers = [to_arrays(held(part[0])) if part else [] for part in questions]
        received = self.exchange(f"rows of {what}", answers)
        # no rows, but their shape and type: needed to read answers, and the result where no id is asked for
        rows = empty = held(distinct[:0]).cpu()
        if len(ids):
            rows = routes.joined([from_arrays(arrays, empty) if arrays else None for arrays in received])
        if index is not None:
            rows = fetch_rows(rows, torch.from_numpy(index))
        return rows

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

    @property
    def _transport(self) -> GroupTransport:
        return self._state.channel or self._first

    @contextmanager
    def together(self, what: str, exchanges: int = MANY) -> Iterator[None]:
        state = self._state
        begun, state.depth = state.exchanges, state.depth + 1
        try:
            yield
        except PeerError:
            # the other processes raise one too, or are gone: there is nothing to send
            raise
        except Exception as error:
            if state.exchanges - begun < exchanges and state.reported is not error:
                state.reported = error  # an enclosing operation need not send it again
                self._tell(what, error)
            raise
        finally:
            state.depth -= 1
            if not state.depth:
                state.reported = None

    def _swapped(self, what: str, packed: Sequence[Bytes], detail: str) -> list[Bytes]:
        begun, operation = perf_counter(), f"{what} ({detail})" if detail else what
        self._transport.enter(operation)
        heard = self._transport.swap(self._line(operation, _WELL, packed))
        self._state.exchanges += 1
        self._check(operation, heard)
        sent = [len(parcel) for parcel in packed]
        counters = self.counters
        counters.exchanges += 1
        counters.messages += sum(size > 0 for size in sent)
        counters.bytes_sent += sum(sent)
        counters.bytes_received += int(heard[:, 2].sum())
        counters.by_kind[what] = counters.by_kind.get(what, 0) + sum(sent)
        received = self._transport.send(packed, heard[:, 2].tolist())
        counters.seconds += perf_counter() - begun
        return received

    def _line(self, what: str, state: int, packed: Sequence[Bytes]) -> Ints:
        return np.array([[_kind(what), state, len(parcel)] for parcel in packed], np.int64)

    def _check(self, what: str, heard: Ints) -> None:
        """Raise PeerError where a process has failed, or is at another exchange; then all processes raise it."""
        others = np.flatnonzero(heard[:, 1] == _FAILED)
        strange = np.flatnonzero(heard[:, 0] != _kind(what))
        if not len(others) and not len(strange):
            return
        # all processes have heard of it: they tell each other what they were doing, or why they failed
        words = self._words(what.encode())
        if len(others):
            rank = int(others[0])
            raise PeerError(f"rank {rank} failed while this one was at {what}: {words[rank]}")
        rank = int(strange[0])
        raise PeerError(
            f"rank {rank} is at another exchange: {words[rank]} there, {what} here; all processes must draw, fetch and "
            "bind in the same order"
        )

    def _words(self, words: bytes) -> list[str]:
        """Send words to all other processes; return theirs."""
        own = np.frombuffer(words, np.uint8)
        sizes = self._transport.swap(np.full((self.size, 1), len(own), np.int64))[:, 0]
        sizes[self.rank] = 0
        parcels = [own[:0] if r == self.rank else own for r in range(self.size)]
        return [part.tobytes().decode() for part in self._transport.send(parcels, sizes.tolist())]

    def _tell(self, what: str, error: Exception) -> None:
        """Tell the others, who wait in an exchange, that this process has failed."""
        try:
            self._transport.enter(what)
            empty = [np.zeros(0, np.uint8)] * self.size
            self._transport.swap(self._line(what, _FAILED, empty))
            self._words(f"{type(error).__name__}: {error} (at {what})".encode())
        except PeerError:  # the peers are gone; the error of this process is raised instead
            pass


def check_same(what: str, facts: Sequence[Mapping[str, str]]) -> None:
    """Raise ValueError unless all processes have the same facts."""
    first = facts[0]
    for rank, other in enumerate(facts):
        for name in {**first, **other}:
            if first.get(name) != other.get(name):
                raise ValueError(
                    f"{what} must be the same on all processes, but {name} is {first.get(name, 'not there')} on rank 0 "
                    f"and {other.get(name, 'not there')} on rank {rank}"
                )


def _distinct(ids: Ints) -> tuple[Ints, Ints | None]:
    """Ids without repeats, and where each is among them; None where nothing repeats (the nodes of a layer, say)."""
    ordered = np.sort(ids)  # a fraction of the time of an inverse, which is seldom needed
    if (ordered[1:] != ordered[:-1]).all():
        return ids, None
    return np.unique(ids, return_inverse=True)


def pack(arrays: Sequence[Array]) -> Bytes:
    """Return arrays as bytes, none as no bytes."""
    pieces: list[Bytes] = []
    for array in arrays:
        head = np.array([_KINDS.index(array.dtype), array.ndim, *array.shape], np.int64)
        numbers = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces += [head.view(np.uint8), numbers, _PADDING[: -array.nbytes % 8]]
    packed: Bytes = new_rows(sum(map(len, pieces)), (), torch.uint8).numpy()
    return np.concatenate(pieces, out=packed) if pieces else packed


def unpack(packed: Bytes) -> list[Array]:
    """Return the arrays that ``pack`` was given; they share the memory of ``packed``."""
    words, arrays, at = packed.view(np.int64), [], 0
    while at < len(words):
        kind, ndim = words[at : at + 2].tolist()
        shape, dtype = words[at + 2 : at + 2 + ndim].tolist(), _KINDS[kind]
        at += 2 + ndim
        size = math.prod(shape) * dtype.itemsize
        arrays.append(packed[8 * at : 8 * at + size].view(dtype).reshape(shape))
        at += -(-size // 8)
    return arrays
