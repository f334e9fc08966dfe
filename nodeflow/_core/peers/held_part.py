"""The part of a graph that a process holds.

``HeldPart`` is that of one process, which holds all of a graph; ``nodeflow.distributed`` derives
that of one of several from it. Code that reads a graph has one path for both. Its words, for a
graph that is cut in two:

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

The position of an edge in these arrays is its id in the part: edge 2 of the whole graph is edge 1
of part 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Array

Structure: TypeAlias = tuple[Ints, Array, Array | None]
"""Where rows of edges begin, the other ends of the edges, and their ids; None: their positions."""


class WholeIds(Frozen):
    """The ids that the rows and edges held here have in the whole graph, which has ``num_nodes``
    nodes.

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
        """Return the parent ids of edges held here, int64, by their ids here, int64 too."""
        return edges


class HeldPart:
    """The part of a graph that a process holds: here all of ``graph``; nothing is copied.

    ``num_masters`` is the number of nodes that this process owns, ``num_edges`` that of edges held
    here. ``edata`` has their columns, tensors ``[num_edges, ...]`` or ``Rows``, by their ids in the
    part. ``whole`` says what ids rows and edges have in the whole graph.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.num_masters = int(graph.num_nodes)
        self.num_edges = int(graph.num_edges)
        self.edata: Mapping[str, Any] = graph.edata
        self.whole = WholeIds(graph.num_nodes)

    @property
    def structure(self) -> tuple[Any, ...]:
        """What ``type(graph)._trusted`` takes for a graph of the same edges with other frames."""
        return tuple(self._graph.csc())

    @property
    def relations(self) -> Mapping[Any, Any]:
        """The edges of each relation, see ``Graph.relations``; rows of edges that are held here are
        at hand.
        """
        return self._graph.relations  # type: ignore[no-any-return]

    @property
    def masters(self) -> Tensor:
        """Ids of the nodes that this process owns, ascending, int64."""
        return torch.from_numpy(np.arange(self.whole.num_nodes))

    @property
    def mirrors(self) -> Ints:
        """Ids of the nodes that have edges here and that other processes own, ascending, int64."""
        return np.zeros(0, np.int64)

    def holders(self, nodes: Ints) -> Ints:
        """Return the process to ask about the edges of each of some nodes: this one where it has
        them.
        """
        return np.zeros(len(nodes), np.int64)

    def places(self, nodes: Ints) -> Ints:
        """Return where nodes with edges here, by parent id, are among masters and mirrors, one
        after the other.
        """
        return nodes

    def of_all_nodes(self, column: Any) -> Any:
        """Return the rows of masters, then mirrors, from rows of all nodes of the graph;
        collective.
        """
        return column

    def csc(self) -> Structure:
        """Return ``(indptr, sources, edge ids)`` of the in-edges of the nodes owned here; sources
        by parent id.
        """
        return self._graph.csc()  # type: ignore[no-any-return]

    def csr(self) -> Structure:
        """Return ``(indptr, destinations, edge ids)`` of the out-edges of the nodes owned here."""
        return self._graph.csr()  # type: ignore[no-any-return]

    def edges_among(self, direction: str) -> Structure:
        """Return ``csc`` or ("out") ``csr`` of all edges held here, with a row per master and
        mirror, by ``places``.
        """
        return self.csc() if direction == "in" else self.csr()

    def edges_here(self, eid: Ints) -> Ints:
        """Return the ids in the part of those of the edges ``eid``, parent ids, that are held
        here.
        """
        return eid

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        """Return the entries that the edges held here have in an array by parent edge id."""
        return np.asarray(values)


GraphOfPeers: TypeAlias = Any
"""A ``nodeflow.graph.Graph``, whose room is above this one: all of a graph, or as much of it as
this process holds.
"""
