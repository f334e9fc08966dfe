"""The group of one process, which holds all of a graph: what it sends comes back as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._peers.counters import Counters
from nodeflow._peers.held import Facts, WholeIds

_NOTHING: AbstractContextManager[None] = nullcontext()


class Alone:
    """A process that exchanges with itself alone. See ``Peers``, whose methods these are; nothing is copied."""

    rank, size, broken = 0, 1, False

    @property
    def counters(self) -> Counters:
        """What was sent: nothing."""
        return Counters()

    def owners(self, nodes: Ints) -> Ints:
        """Return 0 for each node."""
        return np.zeros(len(nodes), np.int64)

    def edge_owners(self, eid: Ints) -> Ints:
        """Return 0 for each edge."""
        return np.zeros(len(eid), np.int64)

    def exchange(self, what: str, parcels: Sequence[Sequence[Array]], detail: str = "") -> list[list[Array]]:
        """Return the arrays that this process has for itself."""
        return [list(parcels[0])]

    def gather(self, what: str, arrays: Sequence[Array]) -> list[list[Array]]:
        """Return the arrays, those of the only process."""
        return [list(arrays)]

    def agree(self, what: str, facts: Facts) -> None:
        """Do nothing: one process agrees with itself."""

    def channel(self) -> object:
        """Return None: there is nobody to exchange with."""

    def using(self, channel: object) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return _NOTHING

    def together(self, what: str, exchanges: int = 0) -> AbstractContextManager[None]:
        """Return a context that does nothing: nobody else waits for an error."""
        return _NOTHING


ALONE = Alone()


class WholeGraph(Protocol):
    """A graph of which this process has all arrays."""

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""

    @property
    def num_edges(self) -> int:
        """The number of edges."""

    @property
    def edata(self) -> Mapping[str, Any]:
        """The edge columns."""

    def csc(self) -> tuple[Ints, Array, Array | None]:
        """Return ``(indptr, sources, edge ids)`` of the in-edges."""

    def csr(self) -> tuple[Ints, Array, Array]:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges."""


class HeldWhole:
    """All of a graph, as ``Held`` says it of a part; nothing is copied."""

    def __init__(self, graph: WholeGraph) -> None:
        self._graph, self.csc, self.csr = graph, graph.csc, graph.csr

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self._graph.num_edges

    @property
    def edata(self) -> Mapping[str, Any]:
        """The edge columns."""
        return self._graph.edata

    @property
    def whole(self) -> WholeIds:
        """The ids of rows and edges, which are those of nodes and edges."""
        return WholeIds(self._graph.num_nodes)

    @property
    def masters(self) -> Tensor:
        """All nodes."""
        return torch.from_numpy(np.arange(self._graph.num_nodes))

    def rows(self) -> tuple[Ints, Ints, Array, Array | None]:
        """Return ``(destinations, indptr, sources, edge ids)`` of the in-edges of all nodes."""
        return np.arange(self._graph.num_nodes), *self.csc()

    def edges_here(self, eid: Ints) -> Ints:
        """Return the ids of edges, all of which are held here, as they are."""
        return eid

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        """Return all entries of an array by edge id."""
        return np.asarray(values)
