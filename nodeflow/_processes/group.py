"""Several processes, as one of them sees them: exchanges that end on all of them, or on none."""

from __future__ import annotations

import itertools
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

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.peers.peers import Answer, Ask, Facts, Located, Peers
from nodeflow._core.peers.routes import Routes
from nodeflow._core.rows.pieces import Piece, distinct_in_place, put_pieces
from nodeflow._core.rows.rows import (
    as_array,
    fetch_rows,
    from_arrays,
    from_numpy,
    take_rows,
    to_arrays,
)
from nodeflow._core.runtime import process
from nodeflow._processes.exchanges import Exchanges, Swapped, heard_by_all
from nodeflow._processes.packed import pack, unpack
from nodeflow._processes.transport import Bytes, GroupTransport

_T = TypeVar("_T")
_LARGE = 2**16  # numbers of a gradient that travels alone


class _State(threading.local):
    """The channel of a thread."""

    channel: Exchanges | None = None


class PeerGroup(Peers):
    """Exchanges between several processes, with the methods of ``Peers``."""

    def __init__(
        self, rank: int, size: int, connect: Callable[[], GroupTransport], book: Any = None
    ) -> None:
        super().__init__()
        self.rank = rank
        self.size = size
        # the folder of the parts, known once all processes have agreed on what they open
        self.book = book
        self._connect = connect  # called for the first exchange
        self._state = _State()
        self._process = os.getpid()

    @property
    def broken(self) -> bool:
        return bool(self._channel.transport.broken)

    @property
    def inherited(self) -> bool:
        return os.getpid() != self._process

    def owners(self, ids: Ints, kind: str = "node") -> Ints:
        owners: Ints = self.book.owners(ids, kind)
        return owners

    def exchange(
        self, what: str, parcels: Sequence[Sequence[Array]], detail: str = ""
    ) -> list[list[Array]]:
        received, _ = self._exchanged(what, parcels, detail)
        return received

    def _exchanged(
        self,
        what: str,
        parcels: Sequence[Sequence[Array]],
        detail: str = "",
        *,
        goes_on: bool = False,
    ) -> tuple[list[list[Array]], Swapped]:
        # what this process sends to itself does not travel
        sent = list(parcels)
        sent[self.rank] = ()
        packed = [pack(parcel) for parcel in sent]
        begun = perf_counter()
        name = f"{what} ({detail})" if detail else what
        came = self._channel.meet(name, packed, goes_on=goes_on)
        self._count(what, packed, came.parcels, perf_counter() - begun)
        received = [unpack(parcel) for parcel in came.parcels]
        received[self.rank] = list(parcels[self.rank])
        return received, came

    def _count(
        self, what: str, sent: Sequence[Bytes], received: Sequence[Bytes], seconds: float
    ) -> None:
        counters = self.counters
        sizes = [len(parcel) for parcel in sent]
        counters.exchanges += 1
        counters.messages += sum(size > 0 for size in sizes)
        counters.bytes_sent += sum(sizes)
        counters.bytes_received += sum(len(parcel) for parcel in received)
        counters.by_kind[what] = counters.by_kind.get(what, 0) + sum(sizes)
        counters.seconds += seconds

    def ask(
        self, what: str, parcels: Sequence[Sequence[Array]], answer: Answer
    ) -> list[list[Array]]:
        with self.answering(what, answer) as ask:
            return ask(parcels, last=True)

    @contextmanager
    def answering(self, what: str, answer: Answer) -> Iterator[Ask]:
        any_asks_again = True

        def replies(questions: Sequence[Sequence[Array]]) -> list[list[Array]]:
            return [list(answer(*question)) if question else [] for question in questions]

        def ask(parcels: Sequence[Sequence[Array]], *, last: bool) -> list[list[Array]]:
            nonlocal any_asks_again
            asks_others = any(
                len(parcel) for rank, parcel in enumerate(parcels) if rank != self.rank
            )
            if not asks_others and not last:
                return replies(parcels)
            questions, came = self._exchanged(f"{what}: questions", parcels, goes_on=not last)
            any_asks_again = came.any_goes_on
            answers = replies(questions)
            if not came.any_sent:
                return answers
            return self.exchange(f"{what}: answers", answers)

        with self.together(what):
            yield ask
            # the others may still have questions for this process
            while any_asks_again:
                ask([[]] * self.size, last=True)

    def asked(self, what: str, ids: Ints, owners: Callable[[Ints], Ints]) -> Ints:
        distinct = np.unique(ids)
        routes = Routes(owners(distinct), self.size)
        wanted = self.exchange(what, routes.parcels(distinct))
        return np.unique(np.concatenate([ids[:0], *itertools.chain(*wanted)]))

    def pieces(
        self, what: str, ids: Ints, owners: Callable[[Ints], Ints], locate: Located
    ) -> list[Piece]:
        def located(ids: Ints, to: Ints) -> Piece:
            rows, places = locate(ids)
            return Piece(rows.detach().cpu(), places, to)

        def answer(ids: Ints) -> Sequence[Array]:
            return to_arrays(located(ids, ids).copied())

        with self.together(what):
            routes = Routes(owners(ids), self.size)
            entries = [routes.to(rank) for rank in range(self.size)]
            # rows of this process stay where they are
            own_entries = entries[self.rank]
            entries[self.rank] = own_entries[:0]
            pieces = [located(ids[own_entries], own_entries)] if len(own_entries) else []
            questions = [[ids[asked]] if len(asked) else [] for asked in entries]
            answers = self.ask(what, questions, answer)
            empty = located(ids[:0], ids[:0]).copied()
            for asked, arrays in zip(entries, answers, strict=True):
                if arrays:
                    pieces.append(Piece(from_arrays(arrays, empty), None, asked))
            return pieces

    def fetch(
        self,
        what: str,
        ids: Ints,
        owners: Callable[[Ints], Ints],
        rows_of: Callable[[Ints], Tensor],
    ) -> Tensor:
        # repeats are put back here: rows travel once
        distinct, index = distinct_in_place(ids)
        pieces = self.pieces(what, distinct, owners, lambda ids: (rows_of(ids), None))
        rows = put_pieces(pieces, len(distinct), rows_of(distinct[:0]).cpu())
        return rows if index is None else fetch_rows(rows, torch.from_numpy(index))

    def send(
        self, what: str, facts: Array, columns: Sequence[tuple[Ints, Tensor]]
    ) -> tuple[Array, list[list[tuple[Ints, Tensor]]]]:
        parcels: list[list[Array]] = [[facts] for _ in range(self.size)]
        for ids, rows in columns:
            routes = Routes(self.owners(ids), self.size)
            for rank, parcel in enumerate(parcels):
                entries = routes.to(rank)
                chosen = take_rows(rows.cpu(), torch.from_numpy(entries))
                parcel += [ids[entries], as_array(chosen.contiguous())]
        received = self.exchange(what, parcels)
        came: list[list[tuple[Ints, Tensor]]] = [[] for _ in columns]
        for _, *arrays in received:
            for column, (_, rows), ids, new in zip(
                came, columns, arrays[::2], arrays[1::2], strict=True
            ):
                column.append((ids, from_numpy(new, rows.dtype)))
        return np.stack([arrays[0] for arrays in received]), came

    def copy_first(self, what: str, tensors: Iterable[Tensor]) -> None:
        channel = self._channel
        channel.joined(what, lambda: channel.transport.copy_first(what, list(tensors)))

    def rows_of_all(self, what: str, places: Tensor, rows: Tensor, count: int) -> Tensor:
        channel = self._channel
        with self.together(what):
            all_rows = super().rows_of_all(what, places, rows, count)
            channel.joined(what, lambda: channel.transport.add_up(what, [all_rows]))
        return all_rows

    @contextmanager
    def averaging(
        self, parameters: Iterable[nn.Parameter], *numbers: float
    ) -> Iterator[list[float]]:
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        means = list[float]()
        what = "gradients"
        with self.together(what):
            yield means
            has_gradient = np.array([parameter.grad is not None for parameter in trained], np.bool_)
            # One message says who has gradients, the sums travel in as few as there are groups. All
            # processes join in all groups, since a sum that one leaves out would hang the others.
            groups = _added_up_at_once(trained)
            sums = [_joined_gradients(group) for group in groups]
            gathered = self.gather(what, [has_gradient, np.array(numbers, np.float64)])
            channel = self._channel
            channel.second_half(what, lambda: channel.transport.add_up(what, sums))
            anywhere = np.any([flags for flags, _ in gathered], axis=0)
            for group, total in zip(groups, sums, strict=True):
                means_of_group = total.div_(self.size).split(
                    [parameter.numel() for parameter in group]
                )
                for parameter, mean in zip(group, means_of_group, strict=True):
                    parameter.grad = mean.view_as(parameter)
            # where no process has a gradient there is none, and an optimiser skips the parameter
            for parameter, has_any in zip(trained, anywhere.tolist(), strict=True):
                if not has_any:
                    parameter.grad = None
            means += np.mean([of_process for _, of_process in gathered], 0).tolist()

    def of_first(self, what: str, make: Callable[[], _T]) -> _T:
        with self.together(what):
            if self.is_first:
                value = make()
                self.gather(what, [_as_bytes(pickle.dumps(value))])
                return value
            ((pickled,), *_) = self.gather(what, [])
        return pickle.loads(pickled.tobytes())  # type: ignore[no-any-return]

    def agree(self, what: str, facts: Facts) -> None:
        with self.together(what):
            own_facts = facts() if callable(facts) else facts
            text = json.dumps(dict(own_facts)).encode()
            gathered = self.gather(what, [_as_bytes(text)])
            check_same(what, [json.loads(array.tobytes()) for (array,) in gathered])

    def channel(self) -> object:
        return Exchanges(self._channel.transport.beside())

    @contextmanager
    def using(self, channel: Any) -> Iterator[None]:
        outer = self._state.channel
        self._state.channel = channel
        try:
            yield
        finally:
            self._state.channel = outer

    def together(self, what: str) -> AbstractContextManager[None]:
        return self._channel.inside(what)

    @property
    def _channel(self) -> Exchanges:
        process.check_same(self._process, "the connections to other processes")
        return self._state.channel or self._first

    @cached_property
    def _first(self) -> Exchanges:
        return Exchanges(self._connect())


