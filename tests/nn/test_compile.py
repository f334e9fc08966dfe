"""Compiled models: the same values, and no compilation per batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nodeflow import Graph, NeighborSampler
from nodeflow.nn import GraphSAGE

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_batches_of_all_sizes_share_what_was_compiled() -> None:
    compiled_parts: list[set[str]] = []

    def backend(module: Any, _: Any) -> Callable[..., Any]:
        compiled_parts.append({str(node.target) for node in module.graph.nodes})
        return module.forward  # type: ignore[no-any-return]

    torch.manual_seed(0)
    torch.compiler.reset()
    ends = torch.randint(0, 200, (2, 1000))
    graph, x = Graph.from_edges(*ends, num_nodes=200), torch.randn(200, 6)
    model = GraphSAGE(6, 8, 3, num_layers=2, norm="layer")
    compiled = torch.compile(model, dynamic=True, backend=backend)
    sampler, counts = NeighborSampler(graph, [4, 3]), []
    for size in (20, 33, 57, 41):
        batch = sampler(range(size))
        h = x[batch.front.parent_nid]
        found, expected = (torch.autograd.grad(m(batch, h).sum(), model.parameters()) for m in (compiled, model))
        assert all(map(torch.equal, found, expected))
        counts.append(len(compiled_parts))
    assert counts == [counts[0]] * 4  # at the first batch only
    names = " ".join(set().union(*compiled_parts))
    assert "layer_norm" in names
    assert "linear" not in names  # linear convolutions, and sums over edges, are called as they are
    torch.compiler.reset()
