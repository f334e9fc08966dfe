"""Exchanges of rows between the owners of nodes and the processes that have edges at them, planned once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_array, check_num_rows, check_one_of
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import MaskLike
from nodeflow._edges.edges import NOTHING, Edges, edges_along
from nodeflow._peers.held import Peers
from nodeflow._peers.routes import Routes, narrowed
from nodeflow._rows.rows import Rows, fetch_rows, from_numpy, is_sparse, slice_rows
from nodeflow._rows.rows import as_array as as_words
from nodeflow.graph import Graph


class ExchangePlan(Frozen):
    """The exchange of rows between masters and mirrors of a graph that several processes hold.

    A *mirror* is a node at which this process has edges and that another process owns. Making the plan is collective,
    and tells every owner which of its nodes have mirrors where. From then on rows travel without ids. A process that
    holds all of the graph has no mirrors, and rows come back as they are.
    """

    __slots__ = ("_graph", "_mirrored", "_nodes", "_peers", "_routes", "num_masters")
    num_masters: int
    _graph: Graph
    _nodes: Lazy[Ints]
    _peers: Peers
    _mirrored: list[Ints]
    _routes: Routes

    def __init__(self, graph: Graph) -> None:
        peers, held = graph.peers, graph.held
        self._set(_graph=graph, _peers=peers)
        if peers.size == 1:
            self._set(
                num_masters=graph.num_nodes,
                _nodes=Lazy(lambda: np.arange(graph.num_nodes)),
                _mirrored=[NOTHING],
                _routes=Routes(NOTHING, 1),
            )
            return
        with peers.together("planning exchanges"):
            rows, _, src, _ = held.rows()
            ends = np.unique(np.concatenate([rows, src.astype(np.int64)]))
            owner = peers.owners(ends)
            mirrors, owner = ends[owner != peers.rank], owner[owner != peers.rank]
            routes = Routes(owner, peers.size)
            mirrored = peers.exchange("ids of mirrors", routes.parcels(mirrors))
        places = [held.whole.rows_of(ids[0]) if ids else np.zeros(0, np.int64) for ids in mirrored]
        masters = held.masters.numpy()
        nodes = np.concatenate([masters, mirrors])
        self._set(_nodes=Lazy.of(nodes), num_masters=len(masters), _mirrored=places, _routes=routes)

    @property
    def nodes(self) -> Ints:
        """Parent ids, int64: first the nodes that this process owns, then the mirrors, each ascending."""
        return self._nodes.get()

    def edges(self, direction: str) -> Edges:
        """Return the edges held here, in rows of ``nodes``; their neighbours are places among ``nodes``."""
        check_one_of(direction, "direction", ("in", "out"))
        if self._peers.size == 1:
            return edges_along(self._graph, direction)
        held = self._graph.held
        rows, begin, src, _ = held.rows()
        dst, source = self.places(np.repeat(rows, np.diff(begin))), self.places(src.astype(np.int64))
        row, near, order = dst, source, np.argsort(dst, kind="stable")
        if direction == "out":  # by edge id inside each source, as in the whole graph
            row, near, order = source, dst, np.lexsort((held.whole.edge_ids_of(np.arange(len(src))), source))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self.nodes)))])
        return Edges._trusted(indptr, narrowed(near[order], len(self.nodes)), order, whole=held.whole)

    def check_together(self, direction: str) -> None:
        """Raise ValueError unless all edges of a node lie in one process, in its row."""
        if self._peers.size > 1:
            edges_along(self._graph, direction)

    def places(self, nodes: Ints) -> Ints:
        """Return where nodes, parent ids, are among ``nodes``."""
        if self._peers.size == 1:
            return nodes
        masters, mirrors = self.nodes[: self.num_masters], self.nodes[self.num_masters :]
        place = np.searchsorted(masters, nodes)
        inside = place < len(masters)
        inside[inside] = masters[place[inside]] == nodes[inside]
        place[~inside] = self.num_masters + np.searchsorted(mirrors, nodes[~inside])
        return place

    def fetched(self, column: Tensor | Rows) -> Tensor | Rows:
        """Return the rows of ``nodes`` from rows of all nodes of the graph, which may be a column of it."""
        return column if self._peers.size == 1 else fetch_rows(column, torch.from_numpy(self.nodes))

    def gathered(self, rows: Tensor) -> Tensor:
        """Return the rows of ``nodes``, given the rows of the nodes that this process owns; collective."""
        return rows if self._peers.size == 1 else torch.cat([rows, self.broadcast(rows)])

    def reduced(self, rows: Tensor) -> Tensor:
        """Return the sums at the nodes that this process owns, from the parts of sums at ``nodes``; collective."""
        if self._peers.size == 1:
            return rows
        if is_sparse(rows):  # of edges that lie with their destinations, so that all sums are here
            return slice_rows(rows, 0, self.num_masters)
        return self.reduce(rows[self.num_masters :], rows[: self.num_masters])

    def own(self, rows: Tensor) -> Tensor:
        """Return the rows of the nodes that this process owns, given the rows of ``nodes``."""
        return rows if self._peers.size == 1 else slice_rows(rows, 0, self.num_masters)

    @property
    def num_mirrors(self) -> int:
        """Number of mirrors here."""
        return len(self.nodes) - self.num_masters

    @property
    def partners(self) -> list[int]:
        """Numbers of the processes that rows travel to or from."""
        busy = [len(away) + len(own) for away, own in zip(self._mirrored, self._of_each(), strict=True)]
        return [r for r, rows in enumerate(busy) if rows and r != self._peers.rank]

    def broadcast(self, rows: Tensor, *, changed: MaskLike | None = None, into: Tensor | None = None) -> Tensor:
        """Return the rows of the mirrors, ``[num_mirrors, ...]``, from those of their masters; collective.

        Gradients do not travel.

        Args:
            rows: the rows of the nodes that this process owns, ``[num_masters, ...]``.
            changed: bool ``[num_masters]``: only these rows travel, on all processes or on none. None: all.
            into: with ``changed``, the rows of the mirrors as they were, which is written to and returned.

        Raises ValueError for arguments that do not fit each other.
        """
        with self._peers.together("rows of mirrors"):
            check_num_rows(rows.shape, "rows", self.num_masters, "node that this process owns")
            mask = self._mask(changed, self.num_masters, "changed")
            if (mask is None) != (into is None):
                raise ValueError("changed and into belong together: rows that did not change must be known already")
            if into is not None:
                check_num_rows(into.shape, "into", self.num_mirrors, "mirror")
            arrived = self._swapped("rows of mirrors", rows, self._mirrored, self._of_each(), mask)
        out = rows.new_empty((self.num_mirrors, *rows.shape[1:])) if into is None else into
        for at, values in arrived:
            out[at] = values
        return out

    def reduce(self, rows: Tensor, into: Tensor, *, changed: MaskLike | None = None) -> Tensor:
        """Add the rows of the mirrors of all processes to their masters; return ``into``; collective.

        Rows are added in the order of the processes, so that sums are the same in every run.

        Args:
            rows: a row per mirror here, ``[num_mirrors, ...]``.
            into: a row per node that this process owns, ``[num_masters, ...]``, which is written to.
            changed: bool ``[num_mirrors]``: only these rows travel, the others count 0, on all processes or on none.

        Raises ValueError for arguments that do not fit each other.
        """
        with self._peers.together("sums of mirrors"):
            check_num_rows(rows.shape, "rows", self.num_mirrors, "mirror")
            check_num_rows(into.shape, "into", self.num_masters, "node that this process owns")
            mask = self._mask(changed, self.num_mirrors, "changed")
            arrived = self._swapped("sums of mirrors", rows, self._of_each(), self._mirrored, mask)
        for at, values in arrived:
            into[at] += values.to(into.device)  # a node has one mirror in a process: no index repeats
        return into

    def _of_each(self) -> list[Ints]:
        """The numbers of the mirrors here that each process owns."""
        return [self._routes.to(r) for r in range(self._peers.size)]

    def _swapped(
        self, what: str, rows: Tensor, sent: list[Ints], placed: list[Ints], mask: np.ndarray | None
    ) -> list[tuple[Tensor, Tensor]]:
        """Send the rows at the places ``sent`` to each process; return those that came, after their places."""
        kind = f"{str(rows.dtype).removeprefix('torch.')} {list(rows.shape[1:])}"
        kind = kind if mask is None else f"{kind}, those that changed"  # which all processes must send alike
        parcels = self._peers.exchange(what, [self._picked(rows, places, mask) for places in sent], kind)
        arrived = []
        for at, arrays in zip(placed, parcels, strict=True):
            if arrays:
                at = at if mask is None else at[np.unpackbits(arrays[1], count=len(at)).astype(np.bool_)]
                arrived.append((torch.from_numpy(at), from_numpy(arrays[0], rows.dtype).to(rows.device)))
        return arrived

    def _picked(self, rows: Tensor, places: Ints, mask: np.ndarray | None) -> list[Any]:
        """Return the changed rows of ``rows[places]``, and one bit per row that marks them."""
        if not len(places):
            return []
        if mask is None:
            return [as_words(rows[torch.from_numpy(places)].detach().cpu().contiguous())]
        kept = mask[places]
        return [as_words(rows[torch.from_numpy(places[kept])].detach().cpu().contiguous()), np.packbits(kept)]

    def _mask(self, value: MaskLike | None, size: int, name: str) -> np.ndarray | None:
        if value is None:
            return None
        mask = as_array(value, name, "bools")
        if mask.dtype != np.bool_ or mask.shape != (size,):
            raise ValueError(f"{name} must be bools [{size}], got {mask.dtype} {list(mask.shape)}")
        return mask

    def __repr__(self) -> str:
        return f"ExchangePlan({self.num_masters} masters, {self.num_mirrors} mirrors, partners {self.partners})"
