"""What the tests of several processes share: the loaders of all ranks in one process, and the rows
of their batches.
"""

from __future__ import annotations

from typing import Any

import torch

from _support.sampler_families import FAMILIES, NODES
from nodeflow import ControlVariateSampler, Graph, History, NodeFlow, NodeFlowLoader
from nodeflow.sampling import LaborSampler, NeighborSampler, TemporalNeighborSampler
from nodeflow.sampling.base import SamplerBase

SEEDS = [5, 11, 30, 2, 17, 44, 8, 23, 59, 51, 36, 0, 41]
TIMES = [10, 10, 4, 19, 7, 4, 12, 19, 3, 10, 15, 6, 8]

UNION = [
    "full", "neighbor", "neighbor, replace", "neighbor, disjoint", "neighbor, prob", "neighbor, "
                                                                                     "prob, replace",
    "neighbor, filter", "neighbor, types", "bernoulli", "bernoulli, rates", "labor", "labor, sequential",
    "labor, hajek", "labor, dependent layers", "fastgcn", "fastgcn, poisson", "random walk", "temporal",
    "temporal, recent", "shadow", "link",
]  # fmt: skip
"""Families whose shares, put together, are the batch of a single process, edge by edge."""

MORE: dict[str, Any] = {
    "labor, several batches": lambda g: LaborSampler(g, [2, 3], batch_dependency=4),
    "neighbor, disjoint, reuse": lambda g: NeighborSampler(g, [2, 3], disjoint=True, reuse=True),
    "control variates": lambda g: ControlVariateSampler(History(g, {1: 2}), [2, 3]),
    "temporal, since": lambda g: TemporalNeighborSampler(g, [2, 3], since=6, replace=True),
}
"""Further samplers whose shares are so."""


def sampler_of(name: str, graph: Graph) -> SamplerBase:
    made: SamplerBase = (FAMILIES | MORE)[name](graph)
    return made


def loaders(
    sampler: SamplerBase, world_size: int, total: int = 12, **options: Any
) -> list[NodeFlowLoader]:
    """A loader for each of the processes, ``total`` seeds a step; one alone is made without a
    rank.
    """
    if world_size == 1:
        return [NodeFlowLoader(sampler, batch_size=total, **options)]
    return [
        NodeFlowLoader(
            sampler, batch_size=total // world_size, rank=rank, world_size=world_size, **options
        )
        for rank in range(world_size)
    ]


def options_of(name: str, sampler: SamplerBase) -> dict[str, Any]:
    """Seeds of a loader for a family, and times."""
    seeds = [seed % sampler.num_seeds for seed in SEEDS]
    return {"seeds": seeds, **({"times": TIMES} if sampler.takes_times else {})}


def rows_of(batch: NodeFlow) -> dict[tuple[Any, ...], list[Any]]:
    """The edges of every row, as (edge id, source, weight), by layer, parent node and context.

    A context is named by what it stands for: the time of its seeds, or its seed.
    """
    found: dict[tuple[Any, ...], list[Any]] = {key: [] for key in _keys(batch, 0)}
    for i, flow in enumerate(batch.flows):
        src = flow.src_layer.parent_nid[flow.indices]
        edges = list(zip(flow.parent_eid.tolist(), src.tolist(), flow.weight.tolist(), strict=True))
        ends = flow.indptr.tolist()
        for row, key in enumerate(_keys(batch, i + 1)):
            assert key not in found
            found[key] = edges[ends[row] : ends[row + 1]]
    return found


def _keys(batch: NodeFlow, i: int) -> list[tuple[Any, ...]]:
    layer = batch.layers[i]
    apart = [None] * len(batch.layers[i])
    if layer.context is not None and "time" in layer.data:
        apart = layer.data["time"].tolist()
    elif layer.context is not None and batch.back.context is not None:
        seed = torch.full((NODES,), -1)
        seed[batch.back.context] = batch.back.parent_nid
        apart = seed[layer.context].tolist()
    return [
        (i, node, context) for node, context in zip(layer.parent_nid.tolist(), apart, strict=True)
    ]


def joined(shares: list[NodeFlow]) -> dict[tuple[Any, ...], list[Any]]:
    """The rows of all shares of a step; a row that two of them have must be the same in both."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for batch in shares:
        for key, edges in rows_of(batch).items():
            assert found.setdefault(key, edges) == edges, key
    return found
