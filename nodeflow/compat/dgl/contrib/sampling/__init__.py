"""The samplers of DGL 0.4 that make NodeFlows."""

from functools import partial

from nodeflow.compat.dgl._queries import refuse
from nodeflow.compat.dgl.contrib.sampling import sampler
from nodeflow.compat.dgl.contrib.sampling.sampler import LayerSampler, NeighborSampler

__all__ = ["LayerSampler", "NeighborSampler", "sampler"]
__getattr__ = partial(refuse, "dgl.contrib.sampling")
