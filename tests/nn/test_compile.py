"""Compiled models: the same values, and no compilation per batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nodeflow import Graph, NeighborSampler
from nodeflow.nn import GraphSAGE, IgnoredWeightWarning, inference

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


@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_compiled_models_warn_of_weights_and_keep_inference() -> None:
    torch.compiler.reset()
    graph = Graph.from_edges([1, 2, 3, 0], [0, 0, 0, 1], edata={"p": torch.tensor([0.5, 0.3, 0.2, 1.0])})
    model, x = GraphSAGE(2, 4, 3), torch.rand(4, 2)
    compiled = torch.compile(model, dynamic=True, backend="eager")
    batch = NeighborSampler(graph, [2, 2], prob="p")([0])
    with pytest.warns(IgnoredWeightWarning, match="GraphSAGE\\(weighted=True\\)"):
        compiled(batch, x[batch.front.parent_nid])
    torch.testing.assert_close(inference(compiled, graph, x), model.inference(graph, x))
    torch.compiler.reset()
