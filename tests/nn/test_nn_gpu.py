"""The same layers, models and full passes on a GPU as on the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
from _support import edge_reference
from _support.nn_reference import LINEAR, make_conv, values
from _support.typed_nn import RELATIONS, typed_graph

from nodeflow import Graph, NeighborSampler
from nodeflow.nn import (
    GAT,
    GCN,
    FlowConv,
    GATConv,
    GraphSAGE,
    HGTConv,
    RGCNConv,
    SAGEConv,
    TypedConv,
    TypedLinear,
    TypedModel,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]


def example(num_seeds: int = 30):
    ends = torch.randint(60, (2, 400), generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edges(*ends, num_nodes=60)
    graph.edata["feat"] = values((400, 2))
    graph.edata["type"] = torch.arange(400) % 3
    batch = NeighborSampler(graph, [4, 4])(range(num_seeds))
    batch.copy_from_parent(edata=["feat", "type"])
    return graph, batch


def same(conv: FlowConv) -> None:
    _, batch = example()
    h = values((batch.layer_sizes[0], 3))
    results = []
    for device in ("cpu", "cuda"):
        here = copy.deepcopy(conv).to(device)
        rows = h.detach().to(device).requires_grad_()
        out = here(batch.to(device), 0, rows)
        out.square().sum().backward()
        results.append(
            [out.detach().cpu(), rows.grad.cpu(), *(p.grad.cpu() for p in here.parameters())]
        )
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("order", ["aggregate", "transform"])
def test_linear_convolutions(kind, order):
    same(make_conv(kind, 3, 5, order=order))


@pytest.mark.parametrize("name", edge_reference.CONVS)
def test_other_convolutions(name):
    same(edge_reference.make(name, 3, 5))


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GAT])
def test_models_and_full_passes(kind):
    graph, batch = example()
    model = kind(3, 8, 4, num_layers=2, norm="layer", residual=True, jumping="cat").double()
    x = values((60, 3))
    h = x[batch.front.parent_nid]
    expected = (
        model(batch, h),
        model.inference(graph, x, chunk_size=17),
        model.inference(graph, x, nodes=[5, 2, 5]),
    )
    model.cuda()
    x = x.cuda()
    found = [model(batch.to("cuda"), h.cuda()), model.inference(graph, x, chunk_size=17)]
    found.append(model.inference(graph, x, nodes=[5, 2, 5]))
    for one, other in zip(found, expected, strict=True):
        assert one.is_cuda
        torch.testing.assert_close(one.cpu(), other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["sage", "gat", "rgcn", "hgt"])
def test_layers_of_several_types(kind):
    graph = typed_graph()
    graph.edata["age"] = torch.rand(graph.num_edges, dtype=torch.float64)
    makers = {
        "sage": lambda: TypedConv({relation: SAGEConv(6, 6) for relation in RELATIONS}),
        "gat": lambda: TypedConv({relation: GATConv(6, 6) for relation in RELATIONS}, "max"),
        "rgcn": lambda: RGCNConv(6, 6, graph.schema),
        "hgt": lambda: HGTConv(6, 6, graph.schema, heads=3, edge_time="age"),
    }
    widths = {"author": torch.nn.Embedding(7, 6), "type": 9, "paper.x": 10, "empty": 11}
    model = TypedModel(TypedLinear(widths, 6), [makers[kind](), makers[kind]()], 3).double()
    batch = NeighborSampler(graph, [3, 3])([12, 3, 0, 8, 9, 14])
    results = []
    batch.copy_from_parent(["x"], ["age"])
    for device in ("cpu", "cuda"):
        here = copy.deepcopy(model).to(device)
        out = here(batch.to(device))
        out.square().sum().backward()
        rows = [
            here.inference(graph).cpu(),
            here.inference(graph, nodes=[3, 12], chunk_size=1).cpu(),
        ]
        results.append(
            [
                out.detach().cpu(),
                *rows,
                *(p.grad.cpu() for p in here.parameters() if p.grad is not None),
            ]
        )
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-8)
