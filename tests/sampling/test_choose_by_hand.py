"""``choose`` called by hand: ids that are no nodes never reach a compiled loop."""

from __future__ import annotations

import pytest
import torch

from nodeflow import Graph
from nodeflow.random import Random
from nodeflow.sampling import (
    BernoulliSampler,
    FastGCNSampler,
    FullSampler,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    RandomWalkSampler,
)
from nodeflow.sampling.base import Step

GRAPH = Graph.from_edges([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
SAMPLERS = [
    NeighborSampler(GRAPH, [2]),
    NeighborSampler(GRAPH, [2], replace=True),
    FullSampler(GRAPH, 1),
    BernoulliSampler(GRAPH, [2]),
    LaborSampler(GRAPH, [2]),
    LaborSampler(GRAPH, [2], iterations=1),
    RandomWalkSampler(GRAPH, 1),
    LadiesSampler(GRAPH, [2]),
    LadiesSampler(GRAPH, [2], draw="replacement"),
    FastGCNSampler(GRAPH, [2]),
    FastGCNSampler(GRAPH, [2], draw="poisson"),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.text())
@pytest.mark.parametrize("wrong", [4, -1, 2**40, -(2**62)])
def test_ids_that_are_no_nodes_are_refused(sampler, wrong):
    step = Step(0, Random(1), Random(2), Random(3), 0, None, None)
    assert len(sampler.choose(torch.tensor([1, 2]), step).indptr) == 3
    with pytest.raises(IndexError, match=rf"dst\[1\] is {wrong}, but node ids go from 0 to 3"):
        sampler.choose(torch.tensor([1, wrong]), step)
