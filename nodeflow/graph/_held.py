"""What a process holds of a graph that lies on several, and what it asks the others: what samplers know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array

if TYPE_CHECKING:
    from nodeflow.graph._graph import Graph


class Peers(Protocol):
    """The processes that hold a graph together, as one of them sees them.

    ``exchange``, ``gather`` and ``agree`` are collective: every process calls them, in the same order.
    """

    @property
    def rank(self) -> int:
        """The number of this process."""

    @property
    def size(self) -> int:
        """The number of processes."""

    @property
    def broken(self) -> bool:
        """Whether an exchange did not end, so that the processes must be started again."""

    def owners(self, nodes: Ints) -> Ints:
        """Return the process that owns each node, and draws for it."""

    def edge_owners(self, eid: Ints) -> Ints:
        """Return the process that holds each edge."""

    def exchange(self, what: str, parcels: Sequence[Sequence[Array]], detail: str = "") -> list[list[Array]]:
        """Send the arrays ``parcels[r]`` to process r; return what each process sent here.

        ``what`` and ``detail`` say in messages what is exchanged; processes that exchange different things are told so.
        """

    def gather(self, what: str, arrays: Sequence[Array]) -> list[list[Array]]:
        """Send the same arrays to all processes; return what each process sent."""

    def agree(self, what: str, facts: Mapping[str, str]) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""

    def channel(self) -> object:
        """Return a channel, in which a thread can exchange beside the others; collective."""

    def using(self, channel: object) -> AbstractContextManager[None]:
        """Let the exchanges of this thread go through a channel; only one thread at a time may use it."""

    def together(self, what: str, exchanges: int) -> AbstractContextManager[None]:
        """Enter an operation with so many exchanges: what raises here before the last one raises on all processes.

        Exchanges of operations within this one count.
        """


_MANY = 2**31


def together(graph: Graph, what: str) -> AbstractContextManager[None]:
    """Enter an operation that is followed by an exchange, or ends with one: what raises in it raises on all processes.

    Of a graph that lies on one process, do nothing.
    """
    return nullcontext() if graph.peers is None else graph.peers.together(what, exchanges=_MANY)


class WholeIds(Frozen):
    """The ids that the rows and edges of a part have in the whole graph.

    ``rows_of`` maps parent ids of nodes that the part owns to rows of the part. ``edge_ids`` are the parent ids of the
    edges, by their ids in the part, and ``num_nodes`` is the number of nodes of the whole graph.
    """

    __slots__ = ("edge_ids", "num_nodes", "rows_of")
    rows_of: Callable[[Ints], Ints]
    edge_ids: Array
    num_nodes: int

    def __init__(self, rows_of: Callable[[Ints], Ints], edge_ids: Array, num_nodes: int) -> None:
        self._set(rows_of=rows_of, edge_ids=edge_ids, num_nodes=num_nodes)


class Held(Protocol):
    """What a process holds of a graph: of a ``Graph``, all of it.

    ``num_edges`` and ``edata`` are those of the edges held here, by their ids in the part.
    """

    @property
    def num_edges(self) -> int:
        """The number of edges held here."""

    @property
    def edata(self) -> Mapping[str, Any]:
        """The edge columns of the edges held here, tensors ``[num_edges, ...]`` or ``Rows``."""

    @property
    def whole(self) -> WholeIds | None:
        """The ids that rows and edges have in the whole graph; None where the part is the whole."""

    def csc(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges of the nodes owned here; sources by parent id."""

    def csr(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges of the nodes owned here."""

    def edges_here(self, eid: Ints) -> Ints:
        """Return the ids in the part of edges held here, by their parent ids."""

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        """Return the entries that the edges held here have in an array by parent edge id."""
