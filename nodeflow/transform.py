"""New graphs from a graph: reversed edges, added reverse edges, added self-loops.

Columns that need no new rows are shared with the graph, not copied.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nodeflow.features import join_rows, take_rows, zero_rows
from nodeflow.frame import Frame
from nodeflow.graph import Graph


def reverse(graph: Graph) -> Graph:
    """Return the graph with every edge turned round; edge ids, node and edge columns stay.

    >>> reverse(Graph.from_edges([0], [1])).edges()
    (tensor([1]), tensor([0]))
    """
    src, dst = graph.edges()
    return Graph.from_edges(dst, src, num_nodes=graph.num_nodes, ndata=graph.ndata, edata=graph.edata)


def add_reverse_edges(graph: Graph, *, mark: str | None = None) -> Graph:
    """Return the graph with the reverse of every edge added, so that messages go both ways.

    The reverse of edge ``e`` is edge ``num_edges + e`` and has the same row in every edge column. Self-loops get no
    reverse. Where both directions exist already, both get their reverse: such a pair is then joined by two edges each
    way; ``mean`` over neighbours counts it twice.

    Args:
        mark: name of a new int8 edge column that is 0 for an edge of ``graph`` and 1 for an added one.

    Raises ValueError when the column ``mark`` exists.

    >>> add_reverse_edges(Graph.from_edges([0, 2], [1, 2])).edges()
    (tensor([0, 2, 1]), tensor([1, 2, 0]))
    """
    src, dst = graph.edges()
    added = (src != dst).nonzero().squeeze(1)
    return _with_edges(graph, dst[added], src[added], added, mark)


def add_self_loops(graph: Graph, *, mark: str | None = None) -> Graph:
    """Return the graph with an edge from every node to itself added, also where it has one.

    The loop of node ``v`` is edge ``num_edges + v``; its rows of edge columns are zeros.

    Args:
        mark: name of a new int8 edge column that is 0 for an edge of ``graph`` and 1 for an added one.

    Raises ValueError when the column ``mark`` exists.
    """
    nodes = torch.from_numpy(np.arange(graph.num_nodes))
    return _with_edges(graph, nodes, nodes, None, mark)


def is_symmetric(graph: Graph) -> bool:
    """Whether every edge u -> v comes with an edge v -> u (as often, where edges are repeated).

    >>> is_symmetric(Graph.from_edges([0, 1], [1, 0])), is_symmetric(Graph.from_edges([0], [1]))
    (True, False)
    """
    src, dst = graph.edges()
    there, back = np.lexsort((src.numpy(), dst.numpy())), np.lexsort((dst.numpy(), src.numpy()))
    return torch.equal(src[there], dst[back]) and torch.equal(dst[there], src[back])


def _with_edges(graph: Graph, src: Tensor, dst: Tensor, like: Tensor | None, mark: str | None) -> Graph:
    """Add edges whose columns are the rows ``like`` of the graph's, or zeros."""
    if mark is not None and mark in graph.edata:
        raise ValueError(f"the graph has an edge column {mark!r} already; choose another name for mark")
    old_src, old_dst = graph.edges()
    columns = Frame(graph.num_edges + len(src))
    for name, column in graph.edata.items():
        more = zero_rows(column, len(src)) if like is None else take_rows(column, like)
        columns[name] = join_rows(column, more)
    if mark is not None:
        columns[mark] = torch.cat(
            [src.new_zeros(graph.num_edges, dtype=torch.int8), src.new_ones(len(src), dtype=torch.int8)]
        )
    ends = torch.cat([old_src, src]), torch.cat([old_dst, dst])
    return Graph.from_edges(*ends, num_nodes=graph.num_nodes, ndata=graph.ndata, edata=columns)
