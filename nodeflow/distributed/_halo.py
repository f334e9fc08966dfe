"""The halo of a part: edges of nodes of other processes, kept here so that draws need not ask for
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NoReturn, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.frozen import Lazy
from nodeflow._core.base.types import Array
from nodeflow._core.edges.edges import Edges, edges_along
from nodeflow._core.edges.view import Reader
from nodeflow._core.peers.held_part import HeldPart
from nodeflow._core.schema import Relation
from nodeflow._files.disk.arrays import numpy_type
from nodeflow.distributed._held_part import IdsHere, PartOfFolder
from nodeflow.distributed._rows import HeldColumns
from nodeflow.distributed._split import id_type, sums
from nodeflow.graph import Graph, OfType
from nodeflow.sampling import edges_of

Arrays = list[Array]
_PIECE = 2**22  # edges that are put in place at a time


def _refuse(*_: object) -> NoReturn:
    raise TypeError(
        "a halo has edges of other processes, which sums over all edges must not count twice"
    )


class PartWithHalo(HeldPart):
    """The edges that a process draws from without asking: those of its own nodes and of its halo,
    in memory.

    Rows are those of ``masters``, here all nodes whose edges are at hand. Columns of all edges are
    fetched when they are first read, and then kept, those of relations whenever they are read; both
    are collective. Sums over all edges read ``own_part``.
    """

    def __init__(
        self,
        graph: Graph,
        own_part: PartOfFolder,
        nodes: Ints,
        indptr: Ints,
        indices: Array,
        edge_ids: Array,
    ) -> None:
        row = np.full(graph.num_nodes, -1, numpy_type(id_type(graph.num_nodes)))
        row[nodes] = np.arange(len(nodes))
        self.own_part = own_part
        self._peers = graph.peers
        self._nodes = nodes
        self._edges = (indptr, indices, None)
        self.num_masters = len(nodes)
        self.num_edges = len(indices)
        self._row = row
        self._edge_ids = edge_ids
        self.whole = IdsHere(len(row), lambda nodes: row[nodes].astype(np.int64), edge_ids)
        self._order = Lazy(lambda: np.argsort(edge_ids, kind="stable"))
        self.edata = HeldColumns(graph.edata, edge_ids, fetches=True)
        self._relations = graph.relations

    @property
    def structure(self) -> tuple[Any, ...]:
        return self.own_part.structure

    @property
    def relations(self) -> Mapping[Relation, OfType]:
        return self._relations

    @property
    def masters(self) -> Tensor:
        return torch.from_numpy(self._nodes)

    def holders(self, nodes: Ints) -> Ints:
        return np.where(self._row[nodes] >= 0, self._peers.rank, self._peers.owners(nodes))

    def csc(self) -> tuple[Ints, Array, Array | None]:
        self.own_part.check("in")
        return self._edges

    def csr(self) -> tuple[Ints, Array, Array | None]:
        self.own_part.check("out")
        return self._edges

    def edges_here(self, eid: Ints) -> Ints:
        ids = self._edge_ids
        order = self._order.get()
        # edges lie by row and not by id: ids are searched by an order that is made once
        first = np.searchsorted(ids, eid.astype(ids.dtype), sorter=order)
        inside = first < len(ids)
        positions = order[first[inside]]
        return cast("Ints", positions[ids[positions] == eid[inside]])

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        return np.asarray(values)[self._edge_ids]

    mirrors = property(_refuse)
    places: Any = _refuse
    of_all_nodes: Any = _refuse
    edges_among: Any = _refuse


def part_with_halo(graph: Graph, own_part: PartOfFolder, most_edges: int) -> PartWithHalo:
    """Return what draws find here, with at most ``most_edges`` edges of nodes of other processes;
    collective.

    Of the nodes to which the edges of own nodes lead, those come first that they lead to most often
    for their number of edges.
    """
    direction = own_part.parts.edges
    masters = own_part.masters.numpy()
    with graph.peers.together("the halo of a graph"):
        reader = Reader(edges_along(graph, direction), None, np.float32, None)
        # Which nodes draws will come to next is known from own edges: a node that many of them lead
        # to is asked for by many batches.
        uses = np.bincount(reader.edges.indices, minlength=graph.num_nodes)
        ends = np.flatnonzero(uses)
        ends = ends[graph.peers.owners(ends) != graph.peers.rank]
        degrees_of = graph.in_degrees if direction == "in" else graph.out_degrees
        degrees = degrees_of(ends).numpy()
        # uses per edge that is kept; of equal ones the lower id, so that all runs keep the same
        order = np.lexsort((ends, -uses[ends] / np.maximum(degrees, 1)))
        count = np.searchsorted(np.cumsum(degrees[order]), most_edges, side="right")
        halo = np.sort(ends[order[:count]])
        brought = edges_of(graph, reader, halo)
    return PartWithHalo(graph, own_part, *_merged(graph, reader.edges, masters, halo, brought))


def _merged(
    graph: Graph, own_edges: Edges, masters: Ints, halo: Ints, brought: Arrays
) -> tuple[Ints, Ints, Array, Array]:
    """Return the nodes at hand, ascending, and their edges: ``indptr``, other ends and ids."""
    nodes = np.sort(np.concatenate([masters, halo]))
    # Own nodes and those of the halo alternate by id. Their edges are put where rows of ascending
    # ids have them, so that readers search them like any others.
    begin, ends, eid = brought
    mine = graph.peers.owners(nodes) == graph.peers.rank
    degrees = np.empty(len(nodes), np.int64)
    degrees[mine] = np.diff(own_edges.indptr)
    degrees[~mine] = np.diff(begin)
    indptr = sums(degrees)
    indices = np.empty(indptr[-1], numpy_type(id_type(graph.num_nodes)))
    edge_ids = np.empty(indptr[-1], numpy_type(id_type(graph.num_edges)))

    def put(rows: Ints, begin: Ints, ends: Array, ids_of: Callable[[Ints], Array]) -> None:
        # piece by piece, so that lists of positions stay small beside the edges
        cuts = np.searchsorted(begin, np.arange(0, begin[-1], _PIECE))
        for first, last in pairwise(np.unique([*cuts, len(rows)])):
            _, to = kernels.csr.csr_rows(indptr, rows[first:last])
            indices[to] = ends[begin[first] : begin[last]]
            edge_ids[to] = ids_of(np.arange(begin[first], begin[last]))

    put(
        np.flatnonzero(mine),
        own_edges.indptr,
        own_edges.indices,
        lambda positions: own_edges.parent_eid(positions).numpy(),
    )
    put(np.flatnonzero(~mine), begin, ends, lambda positions: eid[positions])
    return nodes, indptr, indices, edge_ids
