"""Compiled models: the same values, and no compilation per batch."""

from __future__ import annotations

import pytest
import torch

from nodeflow import Graph, NeighborSampler
from nodeflow.nn import GAT, GraphSAGE

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
@pytest.mark.parametrize(("kind", "num_layers"), [(GraphSAGE, 2), (GAT, 1)])
def test_batches_of_all_sizes_share_what_was_compiled(kind: type, num_layers: int) -> None:
    from torch._dynamo.testing import CompileCounter

    torch.manual_seed(0)
    torch.compiler.reset()
    ends = torch.randint(0, 200, (2, 1000))
    graph, x = Graph.from_edges(*ends, num_nodes=200), torch.randn(200, 6)
    model, counter = kind(6, 8, 3, num_layers), CompileCounter()
    compiled = torch.compile(model, dynamic=True, backend=counter)
    sampler, graphs = NeighborSampler(graph, [4, 3][:num_layers]), []
    for size in (20, 33, 57, 41):
        batch = sampler(range(size))
        h = x[batch.front.parent_nid]
        found, expected = (torch.autograd.grad(m(batch, h).sum(), model.parameters()) for m in (compiled, model))
        assert all(map(torch.equal, found, expected))
        graphs.append(counter.frame_count)
    assert graphs[0] > 0  # something is compiled
    assert len({*graphs}) == 1  # at the first batch only
    torch.compiler.reset()
