"""Neighbour sampling, uniform or in proportion to edge weights, and full neighbourhoods."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_count, as_flag
from nodeflow._core.base.types import Fanouts, NumNeighbors
from nodeflow._core.edges.columns import edge_numbers
from nodeflow._core.edges.edges import Edges
from nodeflow._core.edges.numbering import distinct_in_order
from nodeflow._core.edges.view import EdgeView
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling._keys import Keys, Step
from nodeflow.sampling._pps import Proportional
from nodeflow.sampling._relations import Fanout, check_fanouts
from nodeflow.sampling._rows import DrawingRows, Drawn, RowSampler
from nodeflow.sampling._uniform import UNIFORM


class NeighborSampler(RowSampler):
    """Every node draws a fixed number of its neighbours, uniformly or in proportion to an edge
    column.

    This is GraphSAGE's sampling (Hamilton, Ying, Leskovec 2017, algorithm 2).

    Estimator weights: A / probability of being drawn; with replacement, A / mean number of times
    drawn. A is the ``weight`` column (1 without). For k drawn edges of d this is A d / k without
    ``prob``; with ``prob``, the column w, and W, its sum over the node's edges, it is A W / (k w)
    with replacement, and A / min(1, c w) without. The weighted sum over the drawn edges is thus
    unbiased for the sum of A times value over all in-edges (with ``prob``: those with w above 0);
    weights of 1 over a mean are what GraphSAGE uses. A node with no more neighbours than its fanout
    keeps all of them once, in the graph's order, with weight A (with replacement it still draws
    ``fanout`` of them); a node without neighbours gets no edges.

    Args:
        fanouts: one number per flow **in flow order**: ``fanouts[-1]`` belongs to the seeds,
            ``fanouts[0]`` to the inputs; -1 takes all neighbours. In a graph of several relations
            (``Graph.typed``) every node draws for each relation on its own, and each number may be
            a dict from relations, by name or triple; with ``edge_type``, from edge types. What is
            not in the dict draws nothing; a number instead of a dict holds for each.
        num_neighbors: instead of ``fanouts``, the same numbers in the order of PyTorch Geometric,
            **the seeds' first**; also a dict from relations to such lists.
        replace: True: draw with replacement, so that a neighbour may be drawn repeatedly. False:
            without; then every subset of the neighbours is equally likely, unless there is
            ``prob``.
        prob: name of an edge column of numbers, finite and at least 0, that draws are proportional
            to. With ``replace``, every draw takes edge e with probability w_e / W. Without, e is
            among the k edges drawn with probability exactly min(1, c w_e), with the c that makes
            these add up to k; edges for which it is 1 are certain, and have the weight A. Where no
            probability is above 1/2 and k^2 times the largest w / W is about 2 or less, the k are
            drawn by Sampford's method (1967); elsewhere those that are not certain are drawn by
            Deville's systematic method (Deville 1998; Chauvet 2012; the law is that of the ordered
            pivotal method). Edges of weight 0 are never drawn and count as no neighbours, also for
            fanout -1: a node that has no others gets no edges. The column is read once, when the
            sampler is made; do not write to it in place afterwards. None: uniform, and so for
            relations that have no such column.
        disjoint: True: every seed has a neighbourhood of its own, that of the seed sampled alone,
            which shares no row with the others'. ``Layer.context`` is the number of the seed in
            ``batch.seeds``; a node reached from two seeds is two rows, which draw on their own.
            What a seed draws depends on the seed, the epoch and the number of the batch, if it has
            one, and not on the other seeds. Seeds that repeat have one neighbourhood.
        graph, edge_type, include_dst, reuse, seed: see
            ``RowSampler``.

    Cost: proportional to the number of drawn edges, whatever the degrees (all edges for -1). With
    ``prob``, a draw reads one number of an alias table. Without replacement, the systematic method
    reads all edges of the node.

    With ``prob``, tables take ``8 num_edges + 24 num_nodes`` bytes (``num_nodes`` times the number
    of types, with ``edge_type``), and the weights in the order of the edges as much as the column.
    Tables are exact to 2**-45 W per edge, and float64 sums to about 1e-15 W (times the square root
    of the degree for hubs): an edge below 1e-13 W may never be drawn.

    Raises TypeError for a bare int, and for neither or both of ``fanouts`` and ``num_neighbors``;
    ValueError for no fanouts, 0 or numbers below -1, an edge type that does not occur, a relation's
    name that several have, or a ``prob`` column with a number that is negative, not finite, or
    (float64) beyond 1e-280 to 1e280; KeyError for an unknown column or relation.

    >>> weights = torch.tensor([3.0, 1.0, 0.0, 2.0, 1.0])
    >>> graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0], edata={"w": weights})
    >>> flow = NeighborSampler(graph, fanouts=[1], prob="w")([2, 1]).flows[0]
    >>> flow.parent_eid, flow.weight
    (tensor([3, 0]), tensor([1.0000, 1.3333]))
    """

    draws_as = ""
    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        fanouts: Fanouts | None = None,
        *,
        num_neighbors: NumNeighbors | None = None,
        replace: bool = False,
        prob: str | None = None,
        disjoint: bool = False,
        edge_type: str | None = None,
        include_dst: bool = True,
        reuse: bool = False,
        seed: int = 0,
    ) -> None:
        self.replace = as_flag(replace, "replace")
        self.disjoint = as_flag(disjoint, "disjoint")
        self.fanouts = self._checked(fanouts, num_neighbors, edge_type)
        self.prob = prob
        super().__init__(
            graph,
            len(self.fanouts),
            edge_type=edge_type,
            include_dst=include_dst,
            reuse=reuse,
            seed=seed,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; ``disjoint`` where it is True."""
        return {k: v for k, v in super().settings.items() if k != "disjoint" or v}

    def _identity(self, ids: Ints) -> tuple[int, ...]:
        # seeds that draw on their own do not need batch numbers
        return () if self.disjoint else super()._identity(ids)

    def _sample(self, seeds: Ints, keys: Keys, contexts: Ints | None = None) -> NodeFlow:
        # draws of contexts are told apart by the seed, not by its number
        if self.disjoint:
            distinct, contexts = distinct_in_order(seeds)
            keys = keys._replace(contexts=self.form.placed(distinct))
        return super()._sample(seeds, keys, contexts)

    def _checked(
        self, fanouts: Fanouts | None, num_neighbors: NumNeighbors | None, edge_type: str | None
    ) -> tuple[Fanout, ...]:
        """Return the checked fanouts; a subclass may allow other values."""
        return check_fanouts(fanouts, num_neighbors, edge_type=edge_type)

    def _loops_only(self) -> bool:
        return self.prob is not None and not self.replace

    def read_graph(self) -> None:
        super().read_graph()
        self._read_counts(self.fanouts)
        self._proportional: Proportional | None = None
        if self.prob is not None:
            column = edge_numbers(self.graph.for_sampling, self.prob, "prob", signed=False)
            self._proportional = Proportional(self.reader.edges, column)

    def estimand(self) -> Tensor:
        """Return the numbers of ``RowSampler.estimand``, and 0 where ``prob`` is 0."""
        number = super().estimand()
        if self._proportional is not None:
            number[torch.from_numpy(self._proportional.column == 0)] = 0
        return number

    def draw_rows(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        counts = self._counts[step.flow]
        if self._proportional is not None:
            # copies of rows without edges that are left out need tables of their own
            is_intact = edges is self.reader.edges
            tables = (
                self._proportional if is_intact else Proportional(edges, self._proportional.column)
            )
            return tables.draw(edges, rows, counts, step.random.key, replace=self.replace)
        form = edges.form
        indptr, degree, positions, src = form.of(UNIFORM)(
            edges, rows, counts, step.random.key, replace=self.replace
        )
        size = len(src)
        inverse = None if (counts < 0).all() else lambda: form.inverse_rate(degree, indptr, size)
        return Drawn(indptr, positions, src, inverse, varies=False)

    def _draw_patched(self, edges: Edges, rows: DrawingRows, step: Step) -> Drawn:
        # uniform draws step over what is left out, at no cost in degrees; weighted ones need an
        # excerpt
        if self.prob is None:
            return self.draw_rows(edges, rows, step)
        return super()._draw_patched(edges, rows, step)


class FullSampler(NeighborSampler):
    """Every node keeps all its neighbours: exact results for the seeds, at the cost of the whole
    neighbourhood.

    Args:
        graph: the parent graph.
        num_flows: number of flows.
        include_dst, reuse: see ``Sampler``. Reuse gives the same
            NodeFlow, made faster.

    >>> FullSampler(Graph.from_edges([0, 1], [1, 2]), num_flows=2)([2])
    NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
    """

    has_torch_form = True

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        *,
        include_dst: bool = True,
        reuse: bool = False,
    ) -> None:
        super().__init__(
            graph,
            [-1] * as_count(num_flows, "num_flows", 1),
            include_dst=include_dst,
            reuse=reuse,
        )
