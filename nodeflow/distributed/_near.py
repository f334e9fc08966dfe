"""The halo of a part: edges of nodes of other processes, kept here so that draws need not ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.frozen import Lazy
from nodeflow._base.types import Array
from nodeflow._edges.edges import edges_along
from nodeflow._peers.held import Held, WholeIds
from nodeflow._peers.routes import narrowed
from nodeflow._rows.base import with_stored
from nodeflow._rows.rows import Rows, fetch_rows
from nodeflow._schema.schema import Relation
from nodeflow.graph import Graph, OfType
from nodeflow.sampling import Reader, edges_of


class NearIds(WholeIds):
    """The ids of the rows and edges of ``HeldNear``; ``row`` is the row of every node of the graph, -1 without one."""

    __slots__ = ("edge_ids", "row")
    row: Array
    edge_ids: Array

    def __init__(self, row: Array, edge_ids: Array) -> None:
        super().__init__(len(row))
        self._set(row=row, edge_ids=edge_ids)

    def rows_of(self, nodes: Ints) -> Ints:
        return self.row[nodes].astype(np.int64, copy=False)

    def edge_ids_of(self, edges: Ints) -> Ints:
        ids: Ints = self.edge_ids[edges].astype(np.int64, copy=False)
        return ids


class HeldNear(Held):
    """The edges that a process draws from without asking: those of its own nodes and of its halo, in memory.

    Rows are those of ``masters``, here all nodes whose edges are at hand. Columns of edges are fetched when they
    are first read, which is collective.
    """

    whole: NearIds

    def __init__(
        self, graph: Graph, check: Callable[[str], None], nodes: Ints, indptr: Ints, indices: Ints, edge_ids: Ints
    ) -> None:
        row = np.full(graph.num_nodes, -1, np.int32 if graph.num_nodes < 2**31 else np.int64)
        row[nodes] = np.arange(len(nodes))
        self._peers, self._nodes, self._check = graph.peers, nodes, check
        self._edges = indptr, narrowed(indices, graph.num_nodes), None
        self.num_masters, self.num_edges = len(nodes), len(indices)
        self.whole = NearIds(row, narrowed(edge_ids, graph.num_edges))
        self._order = Lazy(lambda: np.argsort(self.whole.edge_ids, kind="stable"))
        self.edata, self._relations = _Fetched(graph.edata, self.whole), graph.relations

    @property
    def relations(self) -> Mapping[Relation, OfType]:
        return self._relations

    @property
    def masters(self) -> Tensor:
        return torch.from_numpy(self._nodes)

    def holders(self, nodes: Ints) -> Ints:
        holders: Ints = np.where(self.whole.row[nodes] >= 0, self._peers.rank, self._peers.owners(nodes))
        return holders

    def csc(self) -> tuple[Ints, Array, Array | None]:
        self._check("in")
        return self._edges

    def csr(self) -> tuple[Ints, Array, Array | None]:
        self._check("out")
        return self._edges

    def edges_here(self, eid: Ints) -> Ints:
        ids, order = self.whole.edge_ids, self._order.get()
        first = np.searchsorted(ids, eid.astype(ids.dtype), sorter=order)
        at = order[first[first < len(ids)]]
        here: Ints = at[ids[at] == eid[first < len(ids)]]
        return here

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        entries: Array = np.asarray(values)[self.whole.edge_ids]
        return entries


class _Fetched(Mapping[str, Any]):
    """The rows that some edges have in the edge columns of a graph; the first look-up of a column is collective."""

    def __init__(self, columns: Mapping[str, Tensor | Rows], whole: NearIds) -> None:
        self._columns, self._whole = columns, whole
        self._fetched = dict[str, tuple[Tensor | Rows, Tensor | Rows]]()  # a column, and its rows here

    def __getitem__(self, name: str) -> Tensor | Rows:
        def here(rows: Tensor | Rows) -> Tensor:
            return fetch_rows(rows, torch.from_numpy(self._whole.edge_ids.astype(np.int64)))

        column = self._columns[name]
        if isinstance(column, Tensor):
            return here(column)
        if name not in self._fetched or self._fetched[name][0] is not column:
            self._fetched[name] = column, with_stored(column, here)
        return self._fetched[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def near(graph: Graph, check: Callable[[str], None], direction: str, most_edges: int) -> HeldNear:
    """Return what draws find here, with at most ``most_edges`` edges of nodes of other processes; collective.

    ``direction`` is that in which the edges of a node lie together, and ``check`` raises for any other. Of the nodes to
    which the edges of own nodes lead, those come first that they lead to most often for their number of edges.
    """
    masters = graph.masters.numpy()
    with graph.peers.together("the halo of a graph"):
        reader = Reader(edges_along(graph, direction), None, np.float32, None)
        uses = np.bincount(reader.edges.indices, minlength=graph.num_nodes)
        ends = np.flatnonzero(uses)
        ends = ends[graph.peers.owners(ends) != graph.peers.rank]
        degrees = (graph.in_degrees(ends) if direction == "in" else graph.out_degrees(ends)).numpy()
        order = np.lexsort((ends, -uses[ends] / np.maximum(degrees, 1)))
        halo = ends[order[: np.searchsorted(np.cumsum(degrees[order]), most_edges, side="right")]]
        nodes = np.sort(np.concatenate([masters, halo]))
        return HeldNear(graph, check, nodes, *edges_of(graph, reader, nodes))
