"""The part of a graph that one of several processes holds: edges and ids of a folder's part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.edges.stored import Between, OutEdges
from nodeflow._core.peers.held_part import HeldPart, WholeIds
from nodeflow._core.peers.routes import narrowed
from nodeflow._core.rows.base import with_stored
from nodeflow._core.rows.rows import Rows, fetch_rows
from nodeflow._core.schema import Relation
from nodeflow._processes.group import PeerGroup
from nodeflow.distributed._graph_parts import GraphPart, GraphParts
from nodeflow.distributed._rows import DistributedRows, HeldColumns
from nodeflow.distributed._split import sums
from nodeflow.graph import GraphFrame, OfType


class IdsHere(WholeIds):
    """The ids that the rows and edges here have in the whole graph: ``edge_ids``, and the row of
    every node by ``row_of``.
    """

    __slots__ = ("_edge_ids", "_row_of")
    _row_of: Callable[[Ints], Ints]
    _edge_ids: Array

    def __init__(self, num_nodes: int, row_of: Callable[[Ints], Ints], edge_ids: Array) -> None:
        super().__init__(num_nodes)
        self._set(_row_of=row_of, _edge_ids=edge_ids)

    def rows_of(self, nodes: Ints) -> Ints:
        return self._row_of(nodes)

    def edge_ids_of(self, edges: Ints) -> Ints:
        return self._edge_ids[edges].astype(np.int64, copy=False)


class PartOfFolder(HeldPart):
    """The edges that a process holds of a graph, by their ids in the part, in rows of the nodes
    that it owns.
    """

    def __init__(self, graph: Any, part: GraphPart, halo: float) -> None:
        self.halo = halo
        self.parts: GraphParts = graph.parts
        self.part = part
        self._peers: PeerGroup = graph.peers
        self._relations: Mapping[Relation, OfType] = graph.relations
        self.num_masters = len(part.masters)
        self.num_edges = len(part.src)
        self.edata = HeldColumns(graph.edata, part.edge_ids)
        self.whole = IdsHere(graph.num_nodes, self.parts.places, part.edge_ids)
        self._out = OutEdges()

    @property
    def structure(self) -> tuple[GraphParts, GraphPart, PeerGroup, float]:
        return self.parts, self.part, self._peers, self.halo

    @property
    def relations(self) -> Mapping[Relation, OfType]:
        relations = {}
        for name, relation in self._relations.items():
            columns = {
                column: with_stored(rows, _of_part) for column, rows in relation.data.items()
            }
            relations[name] = OfType(name, relation.ids, GraphFrame(len(relation), columns))
        return relations

    @property
    def masters(self) -> Tensor:
        return torch.from_numpy(np.array(self.part.masters))

    @cached_property
    def mirrors(self) -> Ints:
        # all ends of edges here that another process owns, found once: plans and sums need them
        # often
        ends = np.unique(np.concatenate([self.part.rows, self.part.src.astype(np.int64)]))
        return cast("Ints", ends[self.parts.owners(ends) != self.part.part])

    def holders(self, nodes: Ints) -> Ints:
        return self._peers.owners(nodes)

    def places(self, nodes: Ints) -> Ints:
        masters = self.part.masters
        # Masters and mirrors are both ascending, so a search finds each; no table of all nodes is
        # needed.
        place = np.searchsorted(masters, nodes)
        inside = place < len(masters)
        inside[inside] = masters[place[inside]] == nodes[inside]
        place[~inside] = len(masters) + np.searchsorted(self.mirrors, nodes[~inside])
        return place

    def of_all_nodes(self, column: Tensor | Rows) -> Tensor:
        return fetch_rows(
            column, torch.from_numpy(np.concatenate([self.part.masters, self.mirrors]))
        )

    def edges_among(self, direction: str) -> tuple[Ints, Array, Array | None]:
        part = self.part
        size = self.num_masters + len(self.mirrors)
        # the other ends as places, so that sums need no ids of the whole graph
        dst = self.places(np.repeat(part.rows, np.diff(part.indptr)))
        src = self.places(part.src.astype(np.int64))
        if direction == "in":
            row = dst
            end = src
            order = np.argsort(dst, kind="stable")
        else:
            row = src
            end = dst
            # by edge id inside each source, as in the whole graph
            order = np.lexsort((part.edge_ids, src))
        return sums(np.bincount(row, minlength=size)), narrowed(end[order], size), order

    def csc(self) -> tuple[Ints, Array, Array | None]:
        """See ``HeldPart``; raises ValueError for a graph whose in-edges do not lie with their
        destinations.
        """
        self.check("in")
        return self.part.indptr, self.part.src, None

    def csr(self) -> tuple[Ints, Array, Array | None]:
        """See ``HeldPart``; raises ValueError for a graph whose out-edges do not lie with their
        sources.
        """
        self.check("out")
        return self._out.get(self._transposed)

    def _transposed(self) -> tuple[Ints, Array, Array]:
        part = self.part
        dst = np.repeat(part.rows, np.diff(part.indptr))
        row = self.parts.places(part.src.astype(np.int64))
        # by edge id inside each source, as those of the whole graph are
        order = np.lexsort((part.edge_ids, row))
        indptr, _ = kernels.csr.sort_by_destination(row, len(part.masters))
        return indptr, dst[order].astype(part.src.dtype), order.astype(part.edge_ids.dtype)

    def edges_between(self, u: Ints, v: Ints) -> tuple[Ints, Ints]:
        """Return the number of edges held here from each ``u[i]`` to ``v[i]``, and their parent
        ids.
        """
        arrays: tuple[Ints, Array, Any]
        if self.parts.edges == "in":
            arrays = self.csc()
            near = v
            far = u
        else:
            arrays = self.csr()
            near = u
            far = v
        indptr, other, ids = arrays
        # a node that is asked about often has its edges looked up once
        rows, row = np.unique(self.parts.places(near), return_inverse=True)
        ends, position = kernels.csr.csr_rows(indptr, rows)
        edges = self.whole.edge_ids_of(position if ids is None else ids[position])
        between = Between.of(far, row, self.whole.num_nodes, ends, other[position], edges)
        return np.diff(between.indptr), between.edges

    def edges_here(self, eid: Ints) -> Ints:
        return self.parts.places(eid[self.parts.owners(eid, "edge") == self.part.part], "edge")

    def edges_of_whole(self, values: Tensor | Array) -> Array:
        return np.asarray(values)[self.part.edge_ids]

    def ends_of(self, eid: Ints) -> Tensor:
        """Return source and destination of edges held here, ``[k, 2]``, by their parent ids."""
        edges = self.edges_here(eid)
        dst = self.part.rows[np.searchsorted(self.part.indptr, edges, side="right") - 1]
        return torch.from_numpy(np.stack([self.part.src[edges].astype(np.int64), dst], 1))

    def check(self, direction: str) -> None:
        """Raise ValueError unless the edges of a node in a direction lie together."""
        lie = self.parts.edges
        if lie != direction:
            raise ValueError(
                f"direction={direction!r} needs a graph that was partitioned with "
                f"edges={direction!r}; this one has edges={lie!r}, so the {direction}-edges of a "
                "node do not lie together"
            )


def _of_part(rows: Tensor | Rows) -> Tensor | Rows:
    return rows.of_part() if isinstance(rows, DistributedRows) else rows
