"""Protocols of a graph that several processes may hold: the part of this one, and communication with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import Array
from nodeflow._peers.counters import Counters

MANY = 2**31
Facts = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""Words by name, or a function that gives them, which one process alone never calls."""


class Peers(Protocol):
    """The processes that hold a graph together, as one of them sees them; ``Alone`` is a process that holds all of it.

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

    @property
    def counters(self) -> Counters:
        """What this process has exchanged so far."""

    def owners(self, nodes: Ints) -> Ints:
        """Return the process that owns each node, and draws for it."""

    def edge_owners(self, eid: Ints) -> Ints:
        """Return the process that holds each edge."""

    def exchange(self, what: str, parcels: Sequence[Sequence[Array]], detail: str = "") -> list[list[Array]]:
        """Send the arrays ``parcels[r]`` to process r; return what each process sent here.

        ``what`` and ``detail`` say in messages what is exchanged; a mismatch raises on all processes.
        """

    def gather(self, what: str, arrays: Sequence[Array]) -> list[list[Array]]:
        """Send the same arrays to all processes; return what each process sent."""

    def agree(self, what: str, facts: Facts) -> None:
        """Raise ValueError, on all processes, unless all have the same facts."""

    def channel(self) -> object:
        """Return a channel, in which a thread can exchange beside the others; collective."""

    def using(self, channel: object) -> AbstractContextManager[None]:
        """Let the exchanges of this thread go through a channel; only one thread at a time may use it."""

    def together(self, what: str, exchanges: int = MANY) -> AbstractContextManager[None]:
        """Enter an operation that ends with an exchange, or is followed by one: its errors are raised on all processes.

        Where ``exchanges`` is given, only those that are raised before so many were made.
        """


def together(graph: HeldGraph, what: str) -> AbstractContextManager[None]:
    """Enter an operation that is followed by an exchange, or ends with one: its errors are raised on all processes."""
    return graph.peers.together(what)


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


class Held(Protocol):
    """The part of a graph that a process holds; ``HeldWhole`` is all of it.

    ``num_edges`` and ``edata`` are those of the edges held here, by their ids in the part.
    """

    @property
    def num_edges(self) -> int:
        """The number of edges held here."""

    @property
    def edata(self) -> Mapping[str, Any]:
        """The edge columns of the edges held here, tensors ``[num_edges, ...]`` or ``Rows``."""

    @property
    def whole(self) -> WholeIds:
        """The ids that rows and edges have in the whole graph."""

    @property
    def masters(self) -> Tensor:
        """Ids of the nodes that this process owns, ascending, int64."""

    def csc(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges of the nodes owned here; sources by parent id."""

    def csr(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges of the nodes owned here."""

    def rows(self) -> tuple[Ints, Ints, Array, Array | None]:
        """Return ``(destinations, indptr, sources, edge ids)`` of all edges held here, wherever their ends lie.

        The in-edges of ``destinations[i]`` that are held here are ``indptr[i]`` to ``indptr[i + 1]``.
        """

    def edges_here(self, eid: Ints) -> Ints:
        """Return the ids in the part of those of the edges ``eid``, parent ids, that are held here."""

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        """Return the entries that the edges held here have in an array by parent edge id."""


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
        """What this process holds of the graph."""
