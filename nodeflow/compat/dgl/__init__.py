"""Stands in for DGL 0.4's NodeFlow code: ``import nodeflow.compat.dgl as dgl`` instead of
``import dgl``.

It has ``DGLGraph``, ``NodeFlow``, ``function``, ``contrib.sampling``, ``random`` and ``init``, with
the names, ids, orders and defaults of version 0.4. docs/coming-from-dgl.md lists what is different,
and the new way for every old name. ``DGLGraph.graph`` and ``NodeFlow.batch`` are the objects of
nodeflow behind them, for code that changes step by step.

>>> import torch
>>> import nodeflow.compat.dgl as dgl
>>> g = dgl.DGLGraph([(0, 1), (2, 1), (1, 0)], node_frame={"h": torch.tensor([1.0, 2.0, 4.0])})
>>> g.update_all(dgl.function.copy_src("h", "m"), dgl.function.sum("m", "h"))
>>> g.ndata["h"]
tensor([2., 5., 0.])
"""

from functools import partial
from typing import Final

from nodeflow._core.base.checks import ALL
from nodeflow.compat.dgl import contrib, function, init, nodeflow, random, utils
from nodeflow.compat.dgl._functions import EdgeBatch, NodeBatch
from nodeflow.compat.dgl._graph import DGLGraph
from nodeflow.compat.dgl._queries import refuse
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
