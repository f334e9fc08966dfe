"""Exchanges of rows between the owners of nodes and the processes that have edges at them, planned
once.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, check_num_rows, check_one_of
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array
from nodeflow._core.edges.edges import NOTHING, Edges, edges_along
from nodeflow._core.peers.peers import Peers, collective_call
from nodeflow._core.peers.routes import Routes
from nodeflow._core.rows.rows import (
    Rows,
    concat_rows,
    from_arrays,
    is_sparse,
    put_rows,
    slice_rows,
    take_rows,
    to_arrays,
    whole_column,
    zero_rows,
)
from nodeflow.graph import Graph

Column = TypeVar("Column", bound="Tensor | Rows")


class ExchangePlan(Frozen):
    """The exchange of rows between masters and mirrors of a graph that several processes hold.

    A *mirror* is a node at which this process has edges and that another process owns. Making the
    plan is collective, and tells every owner which of its nodes have mirrors where. From then on
    rows travel without ids. A process that holds all of the graph has no mirrors, and rows come
    back as they are.

    ``num_masters`` and ``num_mirrors`` are the numbers of nodes that this process owns, and of
    mirrors here.
    """

    __slots__ = (
        "_graph",
        "_mirrored",
        "_nodes",
        "_of_each",
        "num_masters",
        "num_mirrors",
        "peers",
    )
    num_masters: int
    num_mirrors: int
    _graph: Graph
    _nodes: Lazy[Ints]
    peers: Peers
    # by process, the masters here that have mirrors there
    _mirrored: list[Ints]
    # by process, the mirrors here whose masters are there
    _of_each: list[Ints]

    @checked
    def __init__(self, graph: Graph) -> None:
        peers = graph.peers
        part = graph.held_part
        with peers.together("planning exchanges"):
            mirrors = part.mirrors
            routes = Routes(peers.owners(mirrors), peers.size)
            mirrored = peers.exchange("ids of mirrors", routes.parcels(mirrors))
        nodes = Lazy(lambda: np.append(part.masters.numpy(), mirrors))
        self._set(num_masters=part.num_masters, num_mirrors=len(mirrors))
        self._set(
            _graph=graph,
            _nodes=nodes,
            peers=peers,
            _mirrored=[part.whole.rows_of(ids[0]) if ids else NOTHING for ids in mirrored],
            _of_each=[routes.to(r) for r in range(peers.size)],
        )

    @property
    def nodes(self) -> Ints:
        """Parent ids, int64: first the nodes that this process owns, then the mirrors, each
        ascending.
        """
        return self._nodes.get()

    def edges(self, direction: str) -> Edges:
        """Return the edges held here, in rows of ``nodes``; their neighbours are places among
        ``nodes``.
        """
        check_one_of(direction, "direction", ("in", "out"))
        part = self._graph.held_part
        return Edges._trusted(*part.edges_among(direction), whole=part.whole)

    def check_together(self, direction: str) -> None:
        """Raise ValueError unless all edges of a node lie in one process, in its row."""
        edges_along(self._graph, direction)

    def gathered(self, rows: Column) -> Column | Tensor:
        """Return the rows of ``nodes``, given the rows of the nodes that this process owns;
        collective.
        """
        mirrors = self.broadcast(rows)
        if self.num_mirrors:
            return concat_rows([whole_column(rows), mirrors])
        return rows

    def reduced(self, rows: Tensor) -> Tensor:
        """Return the sums at the nodes that this process owns, from the parts of sums at ``nodes``;
        collective.
        """
        # of edges that lie with their destinations, so that all sums are here
        if is_sparse(rows):
            return self.own(rows)
        return self.reduce(rows[self.num_masters :], rows[: self.num_masters])

    def own(self, rows: Tensor) -> Tensor:
        """Return the rows of the nodes that this process owns, given the rows of ``nodes``."""
        if self.num_mirrors:
            return slice_rows(rows, 0, self.num_masters)
        return rows

    @property
    def partners(self) -> list[int]:
        """Numbers of the processes that rows travel to or from."""
        busy = [
            len(away) + len(placed)
            for away, placed in zip(self._mirrored, self._of_each, strict=True)
        ]
        return [r for r, rows in enumerate(busy) if rows and r != self.peers.rank]

    @collective_call("rows of mirrors")
    def broadcast(self, rows: Tensor | Rows) -> Tensor:
        """Return the rows of the mirrors, ``[num_mirrors, ...]``, from those of their masters;
        collective.

        Gradients do not travel.

        Args:
            rows: the rows of the nodes that this process owns, ``[num_masters, ...]``, dense or
                sparse CSR.

        Raises ValueError for another number of rows.
        """
        check_num_rows(rows.shape, "rows", self.num_masters, "node that this process owns")
        arrived = self._swapped("rows of mirrors", rows, self._mirrored, self._of_each)
        empty = zero_rows(rows, 0)
        if arrived:
            return put_rows(arrived, self.num_mirrors).to(empty.device)
        return empty

    @collective_call("sums of mirrors")
    def reduce(self, rows: Tensor, into: Tensor) -> Tensor:
        """Add the rows of the mirrors of all processes to their masters; return ``into``;
        collective.

        Rows are added in the order of the processes, so that sums are the same in every run.

        Args:
            rows: a row per mirror here, ``[num_mirrors, ...]``.
            into: a row per node that this process owns, ``[num_masters, ...]``, which is written
                to.

        Raises ValueError for arguments that do not fit each other, TypeError for sparse rows.
        """
        if is_sparse(rows):
            raise TypeError("rows must be dense to be added up; got sparse ones")
        check_num_rows(rows.shape, "rows", self.num_mirrors, "mirror")
        check_num_rows(into.shape, "into", self.num_masters, "node that this process owns")
        arrived = self._swapped("sums of mirrors", rows, self._of_each, self._mirrored)
        for values, places in arrived:
            # a node has one mirror in a process: no index repeats
            into[torch.from_numpy(places)] += values.to(into.device)
        return into

    def _swapped(
        self, what: str, rows: Tensor | Rows, sent: list[Ints], placed: list[Ints]
    ) -> list[tuple[Tensor, Ints]]:
        """Send the rows at the places ``sent`` to each process; return those that came, and their
        places.
        """
        # which all processes must send alike
        kind = f"{str(rows.dtype).removeprefix('torch.')} {list(rows.shape[1:])}"
        parcels: list[list[Array]] = []
        for places in sent:
            arrays: list[Array] = []
            if len(places):
                arrays = to_arrays(take_rows(rows, torch.from_numpy(places)))
            parcels.append(arrays)
        came = zip(placed, self.peers.exchange(what, parcels, kind), strict=True)
        return [(from_arrays(parts, rows), places) for places, parts in came if parts]

    def __repr__(self) -> str:
        return (
            f"ExchangePlan({self.num_masters} masters, {self.num_mirrors} mirrors, partners "
            f"{self.partners})"
        )
