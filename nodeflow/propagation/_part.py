"""Sums over a graph that lies on several processes, each of which sums over the edges that it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_num_rows
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import Array, EdgeFilter
from nodeflow._rows.rows import Rows, fetch_rows, take_rows
from nodeflow.flow import Layer
from nodeflow.flow._full_flow import EdgeColumns, FullFlow
from nodeflow.graph import Frame, Graph
from nodeflow.graph._columns import EdgeMask, edge_mask
from nodeflow.graph._fetch_apart import fetch_apart
from nodeflow.graph._held import Peers, together
from nodeflow.ops import Structure
from nodeflow.propagation._exchange_plan import ExchangePlan
from nodeflow.propagation._propagation import Propagation
from nodeflow.random import derive_key, hash_ids
from nodeflow.transform import DEGREES


class PartPropagation(Frozen):
    """The linear map of ``Propagation`` over a graph that lies on several processes; collective, as its calls are.

    Every process sums over the edges that it holds. Sums at nodes that others own travel to these, which add them. So
    all ways to place edges work, also a vertex-cut.

    Args:
        graph: what ``DistributedGraph.open`` gives.
        weight, edge_filter: as for ``Propagation``; sums go along the edges, which is the ``direction`` "in".

    ``plan`` is the ``ExchangePlan``, and ``nodes`` its nodes: those that this process owns, then mirrors.
    """

    __slots__ = ("_degrees", "_edge", "_leaving", "_local", "edge_filter", "graph", "plan")
    direction = "in"
    edge_filter: EdgeMask | None
    graph: Graph
    plan: ExchangePlan
    _local: Propagation
    _edge: Ints
    _degrees: dict[str, Tensor]
    _leaving: Tensor

    def __init__(self, graph: Graph, *, weight: str | None = None, edge_filter: EdgeFilter | None = None) -> None:
        with together(graph, "making a PartPropagation"):
            plan, held = ExchangePlan(graph), graph.held
            part = held.part  # type: ignore[attr-defined]
            place = _places(plan, part.rows)
            order = np.argsort(place, kind="stable")
            indptr, edge = kernels.csr.csr_rows(part.indptr, order)  # masters first, then mirrors
            counts = np.zeros(len(plan.nodes), np.int64)
            counts[place[order]] = np.diff(indptr)
            mask = edge_mask(graph, edge_filter)
            columns = {name: held.edata[name] for name in held.edata}
            local = Graph(
                np.concatenate([[0], np.cumsum(counts)]), _places(plan, part.src[edge].astype(np.int64)),
                edata={name: fetch_rows(column, torch.from_numpy(edge)) for name, column in columns.items()},
            )  # fmt: skip
            summing = Propagation(local, weight=weight, edge_filter=None if mask is None else mask.mask[edge])
            leaving = torch.from_numpy(np.bincount(local.indices, minlength=len(plan.nodes)))
            count = plan.num_masters
            every = plan.reduce(leaving[count:], leaving[:count].clone())
            degrees = {name: graph.ndata[name] for name in DEGREES if name in graph.ndata}
            self._set(
                graph=graph, plan=plan, edge_filter=mask, _edge=edge,
                _local=summing,
                _leaving=torch.cat([every, plan.broadcast(every)]),
                _degrees={name: fetch_rows(rows, torch.from_numpy(plan.nodes)) for name, rows in degrees.items()},
            )  # fmt: skip

    def __repr__(self) -> str:
        return f"PartPropagation({self.graph!r}, weight {self.weight})"

    def __deepcopy__(self, memo: object) -> PartPropagation:
        return self  # it never changes, and belongs to the very graph that it was made with

    @property
    def nodes(self) -> Ints:
        """Parent ids of the nodes here, int64: those that this process owns, then mirrors."""
        return self.plan.nodes

    def __call__(self, h: Tensor) -> Tensor:
        """Return the sums at the nodes that this process owns, ``[num_masters, ...]``, from their rows ``h``.

        The sums are float64 for float64 rows, else float32, equal to those of one process up to rounding: where edges
        lie with their destinations, bit for bit.
        """
        with together(self.graph, "sums over all edges"):
            check_num_rows(h.shape, "h", self.plan.num_masters, "node that this process owns")
        sums = self._local(torch.cat([h, self.plan.broadcast(h)]))
        count = self.plan.num_masters
        return self.plan.reduce(sums[count:], sums[:count])

    def sums_of_column(self, h: Tensor | Rows) -> Tensor:
        """Return the sums at the nodes that this process owns from the rows of all nodes, of which those here are read.

        ``h`` is dense, ``[num_nodes, ...]``; it may be a column that lies on several processes.
        """
        check_num_rows(h.shape, "h", self.graph.num_nodes, "node of the graph")
        sums, count = self._local(fetch_rows(h, torch.from_numpy(self.nodes))), self.plan.num_masters
        return self.plan.reduce(sums[count:], sums[:count])

    def sums_at(self, h: Tensor, nodes: Ints) -> Tensor:
        """Return the sums at any ``nodes``, ``[len(nodes), ...]``, computed by their owners; in four exchanges.

        ``h`` are the rows of the nodes that this process owns; ``nodes`` are parent ids, which may differ between
        processes. For edges that lie with their destinations. Rows of neighbours travel, each once to a process.
        """
        peers, count = self._peers, self.plan.num_masters
        at, found = np.zeros(0, np.int64), h.new_zeros((0, *h.shape[1:]))

        def computed(asked: Ints) -> None:
            nonlocal at, found
            at = self._held_places(asked)
            near = self._local.needed(at)
            # rows that are not needed are never touched, so they take no memory
            rows = torch.empty((len(self.nodes), *h.shape[1:]), dtype=h.dtype, device=h.device)
            own, others = torch.from_numpy(near[near < count]), near[near >= count]
            rows[own] = take_rows(h, own)
            rows[torch.from_numpy(others)] = fetch_apart(
                peers, "rows of neighbours", self.nodes[others], peers.owners,
                lambda ids: take_rows(h, torch.from_numpy(self._held_places(ids))),
            ).to(h.device)  # fmt: skip
            found = self._local.sums_at(rows, at)
            at, found = at[order := np.argsort(at)], found[torch.from_numpy(order)]

        def held(ids: Ints) -> Tensor:
            return found[torch.from_numpy(np.searchsorted(at, self._held_places(ids)))]

        return fetch_apart(peers, "sums", nodes, peers.owners, held, before=computed).to(h.device)

    def degrees_of(self, nodes: Tensor) -> Tensor:
        """Return the number of edges of any ``nodes``, int64 ``[len(nodes)]``; collective.

        For edges that lie with their destinations. Nodes may differ between processes.
        """
        peers, what = self._peers, "numbers of edges"
        with peers.together(what, exchanges=2):
            counts = self._local.degrees
            found = fetch_apart(
                peers, what, nodes.cpu().numpy(), peers.owners,
                lambda ids: take_rows(counts, torch.from_numpy(self._held_places(ids))),
            )  # fmt: skip
        return found.to(nodes.device)

    @property
    def weight(self) -> str | None:
        """The name of the edge column P; None: 1."""
        return self._local.weight

    @property
    def weights(self) -> Array | None:
        """P of the edges here, grouped by node; None: 1."""
        return self._local.weights

    @property
    def fingerprint(self) -> int:
        """A hash of the part: nodes, edges and weights, int64."""
        return derive_key(self.plan.num_masters, hash_ids(self.nodes), self._local.fingerprint) >> 1

    @property
    def _peers(self) -> Peers:
        peers = self.graph.peers
        assert peers is not None  # the plan has refused such a graph
        return peers

    def _held_places(self, ids: Ints) -> Ints:
        """Places of nodes among those that this process owns."""
        places: Ints = self.graph.held.parts.places(ids)  # type: ignore[attr-defined]
        return places

    def flow(self, start: int, stop: int, device: torch.device | str = "cpu") -> FullFlow:
        """Return the flow of all edges into ``nodes[start:stop]``, owned here, from ``nodes``; see ``Propagation``."""
        whole = self._local.flow(start, stop)
        ids = torch.from_numpy(self.nodes)
        src, dst = self._layer(ids, slice(None), device), self._layer(ids, slice(start, stop), device)
        cells: dict[str, Any] = {"weight": None, "needs_weight": False}
        if self._local.weights is not None:
            cells = {"weight": Lazy.of(whole.weight.to(device)), "needs_weight": True}
        eid = Lazy(lambda: self._parent_eid(whole.parent_eid).to(device))
        structure = Structure(whole.indptr, whole.indices, len(ids)).to(device)
        data = EdgeColumns(len(whole.indices), self._local.graph.edata, Lazy(lambda: whole.parent_eid))
        flow = FullFlow.trusted(structure, src, dst, (0, 1), **cells, parent_eid=eid, data=data, prefix=start == 0)
        flow.set_leaving(Lazy.of(self._leaving.to(device)))
        return flow

    def _parent_eid(self, local: Tensor) -> Tensor:
        ids = self.graph.held.part.edge_ids[self._edge[local.numpy()]]  # type: ignore[attr-defined]
        return torch.from_numpy(ids.astype(np.int64))

    def _layer(self, ids: Tensor, which: slice, device: torch.device | str) -> Layer:
        nodes = ids[which].to(device)
        columns = {name: column[which].to(device) for name, column in self._degrees.items()}
        return Layer.trusted(len(nodes), nodes, Frame(len(nodes), columns))


def _places(plan: ExchangePlan, ids: Ints) -> Ints:
    """The places of parent ids among the nodes of a plan."""
    masters, mirrors = plan.nodes[: plan.num_masters], plan.nodes[plan.num_masters :]
    place = np.searchsorted(masters, ids)
    inside = place < len(masters)
    inside[inside] = masters[place[inside]] == ids[inside]
    place[~inside] = plan.num_masters + np.searchsorted(mirrors, ids[~inside])
    return place
