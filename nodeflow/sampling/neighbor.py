"""Uniform neighbour sampling, and full neighbourhoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodeflow._check import Ints, as_count, as_int, describe
from nodeflow.graph import Graph
from nodeflow.kernels.draw import draw_with, draw_without, plan
from nodeflow.sampling.columns import edge_integers
from nodeflow.sampling.edges import Edges
from nodeflow.sampling.rows import Drawn, Rows, RowSampler
from nodeflow.sampling.sampler import Step, check_sizes


class NeighborSampler(RowSampler):
    """Every node draws a fixed number of its neighbours uniformly (Hamilton, Ying, Leskovec 2017, algorithm 2).

    Estimator weights: degree / number drawn. With them the weighted sum over the drawn edges is unbiased for the sum
    over all in-edges, with and without replacement; weights of 1 over a mean are what GraphSAGE uses. A node with no
    more neighbours than its fanout keeps all of them once, in the graph's order (with replacement it still draws
    ``fanout`` of them); a node without neighbours gets no edges.

    Args:
        graph: the parent graph; it is never written to.
        fanouts: one number per flow **in flow order**: ``fanouts[-1]`` belongs to the seeds, ``fanouts[0]`` to the
            inputs; -1 takes all neighbours. With ``edge_type``, each may be a dict from edge type to number; types that
            it does not name draw nothing, and a bare number is for every type.
        replace: draw with replacement, so that a neighbour may be drawn repeatedly. Without, every subset of the
            neighbours is equally likely.
        edge_type: name of an edge column of integers: every node draws for each type on its own, and its edges are
            grouped by type, ascending.
        direction, include_dst, reuse, edge_filter, weight, seed: see ``Sampler``.

    Cost: proportional to the number of drawn edges, whatever the degrees (all edges for -1).

    Raises TypeError for a bare int, ValueError for no fanouts, 0 or numbers below -1, or an edge type that does not
    occur.

    >>> graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    >>> batch = NeighborSampler(graph, fanouts=[-1, 1])([2, 1])
    >>> batch.num_flows, batch.flow_sizes[1], batch.seeds
    (2, 2, tensor([2, 1]))
    """

    fixed = (
        "fanouts", "replace", "edge_type", "direction", "include_dst", "reuse", "edge_filter", "weight", "seed"
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        fanouts: Any,
        *,
        replace: bool = False,
        edge_type: str | None = None,
        direction: str = "in",
        include_dst: bool = True,
        reuse: bool = False,
        edge_filter: Any = None,
        weight: str | None = None,
        seed: int = 0,
    ) -> None:
        self.fanouts = check_sizes(fanouts, "fanouts") if edge_type is None else _per_type(fanouts)
        self.replace = bool(replace)
        self.edge_type = edge_type
        largest = max(max(f.values(), default=0) if isinstance(f, dict) else f for f in self.fanouts)
        if self.replace and largest >= 2**31:  # every node draws so many, and their sum must be a number
            raise ValueError(f"fanouts must be below 2**31 with replacement, got {largest}")
        options = {
            "direction": direction, "include_dst": include_dst, "reuse": reuse, "edge_filter": edge_filter,
            "weight": weight, "seed": seed,
        }  # fmt: skip
        super().__init__(graph, len(self.fanouts), **options)

    _bound = (*RowSampler._bound, "_counts")

    def _arranged(self, edges: Edges) -> Edges:
        if self.edge_type is None:
            self._counts = [np.array([fanout], np.int64) for fanout in self.fanouts]
            return super()._arranged(edges)
        column = edge_integers(self.graph, self.edge_type, "edge_type")
        types, place = np.unique(column, return_inverse=True)
        self._counts = [_counts(fanout, types.tolist()) for fanout in self.fanouts]
        return super()._arranged(edges).by_type(place, len(types)) if len(types) else super()._arranged(edges)

    @property
    def settings(self) -> dict[str, Any]:
        """What draws depend on, but for the graph: the names in ``fixed`` that this sampler has, and their values."""
        return {k: v for k, v in super().settings.items() if not (k == "edge_type" and v is None)}

    def draw_rows(self, edges: Edges, rows: Rows, step: Step) -> Drawn:
        """Draw ``fanouts[step.flow]`` neighbours for every row."""
        counts = self._counts[step.flow]
        indptr, begin, degree = plan(edges.indptr, rows.at, counts, rows.ident, self.replace)
        positions, src = np.empty(indptr[-1], np.int64), np.empty(indptr[-1], np.int64)
        key = np.uint64(step.random.key)
        if self.replace and (counts >= 0).any():
            draw_with(begin, degree, edges.near, rows.ident, key, counts, indptr, positions, src)
        else:
            draw_without(begin, degree, edges.near, rows.ident, key, indptr, positions, src)
        return Drawn(indptr, positions, src, None if (counts < 0).all() else lambda: inverse_rate(degree, indptr))


def inverse_rate(degree: Ints, indptr: Ints) -> NDArray[np.float64]:
    """Degree / number drawn, for every drawn edge, ``[E]``."""
    drawn = np.diff(indptr)
    return np.repeat(degree / np.maximum(drawn, 1), drawn)


def _per_type(fanouts: Any) -> tuple[int | dict[int, int], ...]:
    """Fanouts that may be dicts from edge type to fanout."""
    if isinstance(fanouts, (str, bytes, Mapping)) or not isinstance(fanouts, Sequence):
        raise TypeError(
            "fanouts must be a list with a number or a dict per flow, as in [{0: 5, 1: 10}, {0: 10}], got "
            f"{describe(fanouts)}"
        )
    found: list[int | dict[int, int]] = []
    for i, fanout in enumerate(fanouts):
        if not isinstance(fanout, Mapping):
            found += check_sizes([fanout], f"fanouts of flow {i}: fanouts")
            continue
        types = {as_int(t, f"an edge type in fanouts[{i}]"): fanout[t] for t in fanout}
        numbers = check_sizes([n for n in types.values() if n != 0] or [-1], f"fanouts[{i}]")
        left = iter(numbers)
        found.append({t: 0 if n == 0 else next(left) for t, n in types.items()})
    if not found:
        raise ValueError("fanouts must have one entry per flow, got none")
    return tuple(found)


def _counts(fanout: int | dict[int, int], types: list[int]) -> Ints:
    """The fanout of every edge type there is."""
    if isinstance(fanout, int):
        return np.full(max(len(types), 1), fanout, np.int64)
    unknown = sorted(set(fanout) - set(types))
    if unknown:
        raise ValueError(f"fanouts name the edge type {unknown[0]}, but the types there are: {types}")
    return np.array([fanout.get(t, 0) for t in types] or [0], np.int64)


class FullSampler(NeighborSampler):
    """Every node keeps all its neighbours: exact results for the seeds, at the cost of the whole neighbourhood.

    Args:
        graph: the parent graph.
        num_flows: number of flows.
        direction, include_dst, reuse, edge_filter, weight: see ``Sampler``. Reuse gives the same NodeFlow, made faster.

    >>> FullSampler(Graph.from_edges([0, 1], [1, 2]), num_flows=2)([2])
    NodeFlow(3 -> 2 -> 1 nodes, 2 + 1 edges)
    """

    def __init__(
        self,
        graph: Graph,
        num_flows: int,
        *,
        direction: str = "in",
        include_dst: bool = True,
        reuse: bool = False,
        edge_filter: Any = None,
        weight: str | None = None,
    ) -> None:
        options = {
            "direction": direction, "include_dst": include_dst, "reuse": reuse, "edge_filter": edge_filter,
            "weight": weight,
        }  # fmt: skip
        super().__init__(graph, [-1] * as_count(num_flows, "num_flows", 1), **options)