def _as_bytes(text: bytes) -> Bytes:
    return np.frombuffer(text, np.uint8)


def _added_up_at_once(parameters: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Parameters in groups: small ones of one type and device together, each large one alone,
    without a copy.
    """
    groups = dict[object, list[nn.Parameter]]()
    for number, parameter in enumerate(parameters):
        key = (parameter.dtype, parameter.device) if parameter.numel() < _LARGE else number
        groups.setdefault(key, []).append(parameter)
    return list(groups.values())


def _joined_gradients(parameters: Sequence[nn.Parameter]) -> Tensor:
    """The gradients of parameters, one after the other, zeros for those that are missing.

    They are added up after the backward pass. DistributedDataParallel does so during the pass, but
    waits for a pass on every process, and a process whose share of a batch is empty makes none.
    """
    gradients = [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for parameter in parameters
    ]
    if len(gradients) == 1:
        return gradients[0].contiguous().view(-1)
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def check_same(what: str, facts: Sequence[Mapping[str, str]]) -> None:
    """Raise ValueError unless all processes have the same facts."""
    first = facts[0]
    for rank, other in enumerate(facts):
        for name in {**first, **other}:
            if first.get(name) != other.get(name):
                raise heard_by_all(
                    ValueError(
                        f"{what} must be the same on all processes, but {name} is "
                        f"{first.get(name, 'not there')} on rank 0 and "
                        f"{other.get(name, 'not there')} on rank {rank}"
                    )
                )
