"""The processes that work together, as one of them sees them: here a single one, for which every
exchange is nothing.

``Peers`` says what any number of processes can do; ``group`` derives those of several from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from torch import Tensor, nn

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.rows.pieces import Piece

_P = ParamSpec("_P")
_T = TypeVar("_T")
Facts = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""Values by name, or a function that returns them; a single process never calls it."""
Located = Callable[[Ints], tuple[Tensor, Ints | None]]
"""Takes ids, and returns rows that are held and which of them have these ids; None: they are those,
in turn.
"""
Answer = Callable[..., Sequence[Array]]
"""Takes the arrays of a question, and returns those of the answer."""
Ask = Callable[..., list[list[Array]]]
"""Takes ``parcels``, and by keyword ``last``, and returns the answers, see ``Peers.answering``."""
_NOTHING: AbstractContextManager[None] = nullcontext()


@dataclass
class Counters:
    """Counts of what one process has sent to the others and received from them.

    Attributes:
        exchanges: number of exchanges.
        messages: number of parcels with something in them that were sent to another process.
        bytes_sent, bytes_received: bytes of the parcels. Threads that exchange at the same time may
            lose counts.
        by_kind: the bytes sent, by what was exchanged.
        seconds: time spent in exchanges, in all threads, including waits for other processes.
    """

    exchanges: int = 0
    messages: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class Peers:
    """The processes that hold a graph or train a model together, as one of them sees them: here a
    single one.

    All methods but ``owners`` and ``using`` are collective: every process calls them, in the same
    order. A single process exchanges with itself: what it sends comes back as it was, and nothing
    is copied. ``what`` says in messages what is exchanged; a mismatch raises on all processes.

    ``rank`` is the number of this process, ``size`` that of processes, ``counters`` what was
    exchanged so far.
    """

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.counters = Counters()

    @property
    def is_first(self) -> bool:
        """Whether this is the process that prints and writes."""
        return self.rank == 0

    @property
    def broken(self) -> bool:
        """Whether an exchange did not end, so that the processes must be started again."""
        return False

    @property
    def inherited(self) -> bool:
        """Whether this is a child, made by fork, of the process that is one of them: no exchange is
        possible in it.
        """
        return False

    def owners(self, ids: Ints, kind: str = "node") -> Ints:
        """Return the process that owns each node, and draws for it, or ("edge") that holds each
        edge.
        """
        return np.zeros(len(ids), np.int64)

    def exchange(
        self, what: str, parcels: Sequence[Sequence[Array]], detail: str = ""
    ) -> list[list[Array]]:
        """Send the arrays ``parcels[r]`` to process r; return what each process sent here.

        ``detail`` is compared like ``what``, and is not counted apart in ``counters``.
        """
        return [list(parcels[0])]

    def gather(self, what: str, arrays: Sequence[Array]) -> list[list[Array]]:
        """Send the same arrays to all processes; return what each process sent."""
        return self.exchange(what, [arrays] * self.size)

    def ask(
        self, what: str, parcels: Sequence[Sequence[Array]], answer: Answer
    ) -> list[list[Array]]:
        """Ask process r about the arrays ``parcels[r]``, none to ask it nothing; return the answer
        of each, likewise.

        ``answer`` answers the question of a process, also that of this one to itself.
        """
        return [list(answer(*parcels[0])) if len(parcels[0]) else []]

    def answering(self, what: str, answer: Answer) -> AbstractContextManager[Ask]:
        """Answer questions within the block, and until no process asks any more; what is entered
        asks one.

        It takes ``parcels`` and returns answers as ``ask`` does, and takes ``last``: whether this
        process will ask no more. A process may ask as often as it likes, also never, and does not
        wait for the others meanwhile unless it asks. There must be no other exchange in the block.
        """
        return nullcontext(lambda parcels, last: self.ask(what, parcels, answer))

    def asked(self, what: str, ids: Ints, owners: Callable[[Ints], Ints]) -> Ints:
        """Ask the owners of ids for them; return the ids that all processes ask this one for,
        distinct, ascending.
        """
        return np.unique(ids)

    def pieces(
        self, what: str, ids: Ints, owners: Callable[[Ints], Ints], locate: Located
    ) -> list[Piece]:
        """Return the rows of distinct ids by a call of ``ask``, those of this process where they
        lie.

        Args:
            ids: those that this process asks for, which may be none.
            owners: says which process holds each of some ids.
            locate: says where rows are that this process holds, by parent id.
        """
        return [Piece(*locate(ids), np.arange(len(ids)))]

    def fetch(
        self,
        what: str,
        ids: Ints,
        owners: Callable[[Ints], Ints],
        rows_of: Callable[[Ints], Tensor],
    ) -> Tensor:
        """Return the rows ``ids``, ``[len(ids), ...]``, by a call of ``ask``; an id that is
        repeated travels once.

        ``ids`` and ``owners`` are as for ``pieces``; ``rows_of`` returns rows that this process
        holds, by parent id.
        """
        return rows_of(ids)

    def send(
        self, what: str, facts: Array, columns: Sequence[tuple[Ints, Tensor]]
    ) -> tuple[Array, list[list[tuple[Ints, Tensor]]]]:
        """Send dense rows to the processes that own their ids, in one exchange; all send as many
        columns.

        Args:
            facts: numbers that every process tells all others.
            columns: ids ``[k]``, and the row of each ``[k, ...]``.

        Returns the facts of all processes, ``[size, ...]``, and for every column the ids and rows
        that came, by process.
        """
        return facts[None], [[column] for column in columns]

    def agree(self, what: str, facts: Facts) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""

    def copy_first(self, what: str, tensors: Iterable[Tensor]) -> None:
        """Give the tensors the values that they have on the first process."""

    def averaging(
        self, parameters: Iterable[nn.Parameter], *numbers: float
    ) -> AbstractContextManager[Sequence[float]]:
        """Average the gradients of parameters over the processes, after the backward pass within
        the block.

        Where some processes have none, theirs counts as zeros; where all have none, it stays None.
        What is entered are the means of ``numbers`` over the processes, the same bits on all, known
        at the end.
        """
        return nullcontext(numbers)

    def of_first(self, what: str, make: Callable[[], _T]) -> _T:
        """Call ``make`` on the first process; return the result on all."""
        return make()

    def totals(self, what: str, *counts: int) -> list[int]:
        """Return the sum of each count over the processes."""
        gathered = self.gather(what, [np.array(counts, np.int64)])
        return np.sum([array for (array,) in gathered], axis=0).tolist()  # type: ignore[no-any-return]

    def rows_of_all(self, what: str, places: Tensor, rows: Tensor, count: int) -> Tensor:
        """Return ``[count, ...]`` on the CPU: each process passes its ``rows`` and their disjoint
        ``places``.
        """
        all_rows = rows.new_zeros((count, *rows.shape[1:]))
        all_rows[places] = rows
        return all_rows

    def channel(self) -> object:
        """Return a further channel, so that another thread can exchange at the same time;
        collective.
        """

    def using(self, channel: object) -> AbstractContextManager[None]:
        """Let the exchanges of this thread go through a channel; only one thread at a time may use
        it.
        """
        return _NOTHING

    def together(self, what: str) -> AbstractContextManager[None]:
        """Enter an operation that all processes enter, or a part of one: its errors are raised on
        all of them.
        """
        return _NOTHING


ALONE = Peers()


def collective_call(what: str = "") -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Make a method one operation of the ``peers`` of its object, or of its graph, which all of
    them call together.

    ``what`` says in messages what they do; by default the name of the method. "{self.x}" in it
    stands for an attribute of the object.
    """

    def decorated(method: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(method)
        def together(*args: _P.args, **options: _P.kwargs) -> _T:
            owner: Any = args[0]
            peers: Peers = getattr(owner, "peers", None) or owner.graph.peers
            # a process alone has nobody to tell of an error: no block is entered for it
            if peers.size == 1:
                return method(*args, **options)
            words = what or f"{method.__name__} of a {type(owner).__name__}"
            with peers.together(words.format(self=owner)):
                return method(*args, **options)

        return together

    return decorated
