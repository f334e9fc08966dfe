"""The samplers of DGL 0.4 that make NodeFlows."""

from functools import partial

from nodeflow.compat.dgl._elsewhere import refuse
from nodeflow.compat.dgl._samplers import LayerSampler, NeighborSampler
from nodeflow.compat.dgl.contrib.sampling import sampler

__all__ = ["LayerSampler", "NeighborSampler", "sampler"]
__getattr__ = partial(refuse, "dgl.contrib.sampling")
