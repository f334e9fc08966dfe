"""Stands in for DGL 0.4's NodeFlow code: ``import nodeflow.compat.dgl as dgl`` instead of ``import dgl``.

It has ``DGLGraph``, ``NodeFlow``, ``function``, ``contrib.sampling``, ``random`` and ``init``, with the names, ids,
orders and defaults of version 0.4. docs/coming-from-dgl.md lists what is different, and the new way for every old name.
``DGLGraph.graph`` and ``NodeFlow.batch`` are the objects of nodeflow behind them, for code that changes step by step.

>>> import torch
>>> import nodeflow.compat.dgl as dgl
>>> import nodeflow.compat.dgl.function as fn
>>> g = dgl.DGLGraph([(0, 1), (2, 1), (1, 0)], readonly=True)
>>> g.ndata["h"] = torch.tensor([1.0, 2.0, 4.0])
>>> for nf in dgl.contrib.sampling.NeighborSampler(g, 1, expand_factor=9, num_hops=1, seed_nodes=[1]):
...     nf.copy_from_parent()
...     nf.block_compute(0, fn.copy_src("h", "m"), fn.sum("m", "h"))
...     print(nf.layer_parent_nid(0), nf.layer_nid(1), nf.layers[1].data["h"])
tensor([0, 2]) tensor([2]) tensor([5.])
"""

from functools import partial
from typing import Final

from nodeflow._base.checks import ALL
from nodeflow.compat.dgl import contrib, function, init, nodeflow, random, utils
from nodeflow.compat.dgl._elsewhere import refuse
from nodeflow.compat.dgl._functions import EdgeBatch, NodeBatch
from nodeflow.compat.dgl._graph import DGLGraph
from nodeflow.compat.dgl.nodeflow import NodeFlow

__all__ = [
    "ALL",
    "DGLGraph",
    "EdgeBatch",
    "NodeBatch",
    "NodeFlow",
    "contrib",
    "function",
    "init",
    "nodeflow",
    "random",
    "utils",
]

__version__: Final = "0.4.3"
"""The version of DGL whose NodeFlow code runs here."""
__getattr__ = partial(refuse, "dgl")
