"""The seed of the samplers of this layer."""

from __future__ import annotations

from nodeflow._core.base.checks import as_int
from nodeflow._core.runtime import process

__all__ = ["seed"]


def seed(val: int) -> None:
    """Set the seed of the samplers made from now on.

    Every sampler object draws on its own: its draws depend on this seed and on how many were made
    since it was set. So a program that calls ``seed`` first has the same batches in every run, for
    any number of workers. Without a call the seed is 0.

    >>> from nodeflow.compat import dgl
    >>> g = dgl.DGLGraph([(0, 2), (1, 2)])
    >>> dgl.random.seed(7)
    >>> [nf.layer_parent_nid(0).tolist() for nf in dgl.contrib.sampling.NeighborSampler(g, 1, 1, seed_nodes=[2])]
    [[0]]
    """
    process.seed(as_int(val, "val"))
