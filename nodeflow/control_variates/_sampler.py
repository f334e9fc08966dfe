"""Neighbour sampling for control variates: batches that carry their history."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nodeflow._base.checks import check_one_of, describe, first_true
from nodeflow._base.types import Fanouts, NumNeighbors, PerFlow
from nodeflow.control_variates._history import MISSING, History
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling import NeighborSampler, own_positions

_PROPAGATION = ("weight", "direction", "edge_filter")


class ControlVariateSampler(NeighborSampler):
    """Neighbour sampling whose batches carry the history of their nodes (Chen, Zhu, Song 2018,
    section 4).

    Draws, weights and options are those of ``NeighborSampler``. The propagation P (column,
    direction and filter) is that of the history. Every batch has these columns:

    - for every history layer i, ``h_i`` in layer i: rows of the history;
    - ``agg_h_i`` in layer i + 1: the sums of the history over *all* edges of its nodes;
    - in every layer but the first ``scale``, float32: n(v) / D, the number of edges of a node over
      those drawn.

    The rows are read when the batch is taken: a ``NodeFlowLoader`` draws ahead, and adds these
    columns in the caller's thread.

    Args:
        graph: the parent graph, that of the history.
        fanouts: one number per flow in flow order; one or two neighbours are enough. The first may
            be 0 where the history has ``inputs``, whose sums are exact: nothing is drawn there, and
            layer 0 has the nodes of layer 1.
        num_neighbors: instead of ``fanouts``, the numbers with the seeds' first.
        history: see ``History``.
        missing: how to treat rows that were never written, see ``History.pull``.
        replace, prob, include_dst, reuse, seed: see ``NeighborSampler``. Every edge that counts in
            P must have a ``prob`` above 0: an edge that is never drawn would be in the sums, but
            not in the estimate.

    Cost beside that of ``NeighborSampler``: gathering the rows, and with ``aggregated="on demand"``
    reading the history of *all* neighbours of the nodes in layers 1 and above.

    Raises TypeError for anything but a History. Raises ValueError for a history of another graph,
    another ``missing``, a ``prob`` of 0, and an edge column that has changed since the history was
    made; also as ``NeighborSampler``.

    >>> import torch
    >>> graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 2], edata={"p": torch.full((4,), 0.5)})
    >>> history = History(graph, {1: 3}, weight="p")
    >>> batch = ControlVariateSampler(graph, [1, 1], history)([2])
    >>> batch.ldata[1]["h_1"].shape, batch.ldata[2]["agg_h_1"].shape, batch.ldata[2]["scale"]
    (torch.Size([2, 3]), torch.Size([1, 3]), tensor([2.]))
    """

    has_torch_form = True

    def __init__(
        self,
        graph: Graph,
        fanouts: PerFlow | None = None,
        history: History | None = None,
        *,
        missing: str = "zero",
        num_neighbors: PerFlow | None = None,
        replace: bool = False,
        prob: str | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        if not isinstance(history, History):
            raise TypeError(f"history must be a History, got {describe(history)}")
        if history.graph is not graph:
            raise ValueError("history must belong to the very graph that is sampled")
        check_one_of(missing, "missing", MISSING)
        self.history = history
        self.missing = missing
        of = history.propagation
        propagation: dict[str, Any] = {name: getattr(of, name) for name in _PROPAGATION}
        super().__init__(
            graph,
            fanouts,
            num_neighbors=num_neighbors,
            replace=replace,
            prob=prob,
            include_dst=include_dst,
            reuse=reuse,
            seed=seed,
            **propagation,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; of the history its widths and
        propagation.
        """
        propagation = {name: getattr(self.history.propagation, name) for name in _PROPAGATION}
        history = {name: value for name, value in propagation.items() if value is not None}
        return {**super().settings, "history": {"widths": self.history.widths, **history}}

    def _checked(
        self, fanouts: Fanouts | None, num_neighbors: NumNeighbors | None, edge_type: str | None
    ) -> tuple[Any, ...]:
        if not isinstance(fanouts, (list, tuple)) or not fanouts or fanouts[0] != 0:
            return super()._checked(fanouts, num_neighbors, edge_type)
        if not self.history.has_inputs:
            raise ValueError(
                "fanouts[0] may be 0 only where the history has the inputs, whose sums are exact"
            )
        return (0, *super()._checked([-1, *fanouts[1:]], num_neighbors, edge_type)[1:])

    def bind(self) -> None:
        """Call ``read_graph``; where the graph lies on several processes, an error on one is one on
        all.
        """
        with self.graph.peers.together("settings of a ControlVariateSampler"):
            super().bind()

    def read_graph(self) -> None:
        """Check also that the history has the sums of the same edges."""
        super().read_graph()
        of = self.history.propagation
        weights = self.reader.weights
        edges = self.reader.edges
        now = (
            None
            if weights is None
            else edges.by_position(weights)[own_positions(self.graph, edges)]
        )
        if now is not None and of.weights is not None and not np.array_equal(now, of.weights):
            raise ValueError(
                f"the edge column {of.weight!r} has changed since the history was made; make both "
                "anew"
            )
        if self._proportional is not None:
            never = self._proportional.column == 0
            counts = (
                np.ones(len(never), np.bool_)
                if self.reader.weights is None
                else self.reader.weights != 0
            )
            counts = counts if self.edge_filter is None else counts & self.edge_filter.mask
            if (at := first_true(never & counts)) is not None:
                edge = self.graph.near.held.whole.edge_ids_of(np.array([at]))[0]
                raise ValueError(
                    f"prob: edge {edge} has {self.prob!r} = 0, so it is never drawn, but it counts "
                    "in the history's sums; give both the history and prob the same edges, as by "
                    "History(edge_filter=...)"
                )

    def complete(self, batch: NodeFlow) -> NodeFlow:
        self.history.pull(batch, missing=self.missing)
        layers = [flow.dst_layer for flow in batch.flows]
        degrees = self.history.propagation.degrees_of(
            torch.cat([layer.parent_nid for layer in layers])
        )
        for flow, some in zip(
            batch.flows, degrees.split([len(layer) for layer in layers]), strict=True
        ):
            drawn = flow.in_degrees
            flow.dst_layer.data["scale"] = torch.where(
                drawn > 0, some / drawn.clamp(min=1), 1.0
            ).float()
        return batch
