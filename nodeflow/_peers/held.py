"""The processes that hold a graph together, and the part of it that one of them holds.

``Peers`` and ``Held`` are those of one process, which holds all of a graph; ``nodeflow.distributed`` derives those of
several from them. Code that reads a graph has one path for both. Its words, for a graph that is cut in two:

>>> import tempfile
>>> from nodeflow import Graph, distributed
>>> graph = Graph.from_edges([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
>>> parts = distributed.partition_graph(graph, tempfile.mkdtemp(), 2, method=[0, 1, 0, 1], progress=False)
>>> parts.owners(np.arange(4))  # the part that owns each node
array([0, 1, 0, 1])
>>> part = parts.part(1)
>>> np.array(part.masters)  # the nodes that process 1 owns, ascending
array([1, 3])
>>> parts.places(np.arange(4))  # the row that each node has among the masters of its owner
array([0, 0, 1, 1])
>>> np.array(part.rows), np.array(part.indptr)  # destinations of the edges held here, and where their edges begin
(array([1, 3]), array([0, 1, 2]))
>>> np.array(part.src), np.array(part.edge_ids)  # per edge held here: its source and its id, in the whole graph
(array([0, 2], dtype=int32), array([0, 2], dtype=int32))

The position of an edge in these arrays is its id in the part: edge 2 of the whole graph is edge 1 of part 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array

MANY = 2**31
Facts = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""Values by name, or a function that returns them; a single process never calls it."""
_NOTHING: AbstractContextManager[None] = nullcontext()


