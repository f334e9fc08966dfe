"""Calls of models and convolutions: wrapped, compiled, with layers skipped or pooled, and mistakes
in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nodeflow import FullSampler, Graph, NeighborSampler, create_node_flow, flow_from_edges
from nodeflow.nn import (
    GAT,
    GCN,
    FlowModel,
    GraphConv,
    GraphSAGE,
    IgnoredWeightWarning,
    SAGEConv,
    VRGraphSAGE,
    inference,
)


def test_a_wrapped_model_keeps_inference(graph):
    model = GraphSAGE(3, 4, 2)
    x = torch.rand(graph.num_nodes, 3)
    expected = model.inference(graph, x)
    average = torch.optim.swa_utils.AveragedModel(model)
    # with a GPU it takes models that are there
    parallel = [] if torch.cuda.is_available() else [torch.nn.DataParallel(model)]
    for wrapped in (model, *parallel, average, torch.nn.Sequential(model)):
        torch.testing.assert_close(inference(wrapped, graph, x), expected)
    torch.testing.assert_close(
        inference(average, graph, x, nodes=[2, 0], chunk_size=1), expected[[2, 0]]
    )
    with pytest.raises(ValueError, match="must hold one FlowModel, got 0 in Linear"):
        inference(torch.nn.Linear(2, 2), graph, x)


def test_flows_that_skip_layers():
    near, far = (flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1) for _ in range(2))
    first = flow_from_edges([0, 1], [0, 1], num_src=2, num_dst=2)
    batch = create_node_flow({(0, 1): first, (1, 2): near, (0, 2): far}, [[0, 1], [0, 1], [0]])
    for model in (GraphSAGE(2, 4, 3), VRGraphSAGE(2, 4, 3, estimator="ns")):
        with pytest.raises(ValueError, match=r"has a flow \(0, 2\) that skips layers"):
            model(batch, torch.ones(2, 2))
    conv = SAGEConv(2, 3)
    h = torch.rand(2, 2)
    assert torch.equal(conv(batch, (0, 2), h), conv(batch.flows[0, 2], h))
    with pytest.raises(TypeError, match=r"conv\(batch, \(i, j\), h\)"):
        conv(batch, h)


def test_a_pooled_layer_in_a_model_without_own_rows():
    first = flow_from_edges([0, 1, 2], [0, 0, 1], num_src=3, num_dst=2)
    second = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    batch = create_node_flow([first, second], [[5, 6, 7], None, [5]])
    h = torch.tensor([[1.0], [2.0], [4.0]])
    model = FlowModel(
        [GraphConv(1, 1, norm="none", self_loops=False, bias=False) for _ in range(2)],
        activation=None,
    )
    for conv in model.convs:
        torch.nn.init.ones_(conv.linear.weight)
    assert model(batch, h).tolist() == [[7.0]]
    with pytest.raises(ValueError, match=r"flow \(0, 1\) .*so it has no row of its own there"):
        GCN(1, 2, 2)(batch, h)


def test_rows_of_all_nodes_or_of_another_type_say_what_to_do(graph):
    batch = FullSampler(graph, 2)([0])
    model = GCN(2, 3, 2)
    x = torch.ones(graph.num_nodes + 1, 2)
    with pytest.raises(
        ValueError,
        match=r"one per node of the input layer.*take x\[batch\.layers\[0\]\.parent_nid\]",
    ):
        model(batch, x)
    with pytest.raises(RuntimeError) as caught:
        model(batch, x[: batch.layer_sizes[0]].double())
    assert "torch.float64 and torch.strided; weights are torch.float32" in caught.value.__notes__[0]
    with pytest.raises(
        TypeError, match=r"activation must be a function, such as torch\.relu.*'relu'"
    ):
        GCN(2, 3, 2, activation="relu")


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("order", ["aggregate", "transform"])
def test_a_wrong_width_names_the_widths_of_the_user(graph, order):
    batch = FullSampler(graph, 2)([0])
    x = torch.ones(batch.layer_sizes[0], 5)
    for model in (GraphSAGE(3, 4, 2, order=order), GCN(3, 4, 2, order=order), GAT(3, 4, 2)):
        for rows in (x, x.to_sparse_csr()):
            with pytest.raises(
                ValueError,
                match=r"Conv takes rows of width 3 \(in_features\), got shape \(\d+, 5\)",
            ):
                model(batch, rows)


# ---- compiled: the same values, and no compilation per batch


@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_batches_of_all_sizes_share_what_was_compiled():
    compiled_parts: list[set[str]] = []

    def backend(module: Any, _: Any) -> Callable[..., Any]:
        compiled_parts.append({str(node.target) for node in module.graph.nodes})
        return module.forward

    torch.manual_seed(0)
    torch.compiler.reset()
    ends = torch.randint(0, 200, (2, 1000))
    graph = Graph.from_edges(*ends, num_nodes=200)
    x = torch.randn(200, 6)
    model = GraphSAGE(6, 8, 3, num_layers=2, norm="layer")
    compiled = torch.compile(model, dynamic=True, backend=backend)
    sampler = NeighborSampler(graph, [4, 3])
    counts = []
    for size in (20, 33, 57, 41):
        batch = sampler(range(size))
        h = x[batch.front.parent_nid]
        found, expected = (
            torch.autograd.grad(m(batch, h).sum(), model.parameters()) for m in (compiled, model)
        )
        assert all(map(torch.equal, found, expected))
        counts.append(len(compiled_parts))
    assert counts == [counts[0]] * 4  # at the first batch only
    names = " ".join(set().union(*compiled_parts))
    assert "layer_norm" in names
    assert "linear" not in names  # linear convolutions, and sums over edges, are called as they are
    torch.compiler.reset()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_compiled_models_warn_of_weights_and_keep_inference():
    torch.compiler.reset()
    graph = Graph.from_edges(
        [1, 2, 3, 0], [0, 0, 0, 1], edata={"p": torch.tensor([0.5, 0.3, 0.2, 1.0])}
    )
    model = GraphSAGE(2, 4, 3)
    x = torch.rand(4, 2)
    compiled = torch.compile(model, dynamic=True, backend="eager")
    batch = NeighborSampler(graph, [2, 2], prob="p")([0])
    with pytest.warns(IgnoredWeightWarning, match="GraphSAGE\\(weighted=True\\)"):
        compiled(batch, x[batch.front.parent_nid])
    torch.testing.assert_close(inference(compiled, graph, x), model.inference(graph, x))
    torch.compiler.reset()
