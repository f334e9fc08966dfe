"""Draws in the way of DGL 0.4: layers without their destinations, edges in the order of the graph, self-loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow.graph import Graph
from nodeflow.sampling import LayerSampler, NeighborSampler
from nodeflow.sampling.base import Choice, Step


class NeighborDraws(NeighborSampler):
    """Neighbour sampling whose drawn edges keep the order of the graph, with self-loops if wanted."""

    def __init__(
        self, graph: Graph, fanouts: Any, *, prob: str | None, direction: str, seed: int, add_self_loop: bool
    ) -> None:
        super().__init__(graph, fanouts, prob=prob, direction=direction, include_dst=False, seed=seed)
        self._loops = self._loops_of(graph) if add_self_loop else None

    def _loops_of(self, graph: Graph) -> Ints:
        """The first self-loop of every node, by parent id; -1 for a node without."""
        first = np.full(graph.num_nodes, -1)
        src, dst = (end.numpy() for end in graph.edges())
        loops = np.flatnonzero(src == dst)[::-1]  # the lowest id is written last
        first[src[loops]] = loops
        return first

    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Choose edges as ``NeighborSampler`` does."""
        drawn = super().choose(dst, step)
        edges, indptr = self.reader.edges, drawn.indptr
        row = np.repeat(np.arange(len(dst)), np.diff(indptr))
        start = row * np.int64(len(edges.indices))  # one number for row and position, which sorts fast
        key = start + np.asarray(drawn.positions)
        positions = (key if (key[1:] >= key[:-1]).all() else np.sort(key)) - start
        src = edges.indices[positions].astype(np.int64)
        if self._loops is None:
            return Choice.of_kernel(indptr, positions, src, None, needs_weight=False)
        nodes = dst.numpy()
        has_own = np.zeros(len(nodes), np.bool_)
        has_own[row[src == nodes[row]]] = True
        new = np.flatnonzero(~has_own)
        eid = np.insert(edges.parent_eid(positions).numpy(), indptr[new + 1], self._loops[nodes[new]])
        src = np.insert(src, indptr[new + 1], nodes[new])
        indptr = indptr + np.concatenate([[0], np.cumsum(~has_own)])
        return Choice(indptr, src=src, eid=eid)


class LayerDraws(LayerSampler):
    """Layer-wise sampling whose edges into a node are in the order of their sources."""

    def __init__(self, graph: Graph, layer_sizes: Any, *, direction: str, seed: int) -> None:
        super().__init__(graph, layer_sizes, direction=direction, include_dst=False, seed=seed)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Choose edges as ``LayerSampler`` does."""
        drawn = super().choose(dst, step)
        src = drawn.take_sources(self.reader.edges)
        row = np.repeat(np.arange(len(dst)), np.diff(drawn.indptr))
        order = np.argsort(row * np.int64(self.graph.num_nodes) + src, kind="stable")
        positions = np.asarray(drawn.positions)[order]
        return Choice.of_kernel(drawn.indptr, positions, src[order], None, needs_weight=False)
