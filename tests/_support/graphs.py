"""Graphs that tests share, and the ends of their edges as pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from nodeflow import Frame, Graph


def random_graph(seed: int = 0, nodes: int = 40, edges: int = 200) -> Graph:
    """A multigraph with self-loops, repeated edges and isolated nodes."""
    rng = np.random.default_rng(seed)
    return Graph.from_edges(rng.integers(nodes, size=edges), rng.integers(nodes, size=edges), num_nodes=nodes)


def star(degree: int, hubs: int = 1) -> Graph:
    """Nodes 0..hubs-1, each with in-edges from the same ``degree`` other nodes."""
    src = np.tile(np.arange(hubs, hubs + degree), hubs)
    return Graph.from_edges(src, np.repeat(np.arange(hubs), degree), num_nodes=hubs + degree)


def ends_of(graph: Graph) -> list[tuple[int, int]]:
    """Source and destination of every edge, in the order of their ids."""
    return list(zip(*(end.tolist() for end in graph.edges()), strict=True))


def sparse_column(matrix: Any) -> Tensor:
    """Return a scipy sparse matrix as the sparse CSR tensor that a frame makes of it."""
    return Frame(matrix.shape[0], {"x": matrix})["x"]
