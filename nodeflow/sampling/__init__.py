"""Samplers: the protocol, and one file per family."""

from nodeflow.sampling.assemble import assemble
from nodeflow.sampling.base import SamplerBase
from nodeflow.sampling.choice import Candidates, Choice
from nodeflow.sampling.edges import Edges, edges_along
from nodeflow.sampling.neighbor import FullSampler, NeighborSampler
from nodeflow.sampling.rows import RowSampler
from nodeflow.sampling.sampler import Sampler, Step

__all__ = [
    "Candidates",
    "Choice",
    "Edges",
    "FullSampler",
    "NeighborSampler",
    "RowSampler",
    "Sampler",
    "SamplerBase",
    "Step",
    "assemble",
    "edges_along",
]
