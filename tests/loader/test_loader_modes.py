"""Batches are drawn in the caller's modes, in whatever thread."""

from __future__ import annotations

import pytest
import torch

from nodeflow import Graph, NeighborSampler, NodeFlowLoader


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_without_prefetching_batches_are_drawn_in_the_mode_of_the_caller(workers: int, mode: type) -> None:
    graph = Graph.from_edges(list(range(40)), [*range(1, 40), 0])
    graph.ndata["x"] = torch.ones(40, 2, requires_grad=True)
    loader = NodeFlowLoader(
        NeighborSampler(graph, [1]), range(40), 2, num_workers=workers, prefetch=0, ndata={0: ["x"]}
    )
    with mode():
        rows = [batch.ldata[0]["x"] for batch in loader]
    assert len(rows) == 20
    assert {x.requires_grad for x in rows} == {mode is torch.enable_grad}
    assert {x.is_inference() for x in rows} == {mode is torch.inference_mode}
