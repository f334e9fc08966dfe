"""Samplers: the protocol, and one file per family."""

from nodeflow.sampling.assemble import assemble, edges_along
from nodeflow.sampling.choice import Candidates, Choice, Edges
from nodeflow.sampling.neighbor import FullSampler, NeighborSampler
from nodeflow.sampling.sampler import Sampler, Step

__all__ = [
    "Candidates",
    "Choice",
    "Edges",
    "FullSampler",
    "NeighborSampler",
    "Sampler",
    "Step",
    "assemble",
    "edges_along",
]
