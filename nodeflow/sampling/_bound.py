"""Samplers that read the edges of a graph: along in- or out-edges, through a filter, with weights."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids
from nodeflow.graph import Graph
from nodeflow.graph._columns import EdgeMask, edge_mask, edge_numbers
from nodeflow.graph._edges import Edges, edges_along
from nodeflow.random import hash_ids
from nodeflow.sampling._base import SamplerBase, arguments

S = TypeVar("S", bound="BoundSampler")


class BoundSampler(SamplerBase):
    """Base of the samplers that look up edges; what these options do is the same in all of them.

    A subclass calls ``_bind()`` at the end of its ``__init__``. What that reads from the graph is not pickled, but read
    again where the sampler is unpickled.

    Args:
        graph: the parent graph; it is never written to.
        num_flows: number of flows, L.
        direction: "in" or "out".
        edge_filter, weight, seed: see ``Sampler``.

    Raises ValueError for a direction that is neither, a mask of a wrong length, or a weight that is not finite;
    KeyError for an unknown column.
    """

    def __init__(
        self,
        graph: Graph,
        num_flows: int,
        *,
        direction: str = "in",
        edge_filter: Any = None,
        weight: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, num_flows, seed=seed)
        self.direction = direction
        self.edge_filter: EdgeMask | None = edge_mask(graph, edge_filter)
        self.weight = weight

    _bound: tuple[str, ...] = ("_edges", "_weights")
    _left_out: Ints | None = None

    def _bind(self) -> None:
        """Set the attributes named in ``_bound``, which are read from the graph: when made, and when unpickled."""
        self._edges: Edges = self._arranged(edges_along(self.graph, self.direction))
        if self._left_out is not None:
            self._edges = self._edges.without(self._left_out)
        self._weights: NDArray[Any] | None = None
        if self.weight is not None:
            self._weights = edge_numbers(self.graph, self.weight, "weight")

    @property
    def weight_type(self) -> type[np.floating[Any]]:
        """Type of the estimator weights: float64 where the ``weight`` column is, else float32."""
        if self.weight is None or self.graph.edata[self.weight].dtype != torch.float64:
            return np.float32
        return np.float64

    def _arranged(self, edges: Edges) -> Edges:
        """The edges as this sampler looks them up."""
        return edges if self.edge_filter is None else edges.keep(self.edge_filter.mask)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; see ``SamplerBase``.

        Arguments left at None are not shown, so that states of loaders stay readable when a version adds one.
        """
        defaults = arguments(type(self))
        settings = {k: v for k, v in super().settings.items() if v is not None or defaults.get(k, 0) is not None}
        if self._left_out is not None:
            settings["without_edges"] = f"{len(self._left_out)} edges, {hash_ids(self._left_out):#018x}"
        return settings

    def without_edges(self: S, eid: Any) -> S:
        """Return a sampler like this one that does not draw the edges ``eid`` (parent edge ids).

        They are left out before the draw, so fanouts stay full. Where nodes draw on their own, those without such an
        edge draw what they drew; where a layer draws as a whole, all of it may change. Meant for one batch, such as the
        edges whose presence is to be predicted; for what holds for long, ``edge_filter`` makes faster samplers.

        Raises IndexError for an id out of range.
        """
        ids = as_ids(eid, "eid", self.graph.num_edges, "edge")
        if self._left_out is not None:
            ids = np.concatenate([self._left_out, ids])
        return self._changed(_edges=self._edges.without(ids), _left_out=ids.copy())

    def estimand(self) -> Tensor:
        """Return the number by which every edge counts in the sums that are estimated, float64 ``[num_edges]``.

        The ``weight`` column, or 1; 0 for edges that the filter or ``without_edges`` leaves out. A sampler of your own
        that never draws other edges either, or counts edges otherwise, overrides this: ``assert_unbiased`` compares its
        weighted sums with the sums by these numbers (example in docs/sampling.md).
        """
        if self._weights is None:
            found = torch.ones(self.graph.num_edges, dtype=torch.float64, device="cpu")
        else:
            found = torch.from_numpy(self._weights).double().clone()
        if self.edge_filter is not None:
            found[torch.from_numpy(~self.edge_filter.mask)] = 0
        if self._left_out is not None:
            found[torch.from_numpy(self._left_out)] = 0
        return found

    def __getstate__(self) -> dict[str, Any]:
        # what was read from the graph is read again there: the graph travels as itself, by file name where it can
        return {name: value for name, value in self.__dict__.items() if name not in self._bound}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()
