"""Uniform neighbour sampling, and full neighbourhoods."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._check import Ints, as_count
from nodeflow.graph import Graph
from nodeflow.kernels.draw import draw_with, draw_without, plan
from nodeflow.sampling.choice import Choice
from nodeflow.sampling.sampler import Sampler, Step, check_fanouts


class NeighborSampler(Sampler):
    """Every node draws a fixed number of its neighbours uniformly (Hamilton, Ying, Leskovec 2017, algorithm 2).

    Estimator weights: degree / number drawn. With them the weighted sum over the drawn edges is unbiased for the sum
    over all in-edges, with and without replacement; weights of 1 over a mean are what GraphSAGE uses. A node with no
    more neighbours than its fanout keeps all of them once, in the graph's order (with replacement it still draws
    ``fanout`` of them); a node without neighbours gets no edges.

    Args:
        graph: the parent graph; it is never written to.
        fanouts: one number per flow **in flow order**: ``fanouts[-1]`` belongs to the seeds, ``fanouts[0]`` to the
            inputs; -1 takes all neighbours.
        replace: draw with replacement, so that a neighbour may be drawn repeatedly. Without, every subset of the
            neighbours is equally likely.
        direction, include_dst, reuse, seed: see ``Sampler``.

    Cost: proportional to the number of drawn edges, whatever the degrees (all edges for -1).

    Raises TypeError for a bare int, ValueError for no fanouts, 0 or numbers below -1.

    >>> graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    >>> batch = NeighborSampler(graph, fanouts=[-1, 1])([2, 1])
    >>> batch.num_flows, batch.flow_sizes[1], batch.seeds
    (2, 2, tensor([2, 1]))
    """

    fixed = ("fanouts", "replace", "direction", "include_dst", "reuse", "seed")

    def __init__(
        self,
        graph: Graph,
        fanouts: Any,
        *,
        replace: bool = False,
        direction: str = "in",
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.fanouts = check_fanouts(fanouts)
        self.replace = bool(replace)
        if self.replace and max(self.fanouts) >= 2**31:  # every node draws so many, and their sum must be a number
            raise ValueError(f"fanouts must be below 2**31 with replacement, got {max(self.fanouts)}")
        options = {"direction": direction, "include_dst": include_dst, "reuse": reuse, "seed": seed}
        super().__init__(graph, len(self.fanouts), **options)  # type: ignore[arg-type]

    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Draw ``fanouts[step.flow]`` neighbours of every destination."""
        nodes, edges, fanout = dst.numpy(), self._edges, self.fanouts[step.flow]
        indptr, begin, degree = plan(edges.indptr, nodes, fanout, self.replace)
        positions, ids = np.empty(indptr[-1], np.int64), np.empty(indptr[-1], np.int64)
        draw = draw_with if self.replace and fanout >= 0 else draw_without
        draw(begin, degree, edges.near, nodes, np.uint64(step.random.key), indptr, positions, ids)
        weight = None if fanout < 0 else lambda: _inverse_rate(degree, indptr)
        return Choice.of_kernel(indptr, positions, ids, weight)


def _inverse_rate(degree: Ints, indptr: Ints) -> Tensor:
    """Degree / number drawn, for every drawn edge, float32."""
    drawn = np.diff(indptr)
    return torch.from_numpy(np.repeat((degree / np.maximum(drawn, 1)).astype(np.float32), drawn))


class FullSampler(NeighborSampler):
    """Every node keeps all its neighbours: exact results for the seeds, at the cost of the whole neighbourhood.

    Args:
        graph: the parent graph.
        num_flows: number of flows.
        direction, include_dst, reuse: see ``Sampler``. Reuse gives the same NodeFlow, made faster.

    >>> FullSampler(Graph.from_edges([0, 1], [1, 2]), num_flows=2)([2])
    NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
    """

    def __init__(
        self, graph: Graph, num_flows: int, *, direction: str = "in", include_dst: bool = True, reuse: bool = False
    ) -> None:
        fanouts = [-1] * as_count(num_flows, "num_flows", 1)
        super().__init__(graph, fanouts, direction=direction, include_dst=include_dst, reuse=reuse)
