"""The module of the samplers, which has ``create_full_nodeflow`` too."""

from functools import partial

from nodeflow.compat.dgl._elsewhere import refuse
from nodeflow.compat.dgl._samplers import LayerSampler, NeighborSampler, create_full_nodeflow

__all__ = ["LayerSampler", "NeighborSampler", "create_full_nodeflow"]
__getattr__ = partial(refuse, "dgl.contrib.sampling.sampler")
