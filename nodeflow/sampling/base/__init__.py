"""Base classes and parts of samplers, for a sampler of one's own.

Start from ``nodeflow.Sampler`` and return ``self.candidates(dst).select(...)`` from ``choose``: ten
lines. ``RowSampler`` is for rows that draw on their own in a compiled loop, ``SubgraphSampler`` for
all edges among chosen nodes. A sampler names its own arguments and ends with ``**options``, those
of ``Sampler``, which it passes on.

>>> from typing import Any
>>> from nodeflow import Graph, Sampler
>>> class Kept(Sampler):
...     def __init__(self, graph: Graph, num_flows: int, p: float, **options: Any) -> None:
...         super().__init__(graph, num_flows, **options)
...         self.p = p
...     def choose(self, dst, step: Step) -> Choice:
...         edges = self.candidates(dst)
...         return edges.select(step.random.uniform(edges.eid) < self.p, prob=self.p)
>>> Kept(Graph.from_edges([0, 1, 2, 3], [4, 4, 4, 4]), 1, 0.5, seed=3)([4]).flows[0].weight
tensor([2., 2., 2.])
"""

from nodeflow._core.edges.edges import Edges, edges_along
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._bound import BoundSampler, Candidates
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._keys import Step
from nodeflow.sampling._pps import LayerCandidates, inclusion_probabilities
from nodeflow.sampling._rows import DrawingRows, Drawn, RowSampler
from nodeflow.sampling._subgraph import Subgraph, SubgraphSampler, induced_subgraph

__all__ = [
    "BoundSampler",
    "Candidates",
    "Choice",
    "DrawingRows",
    "Drawn",
    "Edges",
    "LayerCandidates",
    "RowSampler",
    "SamplerBase",
    "Step",
    "Subgraph",
    "SubgraphSampler",
    "edges_along",
    "inclusion_probabilities",
    "induced_subgraph",
]
