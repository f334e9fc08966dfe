"""Graphs that tests share, and the ends of their edges as pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import Frame, Graph


def random_graph(seed: int = 0, nodes: int = 40, edges: int = 200) -> Graph:
    """A multigraph with self-loops, repeated edges and isolated nodes."""
    rng = np.random.default_rng(seed)
    return Graph.from_edges(
        rng.integers(nodes, size=edges), rng.integers(nodes, size=edges), num_nodes=nodes
    )


def star(degree: int, hubs: int = 1) -> Graph:
    """Nodes 0..hubs-1, each with in-edges from the same ``degree`` other nodes."""
    src = np.tile(np.arange(hubs, hubs + degree), hubs)
    return Graph.from_edges(src, np.repeat(np.arange(hubs), degree), num_nodes=hubs + degree)


TYPES = {"a": 7, "b": 1, "empty": 0, "c": 12}
RELATIONS = [
    ("a", "x", "c"),
    ("c", "y", "c"),
    ("b", "x", "a"),
    ("empty", "z", "c"),
    ("c", "w", "b"),
    ("a", "y", "c"),
]


def typed_graph(seed: int, edges: int = 60) -> Graph:
    rng = np.random.default_rng(seed)
    parts = {}
    for relation in RELATIONS:
        sizes = TYPES[relation[0]], TYPES[relation[2]]
        count = edges if min(sizes) else 0
        parts[relation] = tuple(rng.integers(0, max(size, 1), count) for size in sizes)
    graph = Graph.typed(TYPES, parts)
    graph.edata["w"] = torch.from_numpy(
        rng.random(graph.num_edges) * (rng.random(graph.num_edges) < 0.8)
    )
    return graph


def typed_papers() -> Graph:
    """Authors, papers and venues, with reverses."""
    return Graph.typed(
        {"author": 5, "paper": 6, "venue": 2},
        {
            ("author", "writes", "paper"): ([0, 0, 0, 1, 2, 3, 4], [0, 0, 1, 1, 2, 3, 5]),
            ("paper", "cites", "paper"): ([1, 2, 3, 1, 0], [0, 0, 1, 1, 2]),
            ("author", "reviews", "paper"): ([0, 1, 0], [0, 1, 3]),
            ("paper", "at", "venue"): ([0, 1, 2, 3], [0, 0, 1, 1]),
        },
        reverse=True,
    )


STAMPS = torch.tensor([5, 1, 9, 3, 3, 8, 2])


def events(hubs: int = 1) -> Graph:
    """Nodes 0..hubs-1 with an in-edge from the same seven nodes, at these times: at time 5, five of
    them are past.
    """
    src = np.tile(np.arange(hubs, hubs + 7), hubs)
    edata = {
        "time": STAMPS.repeat(hubs),
        "w": torch.tensor([1.0, -2, 3, 0.5, 4, 5, 6]).repeat(hubs),
    }
    return Graph.from_edges(src, np.repeat(np.arange(hubs), 7), num_nodes=hubs + 7, edata=edata)


def ends_of(graph: Graph) -> list[tuple[int, int]]:
    """Source and destination of every edge, in the order of their ids."""
    return list(zip(*(end.tolist() for end in graph.edges()), strict=True))


def sparse_column(matrix: Any) -> Tensor:
    """Return a scipy sparse matrix as the sparse CSR tensor that a frame makes of it."""
    return Frame(matrix.shape[0], {"x": matrix})["x"]


def html(thing: Any) -> str:
    """What a notebook shows of it."""
    return thing._repr_html_()
