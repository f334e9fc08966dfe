"""The edges of a graph as a sampler looks them up: in a direction, through a filter, with weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.graph import Graph
from nodeflow.graph._columns import EdgeMask, edge_numbers
from nodeflow.graph._edges import Edges, edges_along
from nodeflow.sampling._choice import Candidates


class Reader(NamedTuple):
    """Everything that a ``BoundSampler`` reads from its graph; ``BoundSampler.read_graph`` makes it.

    Attributes:
        edges: the edge arrays, along which neighbours are looked up.
        weights: the ``weight`` column by edge id, ``[num_edges]``; None where the sampler has none.
        weight_type: the type of estimator weights: float64 where the ``weight`` column is, else float32.
        mask: which edges the filter keeps, bool ``[num_edges]``; None: all.
        left_out: ids of the edges that ``without_edges`` leaves out; None: none.
    """

    edges: Edges
    weights: Array | None
    weight_type: type[np.float32] | type[np.float64]
    mask: NDArray[np.bool_] | None
    left_out: Ints | None = None

    @classmethod
    def of(cls, graph: Graph, direction: str, edge_filter: EdgeMask | None, weight: str | None) -> Reader:
        """Read a graph. Raises what ``edges_along`` and ``edge_numbers`` raise."""
        edges = edges_along(graph, direction)
        mask = None if edge_filter is None else edge_filter.mask
        if mask is not None:
            edges = edges.keep(mask)
        if weight is None:
            return cls(edges, None, np.float32, mask)
        weights = edge_numbers(graph, weight, "weight")
        # integers are read as float64, but their weights are float32
        exact = graph.edata[weight].dtype == torch.float64
        return cls(edges, weights, np.float64 if exact else np.float32, mask)

    def arranged(self, edges: Edges) -> Reader:
        """Return the same with the edge arrays in another order or in other rows."""
        return self._replace(edges=edges)

    def without(self, eid: Ints) -> Reader:
        """Return the same without the edges ``eid`` (parent edge ids). Nothing is read again."""
        left_out = eid.copy() if self.left_out is None else np.concatenate([self.left_out, eid])
        return self._replace(edges=self.edges.without(left_out), left_out=left_out)

    def candidates(self, dst: Tensor) -> Candidates:
        """Return all edges that the destinations ``dst`` (parent ids, int64) could draw."""
        return Candidates(self.edges, dst, self.weights, exact=self.weight_type is np.float64)

    def weighted(self, positions: Ints, factor: Array | None = None) -> Array:
        """Return the weights of the edges at ``positions`` times ``factor``, ``[E]`` each (None: 1)."""
        if self.weights is None:
            return np.ones(len(positions)) if factor is None else factor
        weights = self.weights[self.edges.ids(positions)]
        return weights if factor is None else weights * factor

    def estimator_weight(self, weights: Array) -> Tensor:
        """Return weights as a tensor of the type that estimator weights have."""
        return torch.from_numpy(np.asarray(weights, self.weight_type))
