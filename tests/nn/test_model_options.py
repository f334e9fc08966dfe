"""Normalisation, residual connections, jumping knowledge, and inference of all nodes and of
some.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from _support.edge_reference import EDGE_WIDTH, RELATIONS, reference
from _support.effort import examples
from _support.nn_reference import (
    as_csr,
    assert_near,
    dense,
    dense_gcn,
    dense_sage,
    gradients,
    values,
)
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import (
    Flow,
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.nn import (
    GAT,
    GCN,
    RGCN,
    VRGCN,
    EdgeConv,
    FlowModel,
    GATv2,
    GraphConv,
    GraphSAGE,
    SAGEConv,
)
from nodeflow.propagation import Propagation
from nodeflow.testing import graphs, seeds

WIDTHS = (3, 4, 2)
MODELS: dict[str, Callable[..., FlowModel]] = {
    "sage": GraphSAGE,
    "gcn": GCN,
    "gat": lambda *sizes, **o: GAT(*sizes, heads=2, edge_features=EDGE_WIDTH, **o),
    "gat2": lambda *sizes, **o: GATv2(*sizes, heads=2, **o),
    "rgcn": lambda *sizes, **o: RGCN(*sizes, num_relations=RELATIONS, **o),
    "rgcn bases": lambda *sizes, **o: RGCN(*sizes, num_relations=RELATIONS, num_bases=2, **o),
}
OPTIONS: list[dict[str, Any]] = [
    {"norm": norm, "residual": residual, "jumping": jumping}
    for norm, residual, jumping in itertools.product(
        [None, "batch", "layer"], [False, True], [None, "cat", "max"]
    )
]
pytestmark = pytest.mark.usefixtures("one_thread")


def make(
    name: str, num_layers: int, options: dict[str, Any], sizes: tuple[int, int, int] = WIDTHS
) -> FlowModel:
    """A model in evaluation mode whose normalisation does something."""
    torch.manual_seed(num_layers)
    model = MODELS[name](*sizes, num_layers, dropout=0.5, **options).double().eval()
    for key, value in model.state_dict().items():
        if "norms" in key and value.is_floating_point():
            value.uniform_(0.5, 2)
    return model


def with_edges(graph: Graph) -> Graph:
    generator = torch.Generator().manual_seed(0)
    graph.edata["type"] = torch.randint(RELATIONS, (graph.num_edges,), generator=generator)
    graph.edata["feat"] = values((graph.num_edges, EDGE_WIDTH), 3)
    return graph


def filled(batch: NodeFlow) -> NodeFlow:
    batch.copy_from_parent(None, {i: ["type", "feat"] for i in range(batch.num_flows)})
    return batch


def dense_outputs(model: FlowModel, graph: Graph, h: Tensor) -> Tensor:
    """What the options say, over the whole graph."""
    flow = filled(create_full_node_flow(graph, 1)).flows[0]
    count = len(model.convs)
    kept = []

    def enters(i: int, h: Tensor) -> Tensor:
        if model.norms is not None:
            norm = model.norms[i - 1]
            if isinstance(norm, torch.nn.BatchNorm1d):
                h = (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
            else:
                h = (h - h.mean(1, keepdim=True)) / (
                    h.var(1, unbiased=False, keepdim=True) + norm.eps
                ).sqrt()
            h = h * norm.weight + norm.bias
        return torch.where(h > 0, h, h.exp() - 1 if isinstance(model, GAT) else torch.zeros_like(h))

    for i, conv in enumerate(model.convs):
        x = enters(i, h) if i else h
        kept += [x] if i else []
        if isinstance(conv, (SAGEConv, GraphConv)):
            h = (dense_sage if isinstance(conv, SAGEConv) else dense_gcn)(*dense(flow), conv, x)
        else:
            h = reference(conv, flow, x)
        if model.residuals is not None:
            map_ = model.residuals[i]
            h = h + (x if x.shape[1] == h.shape[1] else x @ map_.weight.T)
    if model.jumping is None:
        return h
    rows = torch.stack([*kept, enters(count, h)])
    rows = rows.amax(0) if model.jumping.mode == "max" else rows.transpose(0, 1).flatten(1)
    return rows @ model.jumping.linear.weight.T + model.jumping.linear.bias


@pytest.mark.parametrize("name", MODELS)
@examples(15)
@given(
    graph=graphs(min_nodes=1), data=st.data(), options=st.sampled_from(OPTIONS), num_layers=st.integers(1, 3),
    rows=st.sampled_from([None, 1, 3]),
)  # fmt: skip
def test_every_way_to_compute_a_model_gives_what_its_options_say(
    name,
    graph,
    data,
    options,
    num_layers,
    rows,
):
    graph, nodes = with_edges(graph), data.draw(seeds(graph))
    model = make(name, num_layers, options)
    h = values((graph.num_nodes, WIDTHS[0]), zeros=0.3)
    expected = dense_outputs(model, graph, h)
    assert_near(model(filled(create_full_node_flow(graph, num_layers)), h), expected)
    for x in (h, as_csr(h)):
        assert_near(model.inference(graph, x, chunk_size=rows), expected.detach())
        assert_near(
            model.inference(graph, x, nodes=nodes, chunk_size=rows), expected.detach()[nodes]
        )
    for reuse in (False, True):
        batch = filled(FullSampler(graph, num_layers, reuse=reuse)(nodes))
        own = h[batch.front.parent_nid]
        for x in (own, as_csr(own)):
            assert_near(model(batch, x)[batch.seed_index], expected[nodes])


@pytest.mark.parametrize("name", ["sage", "gcn", "gat"])
@pytest.mark.parametrize("options", [OPTIONS[0], OPTIONS[4], OPTIONS[17]], ids=str)
def test_gradients_of_all_options(name, options, graph):
    model = make(name, 3, options)
    h = values((6, 3)).requires_grad_()
    batch = filled(FullSampler(with_edges(graph), 3)([3, 1]))
    inputs = [h, *model.parameters()]
    found = gradients(model(batch, h[batch.front.parent_nid]), *inputs)
    for one, other in zip(
        found, gradients(dense_outputs(model, graph, h)[[3, 1]], *inputs), strict=True
    ):
        assert_near(one, other)
    out = model(batch, as_csr(h.detach()[batch.front.parent_nid]))
    for one, other in zip(found[1:], gradients(out, *inputs[1:]), strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("jumping", ["cat", "max"])
def test_jumping_needs_the_seeds_in_every_layer(jumping, graph):
    class Sum(torch.nn.Module):
        def forward(self, flow: Flow, h: Tensor) -> Tensor:
            return flow.aggregate(h, "sum")

    model = FlowModel([Sum(), Sum()], widths=[2, 2, 2], jumping=jumping, out_features=3)
    batch = NeighborSampler(graph, [-1, -1], include_dst=False)([3])
    with pytest.raises(ValueError, match=r"not in its source layer.*include_dst=True"):
        model(batch, graph.ndata["feat"][batch.front.parent_nid])
    # nothing passes a layer
    single = FlowModel([Sum()], widths=[2, 2], jumping=jumping, out_features=3)
    batch = NeighborSampler(graph, [-1], include_dst=False)([3])
    assert single(batch, graph.ndata["feat"][batch.front.parent_nid]).shape == (1, 3)


def test_jumping_finds_seeds_that_are_no_prefix():
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    model = make("sage", 2, {"jumping": "cat"})
    h = values((4, 3))
    full = create_full_node_flow(graph, 2)
    expected = model(full, h)
    # the same flows, with destinations in another order than the sources
    turned = flow_from_edges([0, 1, 2, 3], [2, 1, 0, 3], num_src=4, num_dst=4)
    batch = create_node_flow([full.flows[0], turned], [[0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]])
    assert_near(model(batch, h).flip(0), expected)


def test_dropout_and_batch_norm_act_in_training_only(graph):
    model = make("gcn", 2, {"norm": "batch", "jumping": "max"}).train()
    batch = create_full_node_flow(graph, 2)
    h = values((6, 3))
    before = model.norms[0].running_mean.clone()
    assert not torch.equal(model(batch, h), model(batch, h))
    assert not torch.equal(model.norms[0].running_mean, before)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    out = model.inference(graph, h)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert model.norms[0].training
    assert_near(model.eval()(batch, h).detach(), out)


def test_only_what_the_nodes_depend_on_is_computed():
    line = Graph.from_edges(range(99), range(1, 100))
    seen: list[tuple[int, int]] = []

    class Noted(SAGEConv):
        def forward(self, flow: Flow, h: Tensor) -> Tensor:
            seen.append((flow.num_src, flow.num_dst))
            return super().forward(flow, h)

    model = FlowModel([Noted(1, 1), Noted(1, 1)]).double()
    h = torch.rand(100, 1, dtype=torch.float64)
    assert_near(
        model.inference(line, h, nodes=[50, 20, 50]), model.inference(line, h)[[50, 20, 50]]
    )
    assert seen[:2] == [(6, 4), (4, 2)]
    seen.clear()
    model.inference(line, h, nodes=[20, 50, 51], chunk_size=2)
    # 19 and 20, 49 and 50, 51; then the nodes themselves
    assert seen == [(3, 2), (3, 2), (2, 1), (4, 2), (2, 1)]


def test_no_nodes(graph):
    model = make("sage", 2, {})
    h = values((6, 3))
    assert model.inference(graph, h, nodes=[]).shape == (0, 2)


def test_full_flows_have_the_edge_columns_of_the_graph(graph):
    graph.edata["t"] = torch.arange(7)
    propagation = Propagation(graph.view(where=lambda edata: edata["t"] != 4))
    for flow in (
        propagation.flow(0, 6),
        propagation.flow(1, 3),
        propagation.flow_into(torch.tensor([3, 1]).numpy()),
    ):
        assert torch.equal(flow.data["t"], flow.parent_eid)
        assert torch.equal(flow.data["w"], flow.parent_eid.float())
        assert flow.data["w"] is flow.data["w"]
        assert set(flow.data) == {"t", "w"}
        assert len(flow.data) == 2
        flow.data["w"], flow.data["x"] = flow.data["w"] * 2, flow.data["t"]
        assert torch.equal(flow.data["w"], 2.0 * flow.parent_eid)
        assert set(flow.data) == {"t", "w", "x"}
        with pytest.raises(KeyError, match="no column 'z'"):
            flow.data["z"]
    assert torch.equal(graph.edata["w"], torch.arange(7.0))


def test_flows_into_some_nodes(graph):
    graph.edata["p"] = torch.arange(7.0) + 1
    propagation = Propagation(graph.view(weight="p"))
    h = values((6, 2)).float()
    nodes = torch.tensor([5, 1, 2])
    flow = propagation.flow_into(nodes.numpy())
    assert flow.dst_layer.parent_nid.tolist() == [5, 1, 2]
    assert flow.src_layer.parent_nid.tolist() == [5, 1, 2, 0]
    rows = h[flow.src_layer.parent_nid]
    torch.testing.assert_close(flow.aggregate(rows, weight=flow.weight), propagation(h, nodes))
    assert torch.equal(flow.take_dst(rows), h[nodes])
    assert propagation.needed(nodes.numpy()).tolist() == [0, 1, 2, 5]


def test_errors_say_in_which_layer(graph):
    model = FlowModel([SAGEConv(3, 4), EdgeConv(torch.nn.Linear(7, 2))])
    batch = create_full_node_flow(graph, 2)
    h = torch.ones(6, 3)
    for call in (lambda: model(batch, h), lambda: model.inference(graph, h)):
        with pytest.raises(RuntimeError) as caught:
            call()
        (note,) = caught.value.__notes__
        assert note.startswith("in convolution 1 of FlowModel, EdgeConv, on Flow(")
        assert "with rows of shape (6, 4), torch.float32" in note
    with pytest.raises(KeyError) as missing:
        make("rgcn", 2, {})(batch, values((6, 3)))
    assert "in convolution 0 of RGCN, RGCNConv" in missing.value.__notes__[-1]


def test_names_of_parameters_are_those_of_earlier_checkpoints():
    assert list(GCN(2, 3, 4).state_dict()) == [
        f"convs.{i}.linear.{part}" for i in (0, 1) for part in ("weight", "bias")
    ]
    sage = ["convs.0.neigh.weight", "convs.0.neigh.bias", "convs.0.own.weight"]
    assert list(GraphSAGE(2, 3, 4, 1).state_dict()) == sage
    added = set(GCN(2, 3, 4, norm="layer", residual=True, jumping="cat").state_dict()) - set(
        GCN(2, 3, 4).state_dict()
    )
    assert added == {
        *(f"norms.{i}.{part}" for i in (0, 1) for part in ("weight", "bias")),
        *("residuals.0.weight", "jumping.linear.weight", "jumping.linear.bias"),
    }


def test_widths_of_attention():
    model = GAT(5, 8, 3, 3, heads=4)
    assert [tuple(conv.linear.weight.shape) for conv in model.convs] == [(8, 5), (8, 8), (12, 8)]
    assert [conv.concat for conv in model.convs] == [True, True, False]
    assert [conv.concat for conv in GAT(5, 8, 3, 2, heads=4, jumping="max").convs] == [True, True]


@pytest.mark.parametrize("precomputed", [False, True])
def test_models_with_control_variates_compute_some_nodes_too(precomputed, graph):
    torch.manual_seed(0)
    graph.edata["p"] = torch.rand(7)
    model = VRGCN(2, 4, 3, num_layers=3, precomputed=precomputed)
    h = values((6, 2)).float()
    whole = model.inference(graph.view(weight="p"), h)
    for rows in (None, 2):
        some = model.inference(graph.view(weight="p"), h, nodes=[4, 1], chunk_size=rows)
        torch.testing.assert_close(some, whole[[4, 1]])


def test_the_norm_of_graph_convolutions_beside_that_between_them():
    model = GCN(2, 3, 2, num_layers=2, norm="batch", conv_norm="both", degrees="parent")
    assert [(conv.norm, conv.degrees) for conv in model.convs] == [("both", "parent")] * 2
    assert [conv.norm for conv in GCN(2, 3, 2).convs] == ["right"] * 2
