"""What the tests of NodeFlowLoader share: a graph with columns, a loader of it, and fingerprints of
what it gives.
"""

from __future__ import annotations

import torch

from _support import sampler_reference
from _support.sampler_families import fingerprint as fingerprint
from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader


def random_graph() -> Graph:
    """That of the sampler's tests, with columns."""
    graph = sampler_reference.random_graph(0, nodes=60, edges=500)
    graph.ndata["x"] = torch.arange(60 * 2.0).view(60, 2)
    graph.ndata["label"] = torch.arange(60) % 3
    graph.edata["w"] = torch.arange(500) * 0.5
    return graph


def make(
    seeds=range(60), batch_size: int = 16, graph: Graph | None = None, **options
) -> NodeFlowLoader:
    return NodeFlowLoader(
        NeighborSampler(graph or random_graph(), [2, 3]), seeds, batch_size, **options
    )


def epoch(loader: NodeFlowLoader) -> list[str]:
    return [fingerprint(batch) for batch in loader]


def seeds_of(batch: NodeFlow) -> list[int]:
    return batch.seeds[batch.seed_index].tolist()
