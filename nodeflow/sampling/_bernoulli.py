"""Neighbour sampling in which every edge is kept or left on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import as_number
from nodeflow._core.base.types import Fanouts, Floats, NumNeighbors
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.view import EdgeView
from nodeflow.graph import Graph
from nodeflow.sampling._keys import Step
from nodeflow.sampling._relations import by_kind, check_fanouts
from nodeflow.sampling._rows import DrawingRows, Drawn, RowSampler


class BernoulliSampler(RowSampler):
    """Every edge is kept with a probability p, independently of all others.

    With ``fanouts``, p is the probability that k uniform draws with replacement hit a given one of
    the node's d edges, 1 - (1 - 1/d)^k; about k edges are kept where d is large. With ``rates``, p
    is the same for all edges of a flow.

    Estimator weights: A / p (Horvitz and Thompson 1952), where A is the ``weight`` column (1
    without). With them the weighted sum over the kept edges is unbiased for the sum of A times
    value over all in-edges; its variance is the sum of (1 - p) / p (A value)^2. The number of kept
    edges is random: a node may get none of its edges. The only edge of a node has p = 1 under
    ``fanouts``.

    Args:
        fanouts: k, one number per flow **in flow order**: ``fanouts[-1]`` belongs to the seeds,
            ``fanouts[0]`` to the inputs; -1 keeps all. Each may be a dict by relation or type, as
            in ``NeighborSampler``.
        num_neighbors: instead of ``fanouts``, the same with the seeds' first, as in
            ``NeighborSampler``.
        rates: instead of ``fanouts``, p itself, one number above 0 and at most 1 per flow, or a
            dict of them, likewise.
        graph, edge_type, include_dst, reuse, seed: see
            ``RowSampler``. Edges that the view or ``without_edges`` leaves out do not count
            in d.

    Cost: one logarithm per kept edge, whatever the degrees. Jumps from one kept edge to the next
    come from uniforms of 53 bits and float64 logarithms: the probability of every jump is exact to
    about 2^-52, p itself to about 2^-52 p.

    Raises TypeError for arguments that are not lists of numbers, ValueError for neither or both of
    ``fanouts`` and ``rates``, and for numbers out of range.

    >>> graph = Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0])
    >>> flow = BernoulliSampler(graph, [2], seed=1)([0]).flows[0]
    >>> flow.parent_eid, flow.weight  # p = 1 - (3/4)^2 = 7/16
    (tensor([3]), tensor([2.2857]))
    >>> BernoulliSampler(graph, rates=[0.5, 1.0])([0])
    NodeFlow(5 -> 5 -> 1 nodes, 3 + 4 edges)
    """

    draws_as = "bernoulli"
    fixed_sizes = False

    def __init__(
        self,
        graph: Graph | EdgeView,
        fanouts: Fanouts | None = None,
        *,
        num_neighbors: NumNeighbors | None = None,
        rates: Sequence[float | Mapping[Any, float]] | None = None,
        edge_type: str | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        sizes = fanouts if num_neighbors is None else num_neighbors
        if (sizes is None) == (rates is None):
            raise ValueError(
                "BernoulliSampler takes either fanouts, as in [10, 25], or rates, as in [0.1, "
                f"0.5]; got fanouts={sizes} and rates={rates}"
            )
        kind = "relation" if edge_type is None else "edge type"
        if sizes is None:
            self.fanouts = None
        else:
            self.fanouts = check_fanouts(fanouts, num_neighbors, edge_type=edge_type)
        self.rates = None if rates is None else by_kind(rates, "rates", _rate, "[0.1, 0.5]", kind)
        super().__init__(
            graph,
            len(self.fanouts or self.rates or ()),
            edge_type=edge_type,
            include_dst=include_dst,
            reuse=reuse,
            seed=seed,
        )

    def read_graph(self) -> None:
        super().read_graph()
        if self.rates is None:
            self._read_counts(self.fanouts or ())
        else:
            self._read_counts(self.rates, "rates")

    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        counts = self._counts[step.flow].astype(np.float64)
        begin, degree, rejection = kernels.bernoulli.log_rejection(
            edges.indptr, rows.numbers, counts, rows.kinds, self.rates is not None
        )
        key = np.uint64(step.random.key)
        indptr, positions, src = kernels.bernoulli.draw_bernoulli(
            begin, degree, edges.indices, rows.ident, key, rejection
        )
        every = counts == 1 if self.rates is not None else counts < 0

        def inverse() -> Floats:
            return np.repeat(-1 / np.expm1(rejection), np.diff(indptr))

        return Drawn(indptr, positions, src, None if every.all() else inverse, varies=False)


def _rate(value: object, name: str, *, of_kind: bool) -> float:
    if of_kind:
        return as_number(value, name, least=0, most=1)
    return as_number(value, name, above=0, most=1)
