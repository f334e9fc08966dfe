"""Sums over a graph that lies on several processes, each of which sums over the edges that it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_num_rows
from nodeflow._base.frozen import Frozen, Lazy
from nodeflow._base.types import EdgeFilter
from nodeflow._rows.rows import fetch_rows
from nodeflow.flow import Layer
from nodeflow.flow._full_flow import EdgeColumns, FullFlow
from nodeflow.graph import Frame, Graph
from nodeflow.ops import Structure
from nodeflow.propagation._exchange_plan import ExchangePlan
from nodeflow.propagation._propagation import Propagation
from nodeflow.transform import DEGREES


class PartPropagation(Frozen):
    """The linear map of ``Propagation`` over a graph that lies on several processes; collective, as its calls are.

    Every process sums over the edges that it holds. Sums at nodes that others own travel to these, which add them. So
    all ways to place edges work, also a vertex-cut.

    Args:
        graph: what ``DistributedGraph.open`` gives.
        weight, edge_filter: as for ``Propagation``; sums go along the edges.

    ``plan`` is the ``ExchangePlan``, and ``nodes`` its nodes: those that this process owns, then mirrors.
    """

    __slots__ = ("_degrees", "_edge", "_leaving", "_local", "graph", "plan")
    graph: Graph
    plan: ExchangePlan
    _local: Propagation
    _edge: Ints
    _degrees: dict[str, Tensor]
    _leaving: Tensor

    def __init__(self, graph: Graph, *, weight: str | None = None, edge_filter: EdgeFilter | None = None) -> None:
        plan, held = ExchangePlan(graph), graph.held
        part = held.part  # type: ignore[attr-defined]
        place = _places(plan, part.rows)
        order = np.argsort(place, kind="stable")
        indptr, edge = kernels.csr.csr_rows(part.indptr, order)  # masters first, then mirrors
        counts = np.zeros(len(plan.nodes), np.int64)
        counts[place[order]] = np.diff(indptr)
        columns = {name: held.edata[name] for name in held.edata}
        local = Graph(
            np.concatenate([[0], np.cumsum(counts)]), _places(plan, part.src[edge].astype(np.int64)),
            edata={name: fetch_rows(column, torch.from_numpy(edge)) for name, column in columns.items()},
        )  # fmt: skip
        leaving = torch.from_numpy(np.bincount(local.indices, minlength=len(plan.nodes)))
        count = plan.num_masters
        every = plan.reduce(leaving[count:], leaving[:count].clone())
        degrees = {name: graph.ndata[name] for name in DEGREES if name in graph.ndata}
        self._set(
            graph=graph, plan=plan, _edge=edge,
            _local=Propagation(local, weight=weight, edge_filter=edge_filter),
            _leaving=torch.cat([every, plan.broadcast(every)]),
            _degrees={name: fetch_rows(rows, torch.from_numpy(plan.nodes)) for name, rows in degrees.items()},
        )  # fmt: skip

    @property
    def nodes(self) -> Ints:
        """Parent ids of the nodes here, int64: those that this process owns, then mirrors."""
        return self.plan.nodes

    def __call__(self, h: Tensor) -> Tensor:
        """Return the sums at the nodes that this process owns, ``[num_masters, ...]``, from their rows ``h``.

        The sums are float64 for float64 rows, else float32, equal to those of one process up to rounding: where edges
        lie with their destinations, bit for bit.
        """
        check_num_rows(h.shape, "h", self.plan.num_masters, "node that this process owns")
        sums = self._local(torch.cat([h, self.plan.broadcast(h)]))
        count = self.plan.num_masters
        return self.plan.reduce(sums[count:], sums[:count])

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
