"""An independent model of DGL 0.4's NodeFlow over full neighbourhoods: plain lists. ``graph_of``
makes real graphs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

from nodeflow.compat.dgl import DGLGraph


class Edges(NamedTuple):
    """The edges of a graph by id, and its number of nodes."""

    src: list[int]
    dst: list[int]
    num_nodes: int


class OldNodeFlow(NamedTuple):
    """Parent ids of every layer; of every block its edges
    ``(source, destination, parent edge id)``.

    The ends are ids that are consecutive over all layers.
    """

    layers: list[list[int]]
    blocks: list[list[tuple[int, int, int]]]


@st.composite
def edge_lists(draw: st.DrawFn) -> Edges:
    """Graphs with repeated edges, self-loops and nodes without edges."""
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=14))
    return Edges([u for u, _ in pairs], [v for _, v in pairs], n)


def graph_of(edges: Edges) -> DGLGraph:
    """Return a graph with the columns ``x`` of nodes and ``w`` of edges."""
    g = DGLGraph()
    g.add_nodes(edges.num_nodes)
    g.add_edges(edges.src, edges.dst)
    g.ndata["x"] = torch.arange(2.0 * edges.num_nodes).view(-1, 2)
    g.edata["w"] = torch.arange(1.0, len(edges.src) + 1)
    return g.readonly()


def full_nodeflow(
    edges: Edges, seeds: list[int], num_hops: int, direction: str, add_self_loop: bool
) -> OldNodeFlow:
    """Return the NodeFlow of all neighbours of the seeds."""
    near, far = (edges.src, edges.dst) if direction == "in" else (edges.dst, edges.src)
    layers = [list(dict.fromkeys(seeds))]
    drawn = []
    for _ in range(num_hops):
        block = []
        for node in layers[0]:
            found = [(near[e], node, e) for e in range(len(near)) if far[e] == node]
            if add_self_loop and all(u != node for u, *_ in found):
                found.append((node, node, -1))
            block += found
        layers.insert(0, sorted({u for u, *_ in block}))
        drawn.insert(0, block)
    starts = np.cumsum([0, *map(len, layers)])
    blocks = []
    for i, block in enumerate(drawn):
        at = [
            {node: int(starts[k]) + row for row, node in enumerate(layers[k])} for k in (i, i + 1)
        ]
        blocks.append([(at[0][u], at[1][v], e) for u, v, e in block])
    return OldNodeFlow(layers, blocks)


def summed(edges: list[tuple[int, int]], values: np.ndarray, num_out: int) -> np.ndarray:
    """Return for every destination the sum of the rows of the sources, through a dense matrix."""
    matrix = np.zeros((num_out, len(values)))
    for u, v in edges:
        matrix[v, u] += 1
    return matrix @ values
