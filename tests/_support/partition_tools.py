"""Small graphs in folders of parts, and slow references for what a partition buffer gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from nodeflow import Graph
from nodeflow.partitions import BufferState, Partitions, write_partitions


def random_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Graph:
    """A graph with repeats and self-loops, columns of several types, and rows that say which node they are of."""
    random = np.random.default_rng(seed)
    return Graph.from_edges(
        random.integers(0, num_nodes, num_edges),
        random.integers(0, num_nodes, num_edges),
        num_nodes=num_nodes,
        ndata={
            "x": torch.arange(num_nodes * 3.0).view(num_nodes, 3),
            "half": torch.arange(num_nodes).to(torch.bfloat16),
            "label": torch.arange(num_nodes),
        },
        edata={"w": torch.arange(num_edges * 2.0).view(num_edges, 2), "kind": torch.arange(num_edges).bfloat16()},
    )


def written(graph: Graph, folder: Path, count: int, **options: Any) -> Partitions:
    return write_partitions(graph, folder, count, progress=False, **options)


def edges_among(graph: Graph, nodes: set[int]) -> list[tuple[int, int, int]]:
    """(source, destination, id) of all edges whose two ends are among ``nodes``, sorted; one by one."""
    src, dst = (end.tolist() for end in graph.edges())
    return sorted((u, v, e) for e, (u, v) in enumerate(zip(src, dst, strict=True)) if u in nodes and v in nodes)


def edges_of_state(state: BufferState) -> list[tuple[int, int, int]]:
    """The same of the graph of a state, in parent ids, sorted."""
    src, dst = (state.nodes[end].tolist() for end in state.graph.edges())
    eid = state.parent_edges(torch.arange(state.graph.num_edges)).tolist()
    return sorted(zip(src, dst, eid, strict=True))
