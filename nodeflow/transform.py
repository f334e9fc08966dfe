"""New graphs from a graph: reversed edges, added reverse edges, added self-loops; and its normalised edge weights.

Columns that need no new rows are shared with the graph, not copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from nodeflow._rows.rows import join_rows, take_rows, zero_rows
from nodeflow.graph import Frame, Graph
from nodeflow.graph._columns import edge_mask, edge_numbers

__all__ = [
    "add_reverse_edges",
    "add_self_loops",
    "degrees",
    "edge_norm",
    "is_symmetric",
    "reverse",
]

IN_DEGREE: Final = "in_degree"
"""Name of the node column with the degree of a destination: see ``degrees``."""
OUT_DEGREE: Final = "out_degree"
"""Name of the node column with the degree of a source."""
DEGREES: Final = (IN_DEGREE, OUT_DEGREE)
"""Both names."""


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


def add_self_loops(graph: Graph, *, mark: str | None = None, edata: Mapping[str, float] | None = None) -> Graph:
    """Return the graph with an edge from every node to itself added, also where it has one.

    The loop of node ``v`` is edge ``num_edges + v``; its rows of edge columns are zeros, or what ``edata`` says.

    Args:
        mark: name of a new int8 edge column that is 0 for an edge of ``graph`` and 1 for an added one.
        edata: for names of edge columns the number that loops have there, such as a type of their own.

    Raises ValueError when the column ``mark`` exists, KeyError for a name in ``edata`` that is no edge column.

    >>> graph = Graph.from_edges([0], [1], edata={"kind": torch.tensor([0])})
    >>> add_self_loops(graph, edata={"kind": 1}).edata["kind"]
    tensor([0, 1, 1])
    """
    nodes = torch.from_numpy(np.arange(graph.num_nodes))
    made = _with_edges(graph, nodes, nodes, None, mark)
    for name, number in (edata or {}).items():
        if name not in graph.edata:
            raise KeyError(f"edata: the graph has no edge column {name!r}; it has {', '.join(graph.edata) or 'none'}")
        made.edata[name][graph.num_edges :] = number  # a new column: it has new rows
    return made


def edge_norm(graph: Graph, norm: str = "both", *, direction: str = "in", edge_filter: Any = None) -> Tensor:
    """Return the entries of the normalised adjacency as an edge column, float32 ``[num_edges]``, by edge id.

    For an edge u -> v with d_out(u) the number of edges that leave u, and d_in(v) the number that enter v:

    - "both": 1 / sqrt(d_out(u) d_in(v)), as in GCN (Kipf, Welling 2017; they add self-loops first: ``add_self_loops``);
    - "right": 1 / d_in(v), so that the edges that enter a node add up to 1: a mean over its in-neighbours;
    - "left": 1 / d_out(u), so that the edges that leave a node add up to 1.

    Repeated edges count one by one.

    Args:
        graph: the graph.
        norm: "both", "right" or "left".
        direction: "out" is for samplers that walk along out-edges, where v is the source of the sum and u its end: it
            swaps "right" and "left".
        edge_filter: that of the sampler (see ``Sampler``): edges that it leaves out count in no degree, and have 0.

    Raises ValueError for another ``norm`` or ``direction``, and what a sampler raises for such a filter.

    >>> graph = Graph.from_edges([0, 1, 0], [2, 2, 1])
    >>> edge_norm(graph, "right")
    tensor([0.5000, 0.5000, 1.0000])
    >>> graph.edata["p"] = edge_norm(graph)  # for weight="p" of a sampler
    """
    if norm not in ("both", "right", "left"):
        raise ValueError(f"norm must be 'both', 'right' or 'left', got {norm!r}")
    if direction not in ("in", "out"):
        raise ValueError(f"direction must be 'in' or 'out', got {direction!r}")
    src, dst = graph.edges()
    mask = edge_mask(graph, edge_filter)
    kept = torch.from_numpy(np.ones(graph.num_edges) if mask is None else mask.mask.astype(np.float64))
    leaving, entering = (torch.bincount(end, kept, graph.num_nodes)[end] for end in (src, dst))
    if norm == "both":
        found = (leaving * entering).rsqrt()
    else:
        found = (entering if (norm == "right") == (direction == "in") else leaving).reciprocal()
    return torch.where(kept > 0, found, 0.0).float()


def degrees(
    graph: Graph, *, weight: str | None = None, direction: str = "in", edge_filter: Any = None
) -> dict[str, Tensor]:
    """Return the node columns "in_degree" and "out_degree", float32 ``[num_nodes]`` each, by node id.

    They are what convolutions with ``degrees="parent"`` divide by: in_degree is the number of edges over which a node
    sums as a destination, out_degree the number of sums that a node is in as a source. Set them once, and let batches
    copy them: ``ndata=["in_degree", "out_degree"]`` of a loader, or ``batch.copy_from_parent``.

    Args:
        graph: the graph.
        weight: for samplers with this ``weight``: an edge counts by its number in this column, not by 1.
        direction: that of the sampler; with "out" the sums are over out-edges, which swaps the columns.
        edge_filter: that of the sampler (see ``Sampler``): edges that it leaves out do not count.

    Raises ValueError for another ``direction``, KeyError for an unknown column, and what a sampler raises for such a
    filter or weight.

    >>> graph = Graph.from_edges([0, 1, 0], [2, 2, 1])
    >>> graph.ndata.update(degrees(graph))
    >>> graph.ndata["in_degree"], graph.ndata["out_degree"]
    (tensor([0., 1., 2.]), tensor([2., 1., 0.]))
    """
    if direction not in ("in", "out"):
        raise ValueError(f"direction must be 'in' or 'out', got {direction!r}")
    mask = edge_mask(graph, edge_filter)
    counts = np.ones(graph.num_edges) if weight is None else edge_numbers(graph, weight, "weight").astype(np.float64)
    if mask is not None:
        counts = np.where(mask.mask, counts, 0)
    src, dst = graph.edges()
    ends = (dst, src) if direction == "in" else (src, dst)
    found = (np.bincount(end.numpy(), counts, graph.num_nodes) for end in ends)
    return {name: torch.from_numpy(column.astype(np.float32)) for name, column in zip(DEGREES, found, strict=True)}


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
