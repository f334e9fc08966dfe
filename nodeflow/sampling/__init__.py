"""Samplers: the protocol, and one file per family."""

from nodeflow.graph._edges import Edges, edges_along
from nodeflow.sampling._assemble import assemble
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._bernoulli import BernoulliSampler
from nodeflow.sampling._bound import BoundSampler
from nodeflow.sampling._choice import Candidates, Choice
from nodeflow.sampling._cluster import ClusterSampler, partition
from nodeflow.sampling._labor import LaborSampler
from nodeflow.sampling._layerwise import FastGCNSampler, LadiesSampler, LayerSampler
from nodeflow.sampling._link import LinkSampler
from nodeflow.sampling._neighbor import FullSampler, NeighborSampler
from nodeflow.sampling._random_walk import RandomWalkSampler
from nodeflow.sampling._rows import Drawn, Rows, RowSampler
from nodeflow.sampling._saint import SaintSampler
from nodeflow.sampling._sampler import Sampler, Step
from nodeflow.sampling._scores import LayerCandidates
from nodeflow.sampling._shadow import ShadowSampler
from nodeflow.sampling._subgraph import Subgraph, SubgraphSampler, induced_subgraph
from nodeflow.sampling._temporal import TemporalNeighborSampler

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