@dataclass
class Counters:
    """Counts of what one process has sent to the others and received from them.

    Attributes:
        exchanges: number of exchanges.
        messages: number of parcels with something in them that were sent to another process.
        bytes_sent, bytes_received: bytes of the parcels. Threads that exchange at the same time may lose counts.
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
    """The processes that hold a graph together, as one of them sees them: here a single one, which holds all of it.

    ``exchange``, ``gather``, ``fetch``, ``send`` and ``agree`` are collective: every process calls them, in the same
    order. A single process exchanges with itself: what it sends comes back as it was, and nothing is copied.

    ``rank`` is the number of this process, ``size`` that of processes, ``counters`` what was exchanged so far.
    """

    rank, size = 0, 1

    def __init__(self) -> None:
        self.counters = Counters()

    @property
    def broken(self) -> bool:
        """Whether an exchange did not end, so that the processes must be started again."""
        return False

    def owners(self, ids: Ints, kind: str = "node") -> Ints:
        """Return the process that owns each node, and draws for it, or ("edge") that holds each edge."""
        return np.zeros(len(ids), np.int64)

    def exchange(self, what: str, parcels: Sequence[Sequence[Array]], detail: str = "") -> list[list[Array]]:
        """Send the arrays ``parcels[r]`` to process r; return what each process sent here.

        ``what`` and ``detail`` say in messages what is exchanged; a mismatch raises on all processes.
        """
        return [list(parcels[0])]

    def gather(self, what: str, arrays: Sequence[Array]) -> list[list[Array]]:
        """Send the same arrays to all processes; return what each process sent."""
        return self.exchange(what, [arrays] * self.size)

    def fetch(
        self,
        what: str,
        ids: Ints,
        owners: Callable[[Ints], Ints],
        held: Callable[[Ints], Tensor],
        before: Callable[[Ints], None] | None = None,
    ) -> Tensor:
        """Return the rows ``ids``, ``[len(ids), ...]``, in two exchanges; an id that is repeated travels once.

        Args:
            what: says in messages what is fetched.
            ids: those that this process asks for, which may be none.
            owners: says which process holds each of some ids.
            held: returns rows that this process holds, by parent id.
            before: called with all ids that are asked of this process, distinct, before ``held``. It may exchange.
        """
        if before is not None:
            before(np.unique(ids))
        return held(ids)

    def send(
        self, what: str, facts: Array, columns: Sequence[tuple[Ints, Tensor]]
    ) -> tuple[Array, list[list[tuple[Ints, Tensor]]]]:
        """Send dense rows to the processes that own their ids, in one exchange; all send as many columns.

        Args:
            what: says in messages what is sent.
            facts: numbers that every process tells all others.
            columns: ids ``[k]``, and the row of each ``[k, ...]``.

        Returns the facts of all processes, ``[size, ...]``, and for every column the ids and rows that came, by
        process.
        """
        return facts[None], [[column] for column in columns]

    def agree(self, what: str, facts: Facts) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""

    def channel(self) -> object:
        """Return a further channel, so that another thread can exchange at the same time; collective."""

    def using(self, channel: object) -> AbstractContextManager[None]:
        """Let the exchanges of this thread go through a channel; only one thread at a time may use it."""
        return _NOTHING

    def together(self, what: str, exchanges: int = MANY) -> AbstractContextManager[None]:
        """Enter an operation that ends with an exchange, or is followed by one: its errors are raised on all processes.

        ``exchanges``: only errors raised before this number of exchanges count.
        """
        return _NOTHING


ALONE = Peers()


class WholeIds(Frozen):
    """The ids that the rows and edges held here have in the whole graph, which has ``num_nodes`` nodes.

    Where one process holds all of it, as here, they are the same, and arrays come back as they are.
    """

    __slots__ = ("num_nodes",)
    num_nodes: int

    def __init__(self, num_nodes: int) -> None:
        self._set(num_nodes=num_nodes)

    def rows_of(self, nodes: Ints) -> Ints:
        """Return the rows of nodes that this process owns, by their parent ids."""
        return nodes

    def edge_ids_of(self, edges: Ints) -> Ints:
        """Return the parent ids of edges held here, int64, by their ids here."""
        return edges.astype(np.int64, copy=False)


class Held:
    """The part of a graph that a process holds: here all of ``graph``; nothing is copied.

    ``num_masters`` is the number of nodes that this process owns, ``num_edges`` that of edges held here. ``edata`` has
    their columns, tensors ``[num_edges, ...]`` or ``Rows``, by their ids in the part. ``whole`` says what ids rows and
    edges have in the whole graph.
    """

    def __init__(self, graph: Any) -> None:
        self._graph, self.num_masters, self.num_edges = graph, int(graph.num_nodes), int(graph.num_edges)
        self.edata: Mapping[str, Any] = graph.edata
        self.whole = WholeIds(graph.num_nodes)

    @property
    def masters(self) -> Tensor:
        """Ids of the nodes that this process owns, ascending, int64."""
        return torch.from_numpy(np.arange(self.whole.num_nodes))

    @property
    def mirrors(self) -> Ints:
        """Ids of the nodes that have edges here and that other processes own, ascending, int64."""
        return np.zeros(0, np.int64)

    def places(self, nodes: Ints) -> Ints:
        """Return where nodes with edges here, by parent id, are among masters and mirrors, one after the other."""
        return nodes

    def of_all_nodes(self, column: Any) -> Any:
        """Return the rows of masters, then mirrors, from rows of all nodes of the graph; collective."""
        return column

    def csc(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges of the nodes owned here; sources by parent id."""
        arrays: tuple[Ints, Array, Array | None] = self._graph.csc()
        return arrays

    def csr(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges of the nodes owned here."""
        arrays: tuple[Ints, Array, Array | None] = self._graph.csr()
        return arrays

    def edges_among(self, direction: str) -> tuple[Ints, Array, Array | None]:
        """Return ``csc`` or ("out") ``csr`` of all edges held here, with a row per master and mirror, by ``places``."""
        return self.csc() if direction == "in" else self.csr()

    def edges_here(self, eid: Ints) -> Ints:
        """Return the ids in the part of those of the edges ``eid``, parent ids, that are held here."""
        return eid

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        """Return the entries that the edges held here have in an array by parent edge id."""
        return np.asarray(values)


class HeldGraph(Protocol):
    """A graph, all or a part of which this process holds: as much of it as readers of edges and columns need."""

    @property
    def num_nodes(self) -> int:
        """The number of nodes of the whole graph."""

    @property
    def num_edges(self) -> int:
        """The number of edges of the whole graph."""

    @property
    def edata(self) -> Mapping[str, Any]:
        """The edge columns of the whole graph."""

    @property
    def peers(self) -> Peers:
        """The processes that hold the graph together."""

    @property
    def held(self) -> Held:
        """The part of the graph that this process holds."""


def together(graph: HeldGraph, what: str) -> AbstractContextManager[None]:
    """Enter an operation that is followed by an exchange, or ends with one: its errors are raised on all processes."""
    return graph.peers.together(what)
