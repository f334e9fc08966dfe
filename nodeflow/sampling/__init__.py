"""Samplers: the protocol, and one file per family."""

from nodeflow.sampling.assemble import assemble
from nodeflow.sampling.base import SamplerBase
from nodeflow.sampling.bernoulli import BernoulliSampler
from nodeflow.sampling.bound import BoundSampler
from nodeflow.sampling.choice import Candidates, Choice
from nodeflow.sampling.cluster import ClusterSampler, partition
from nodeflow.sampling.edges import Edges, edges_along
from nodeflow.sampling.labor import LaborSampler
from nodeflow.sampling.layerwise import FastGCNSampler, LadiesSampler, LayerSampler
from nodeflow.sampling.link import LinkSampler
from nodeflow.sampling.neighbor import FullSampler, NeighborSampler
from nodeflow.sampling.random_walk import RandomWalkSampler
from nodeflow.sampling.rows import Drawn, Rows, RowSampler
from nodeflow.sampling.saint import SaintSampler
from nodeflow.sampling.sampler import Sampler, Step
from nodeflow.sampling.scores import LayerCandidates
from nodeflow.sampling.shadow import ShadowSampler
from nodeflow.sampling.subgraph import Subgraph, SubgraphSampler, induced_subgraph
from nodeflow.sampling.temporal import TemporalNeighborSampler

__all__ = [
    "BernoulliSampler",
    "BoundSampler",
    "Candidates",
    "Choice",
    "ClusterSampler",
    "Drawn",
    "Edges",
    "FastGCNSampler",
    "FullSampler",
    "LaborSampler",
    "LadiesSampler",
    "LayerCandidates",
    "LayerSampler",
    "LinkSampler",
    "NeighborSampler",
    "RandomWalkSampler",
    "RowSampler",
    "Rows",
    "SaintSampler",
    "Sampler",
    "SamplerBase",
    "ShadowSampler",
    "Step",
    "Subgraph",
    "SubgraphSampler",
    "TemporalNeighborSampler",
    "assemble",
    "edges_along",
    "induced_subgraph",
    "partition",
]
