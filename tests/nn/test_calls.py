"""Calls of models and convolutions: wrapped models, flows that skip layers, pooled layers, arguments swapped."""

from __future__ import annotations

import pytest
import torch

from nodeflow import FullSampler, Graph, create_node_flow, flow_from_edges
from nodeflow.nn import GCN, FlowModel, GraphConv, GraphSAGE, SAGEConv, inference


def test_a_wrapped_model_keeps_inference(graph: Graph) -> None:
    model, x = GraphSAGE(3, 4, 2), torch.rand(graph.num_nodes, 3)
    expected = model.inference(graph, x)
    average = torch.optim.swa_utils.AveragedModel(model)
    for wrapped in (model, torch.nn.DataParallel(model), average, torch.nn.Sequential(model)):
        torch.testing.assert_close(inference(wrapped, graph, x), expected)
    torch.testing.assert_close(inference(average, graph, x, nodes=[2, 0], rows=1), expected[[2, 0]])
    with pytest.raises(ValueError, match="must hold one FlowModel, got 0 in Linear"):
        inference(torch.nn.Linear(2, 2), graph, x)


def test_flows_that_skip_layers() -> None:
    near, far = (flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1) for _ in range(2))
    first = flow_from_edges([0, 1], [0, 1], num_src=2, num_dst=2)
    batch = create_node_flow({(0, 1): first, (1, 2): near, (0, 2): far}, [[0, 1], [0, 1], [0]])
    with pytest.raises(ValueError, match=r"has a flow \(0, 2\) that skips layers"):
        GraphSAGE(2, 4, 3)(batch, torch.ones(2, 2))
    conv, h = SAGEConv(2, 3), torch.rand(2, 2)
    assert torch.equal(conv(batch, (0, 2), h), conv(batch.flows[0, 2], h))
    with pytest.raises(TypeError, match=r"conv\(batch, \(i, j\), h\)"):
        conv(batch, h)


def test_a_pooled_layer_in_a_model_without_own_rows() -> None:
    first = flow_from_edges([0, 1, 2], [0, 0, 1], num_src=3, num_dst=2)
    second = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    batch = create_node_flow([first, second], [[5, 6, 7], None, [5]])
    h = torch.tensor([[1.0], [2.0], [4.0]])
    model = FlowModel([GraphConv(1, 1, norm="none", self_loops=False, bias=False) for _ in range(2)], activation=None)
    for conv in model.convs:
        torch.nn.init.ones_(conv.linear.weight)
    assert model(batch, h).tolist() == [[7.0]]


def test_arguments_in_a_wrong_order_are_explained(graph: Graph) -> None:
    model, x = GCN(2, 3, 2), torch.ones(6, 2)
    batch = FullSampler(graph, 2)([0])
    with pytest.raises(TypeError, match=r"model\(batch, h\).*the other way round"):
        model(x, batch)
    with pytest.raises(TypeError, match=r"model\(batch, h\).*model\.inference\(graph, x\)"):
        model(graph, x)
