"""The NodeFlow of a whole graph."""

from __future__ import annotations

from nodeflow.compat.dgl._graph import DGLGraph
from nodeflow.compat.dgl._nodeflow import NodeFlow
from nodeflow.compat.dgl._samplers import NeighborSampler


def create_full_nodeflow(g: DGLGraph, num_layers: int, add_self_loop: bool = False) -> NodeFlow:
    """Return the NodeFlow of all nodes as seeds, with all their in-edges, of ``num_layers`` blocks.

    A layer other than the last holds the nodes that have an edge into the next layer. Raises ValueError for a graph
    without nodes.

    >>> from nodeflow.compat import dgl
    >>> nf = create_full_nodeflow(dgl.DGLGraph([(0, 1), (1, 2)]), 2)
    >>> [nf.layer_parent_nid(i).tolist() for i in range(3)]
    [[0], [0, 1], [0, 1, 2]]
    """
    if g.number_of_nodes() == 0:
        raise ValueError("a graph without nodes has no NodeFlow")
    return next(iter(NeighborSampler(g, g.number_of_nodes(), -1, num_layers, add_self_loop=add_self_loop)))
