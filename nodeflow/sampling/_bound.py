"""The base class of samplers that look up edges: their direction, filter and weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import as_count, as_ids
from nodeflow._base.types import EdgeFilter, IdsLike
from nodeflow._edges.columns import EdgeMask, edge_mask
from nodeflow._peers.held import together
from nodeflow.graph import Graph
from nodeflow.random import hash_ids
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._options import arguments
from nodeflow.sampling._reader import Reader


class BoundSampler(SamplerBase):
    """Base of the samplers that look up edges: in a direction, through a filter, with weights.

    Draws look up edges and weights in ``reader``. A subclass that reads more of the graph, such as another column,
    overrides ``read_graph``; it sets the settings used there before it calls ``super().__init__``.

    Args:
        num_flows: number of flows, L.
        graph, direction, edge_filter, weight, seed, and errors: see ``Sampler``.

    >>> from nodeflow import NeighborSampler, Graph
    >>> sampler = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), fanouts=[2])
    >>> isinstance(sampler, BoundSampler)
    True
    """

    def __init__(
        self,
        graph: Graph,
        num_flows: int,
        *,
        direction: str = "in",
        edge_filter: EdgeFilter | None = None,
        weight: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, as_count(num_flows, "num_flows", 1), seed=seed)
        self.direction, self.weight = direction, weight
        with together(graph, f"making a {type(self).__name__}"):
            self.edge_filter: EdgeMask | None = edge_mask(graph, edge_filter)
            self.bind()

    reader: Reader

    def read_graph(self) -> None:
        """Read the edges and their weights into ``reader``."""
        self.reader = Reader.of(self.graph, self.direction, self.edge_filter, self.weight)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; see ``SamplerBase``.

        Arguments left at None are not shown, so that states of loaders stay readable when a version adds one.
        """
        left = {name for name, p in arguments(type(self)).items() if p.default is None}
        settings = {k: v for k, v in super().settings.items() if v is not None or k not in left}
        if (left_out := self.reader.left_out) is not None:
            settings["without_edges"] = f"{len(left_out)} edges, {hash_ids(left_out):#018x}"
        return settings

    def without_edges(self, eid: IdsLike) -> Self:
        """Return a sampler like this one that does not draw the edges ``eid`` (parent edge ids).

        They are left out before the draw, so fanouts stay full. If nodes draw on their own, nodes without such an edge
        draw the same as before; if a layer draws as a whole, all of it may change. Meant for one batch, such as the
        edges whose presence is to be predicted. To leave edges out for long, use ``edge_filter``: its draws are faster.

        Raises IndexError for an id out of range.
        """
        ids = as_ids(eid, "eid", self.graph.num_edges, "edge")
        return self.with_reader(self.reader.without(ids, self.graph.held))

    def with_reader(self, reader: Reader) -> Self:
        """Return a sampler like this one that looks up other edges."""
        other = object.__new__(type(self))  # not a copy as pickle makes it, which reads the graph anew
        other.__dict__.update(self.__dict__)
        other.reader = reader
        return other

    def estimand(self) -> Tensor:
        """Return the number by which every edge counts in the sums that are estimated, float64 ``[num_edges]``.

        It is the ``weight`` column, or 1, and 0 for edges that the filter or ``without_edges`` leaves out. A sampler of
        your own overrides this if it never draws some other edges, or counts edges otherwise: ``assert_unbiased``
        compares its weighted sums with the sums by these numbers (example in docs/custom-samplers.md).
        """
        if self.graph.peers.size > 1:
            raise TypeError("estimand() has a number for every edge, and this graph lies on several processes")
        weights, mask, left_out = self.reader.weights, self.reader.mask, self.reader.left_out
        number = np.ones(self.graph.num_edges) if weights is None else weights.astype(np.float64)
        if mask is not None:
            number[~mask] = 0
        if left_out is not None:
            number[left_out] = 0
        return torch.from_numpy(number)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_left_out": self.reader.left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        left_out = state.pop("_left_out")
        super().__setstate__(state)
        if left_out is not None:
            self.reader = self.reader.without(left_out, self.graph.held)
