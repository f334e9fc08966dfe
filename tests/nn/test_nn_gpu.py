"""The same layers, models and full passes on a GPU as on the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
from _support import edge_reference
from _support.nn_reference import LINEAR, make_conv, values

from nodeflow import Graph, NeighborSampler
from nodeflow.nn import GAT, GCN, FlowConv, GraphSAGE

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


def example(num_seeds: int = 30):
    ends = torch.randint(60, (2, 400), generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edges(*ends, num_nodes=60)
    graph.edata["feat"], graph.edata["type"] = values((400, 2)), torch.arange(400) % 3
    batch = NeighborSampler(graph, [4, 4])(range(num_seeds))
    batch.copy_from_parent(edata=["feat", "type"])
    return graph, batch


def same(conv: FlowConv) -> None:
    _, batch = example()
    h, results = values((batch.layer_sizes[0], 3)), []
    for device in ("cpu", "cuda"):
        here, rows = copy.deepcopy(conv).to(device), h.to(device).requires_grad_()
        out = here(batch.to(device), 0, rows)
        out.square().sum().backward()
        results.append([out.detach().cpu(), rows.grad.cpu(), *(p.grad.cpu() for p in here.parameters())])
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("order", ["aggregate", "transform"])
def test_linear_convolutions(kind: str, order: str) -> None:
    same(make_conv(kind, 3, 5, order=order))


@pytest.mark.parametrize("name", edge_reference.CONVS)
def test_other_convolutions(name: str) -> None:
    same(edge_reference.make(name, 3, 5))


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GAT])
def test_models_and_full_passes(kind: type) -> None:
    graph, batch = example()
    model, x = kind(3, 8, 4, num_layers=2, norm="layer", residual=True, jumping="cat").double(), values((60, 3))
    h = x[batch.front.parent_nid]
    expected = model(batch, h), model.inference(graph, x, chunk_size=17), model.inference(graph, x, nodes=[5, 2, 5])
    model.cuda()
    x = x.cuda()
    found = [model(batch.to("cuda"), h.cuda()), model.inference(graph, x, chunk_size=17)]
    found.append(model.inference(graph, x, nodes=[5, 2, 5]))
    for one, other in zip(found, expected, strict=True):
        assert one.is_cuda
        torch.testing.assert_close(one.cpu(), other, rtol=1e-8, atol=1e-8)
