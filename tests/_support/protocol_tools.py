"""What the tests of the sampler protocol share: samplers of a user's own, and the modes to try."""

from __future__ import annotations

from torch import Tensor

from nodeflow import Graph, Sampler
from nodeflow.sampling.base import Choice, Step

MODES = [
    {},
    {"include_dst": False},
    {"reuse": True},
    {"direction": "out"},
    {"direction": "out", "reuse": True},
]


class With(Sampler):
    """Asks a function for its choice."""

    def __init__(self, graph: Graph, function, num_flows: int = 1, **options) -> None:
        super().__init__(graph, num_flows, **options)
        self.function = function

    def choose(self, dst: Tensor, step: Step) -> Choice:
        return self.function(self, dst, step)


class Bernoulli(Sampler):
    """Keeps every edge with probability ``rate``."""

    def __init__(self, graph: Graph, num_flows: int, rate: float, **options) -> None:
        super().__init__(graph, num_flows, **options)
        self.rate = rate

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < self.rate, prob=self.rate)
