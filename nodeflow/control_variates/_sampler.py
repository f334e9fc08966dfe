"""Neighbour sampling for control variates: batches that carry their history."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nodeflow._core.base.checks import check_one_of, describe, first_true
from nodeflow._core.base.types import Fanouts, NumNeighbors, PerFlow
from nodeflow._core.peers.peers import collective_call
from nodeflow.control_variates._history import MISSING, History
from nodeflow.flow import NodeFlow
from nodeflow.sampling import NeighborSampler


class ControlVariateSampler(NeighborSampler):
    """Neighbour sampling whose batches carry the history of their nodes (Chen, Zhu, Song 2018,
    section 4).

    Draws, weights and options are those of ``NeighborSampler``, of the view of edges that the
    history has. Every batch has these columns:

    - for every history layer i, ``h_i`` in layer i: rows of the history;
    - ``agg_h_i`` in layer i + 1: the sums of the history over *all* edges of its nodes;
    - in every layer but the first ``scale``, float32: n(v) / D, the number of edges of a node over
      those drawn.

    The rows are read when the batch is taken: a ``NodeFlowLoader`` draws ahead, and adds these
    columns in the caller's thread.

    Args:
        history: see ``History``.
        fanouts: one number per flow in flow order; one or two neighbours are enough. The first may
            be 0 where the history has ``inputs``, whose sums are exact: nothing is drawn there, and
            layer 0 has the nodes of layer 1.
        num_neighbors: instead of ``fanouts``, the numbers with the seeds' first.
        missing: how to treat rows that were never written, see ``History.pull``.
        replace, prob, include_dst, reuse, seed: see ``NeighborSampler``. Every edge that counts in
            P must have a ``prob`` above 0: an edge that is never drawn would be in the sums, but
            not in the estimate.

    Cost beside that of ``NeighborSampler``: gathering the rows, and with ``aggregated="on demand"``
    reading the history of *all* neighbours of the nodes in layers 1 and above.

    Raises TypeError for anything but a History, ValueError for another ``missing`` and a ``prob``
    of 0; also as ``NeighborSampler``.

    >>> import torch
    >>> from nodeflow import Graph
    >>> graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 2], edata={"p": torch.full((4,), 0.5)})
    >>> history = History(graph.view(weight="p"), {1: 3})
    >>> batch = ControlVariateSampler(history, [1, 1])([2])
    >>> batch.ldata[1]["h_1"].shape, batch.ldata[2]["agg_h_1"].shape, batch.ldata[2]["scale"]
    (torch.Size([2, 3]), torch.Size([1, 3]), tensor([2.]))
    """

    has_torch_form = True

    def __init__(
        self,
        history: History,
        fanouts: PerFlow | None = None,
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
            raise TypeError(
                f"history must be a History, got {describe(history)}; its graph is sampled, as in "
                "ControlVariateSampler(history, [1, 1])"
            )
        check_one_of(missing, "missing", MISSING)
        self.history = history
        self.missing = missing
        super().__init__(
            history.view,
            fanouts,
            num_neighbors=num_neighbors,
            replace=replace,
            prob=prob,
            include_dst=include_dst,
            reuse=reuse,
            seed=seed,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; of the history widths and view."""
        of_view = self.view.settings
        of_sampler = {k: v for k, v in super().settings.items() if k not in of_view}
        return {**of_sampler, "history": {"widths": self.history.widths, **of_view}}

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

    @collective_call("settings of a ControlVariateSampler")
    def bind(self) -> None:
        """Call ``read_graph``; where the graph lies on several processes, an error on one is one on
        all.
        """
        super().bind()

    def read_graph(self) -> None:
        """Check also that every edge in the sums of the history can be drawn."""
        super().read_graph()
        if self._proportional is not None:
            never = self._proportional.column == 0
            counts = self.view.numbers().numpy() != 0
            if (place := first_true(never & counts)) is not None:
                edge = self.graph.for_sampling.held_part.whole.edge_ids_of(np.array([place]))[0]
                raise ValueError(
                    f"prob: edge {edge} has {self.prob!r} = 0, so it is never drawn, but it counts "
                    "in the history's sums; leave such edges out, as by graph.view(where=...)"
                )

    def complete(self, batch: NodeFlow) -> NodeFlow:
        self.history.pull(batch, missing=self.missing)
        layers = [flow.dst_layer for flow in batch.flows]
        # one exchange for all layers, where several processes hold the graph
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
