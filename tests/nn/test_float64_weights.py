"""Estimator weights of a float64 edge column in models of float32: used there, or an error that says how."""

from __future__ import annotations

import pytest
import torch
from _support.graphs import random_graph

from nodeflow import Flow, Graph, NeighborSampler
from nodeflow.control_variates import ControlVariateSampler, History
from nodeflow.nn import GCN, VRGCN, FlowModel, GraphSAGE, VRGraphSAGE, VRModel
from nodeflow.transform import degrees, edge_norm


@pytest.fixture
def graph() -> Graph:
    graph = random_graph(0, 20, 100)
    graph.edata["exact"] = edge_norm(graph, "right").double()
    graph.ndata.update(degrees(graph))
    graph.edata["single"] = graph.edata["exact"].float()
    return graph


@pytest.mark.parametrize("estimator", ["none", "ns", "cv", "cvd"])
@pytest.mark.parametrize("aggregated", ["on demand", "stored"])
def test_models_of_float32_use_them(estimator: str, aggregated: str, graph: Graph) -> None:
    torch.manual_seed(0)
    x = torch.randn(20, 4)
    models: list[FlowModel] = [GraphSAGE(4, 5, 3, 2, weighted=True), GCN(4, 5, 3, 2, degrees="parent")]
    if estimator != "none":
        models = [kind(4, 5, 3, num_layers=2, estimator=estimator).eval() for kind in (VRGCN, VRGraphSAGE)]
    for model in models:
        outputs = []
        for column in ("exact", "single"):
            sampler = NeighborSampler(graph, [2, 2], weight=column)
            if isinstance(model, VRModel):
                history = History(graph, {0: 4, 1: 5}, weight=column, aggregated=aggregated)
                sampler = ControlVariateSampler(graph, [2, 2], history)
            batch = sampler(range(20))
            batch.copy_from_parent()
            out = model(batch, x[batch.front.parent_nid])
            assert out.dtype == torch.float32
            out.sum().backward()
            outputs.append((out, model.inference(graph, x, weight=column)))
        torch.testing.assert_close(*outputs)


def test_a_layer_of_ones_own_is_told_what_to_do(graph: Graph) -> None:
    class Mean(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, flow: Flow, h: torch.Tensor) -> torch.Tensor:
            return self.linear(flow.aggregate(h, "sum", weight=flow.weight))

    model, x = FlowModel([Mean()]), torch.ones(graph.num_nodes, 2)
    batch = NeighborSampler(graph, [2], weight="exact")([3])
    for call in (lambda: model(batch, x[batch.front.parent_nid]), lambda: model.inference(graph, x, weight="exact")):
        with pytest.raises(RuntimeError, match="same dtype") as caught:
            call()
        assert any("takes flow.weight.to(h.dtype)" in note for note in caught.value.__notes__)
    assert model.inference(graph, x, weight="single").dtype == torch.float32
