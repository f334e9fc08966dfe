"""The table of docs/coming-from-dgl.md: its right side runs, and the differences that it names are there."""

import re

import pytest
import torch

from nodeflow import (
    Graph,
    LayerSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    convert,
    create_full_node_flow,
    fn,
    transform,
)
from nodeflow.flow._dgl_names import HERE


@pytest.fixture
def graph() -> Graph:
    weight = {"p": torch.tensor([1.0, 0.0, 3.0, 4.0])}
    return Graph.from_edges([1, 2, 3, 0], [0, 0, 1, 2], ndata={"h": torch.arange(8.0).view(4, 2)}, edata=weight)


def test_options_of_samplers(graph: Graph) -> None:
    assert NeighborSampler(graph, [2], prob="p")([0]).flows[0].parent_eid.tolist() == [0]  # p is 0 for the other edge
    assert NeighborSampler(graph, [2], direction="out")([0]).front.parent_nid.tolist() == [0, 2]
    looped = transform.add_self_loops(graph)
    assert NeighborSampler(looped, [9])([3]).flows[0].edges()[0].tolist() == [0]
    one = NeighborSampler(looped, [1])
    edges = {int(one([0], epoch=epoch).flows[0].parent_eid) for epoch in range(60)}
    assert edges == {0, 1, 4}  # the loop is edge 4, drawn like the others; the chance to miss one is below 1e-9
    full = create_full_node_flow(graph, 1, add_self_loop=True)
    assert full.flows[0].parent_eid.tolist().count(-1) == 4


def test_samplers_of_layers_and_of_edges(graph: Graph) -> None:
    (batch,) = NodeFlowLoader(LayerSampler(graph, [3, 2]), [0, 1], 2)
    assert batch.num_flows == 2
    (batch,) = NodeFlowLoader(LinkSampler(NeighborSampler(graph, [2]), num_negatives=3), [0, 1], 2)
    assert batch.seed_index.shape == (2, 5)


def test_an_old_name_says_the_new_one(graph: Graph) -> None:
    batch = whole(graph)
    for old, here in HERE.items():
        with pytest.raises(AttributeError, match=f"has no '{old}': it is {re.escape(here)} here"):
            getattr(batch, old)
        name = re.match(r"\w+", here)
        assert name is not None
        assert hasattr(batch, name[0])
    with pytest.raises(AttributeError, match="'NodeFlow' object has no attribute 'something_else'"):
        batch.something_else  # type: ignore[attr-defined]  # noqa: B018


def test_the_error_of_a_property_is_not_hidden(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeFlow, "device", property(lambda batch: None.missing))
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'missing'"):
        whole(graph).device  # noqa: B018


def whole(graph: Graph) -> NodeFlow:
    batch = create_full_node_flow(graph, 1)
    batch.copy_from_parent()
    return batch


def test_update_all_and_pull(graph: Graph) -> None:
    batch = whole(graph)
    batch.flow_compute(0, fn.copy_u(u="h", out="m"), fn.sum(msg="m", out="new"))
    h = graph.ndata["h"]
    expected = torch.stack([h[1] + h[2], h[3], h[0], torch.zeros(2)])
    assert torch.equal(batch.ldata[-1]["new"], expected)
    some = whole(graph)
    some.flow_compute(0, fn.copy_u("h", "m"), fn.sum("m", "new"), v=[2])
    assert torch.equal(some.ldata[-1]["new"], expected * torch.tensor([[0.0], [0.0], [1.0], [0.0]]))
    some = whole(graph)
    some.ldata[-1]["new"] = torch.full((4, 2), 7.0)  # in place of set_n_initializer
    some.flow_compute(0, fn.copy_u("h", "m"), fn.sum("m", "new"), v=[2])
    assert some.ldata[-1]["new"].tolist() == [[7.0, 7.0], [7.0, 7.0], h[0].tolist(), [7.0, 7.0]]


def test_dot_is_over_the_last_dimension(graph: Graph) -> None:
    batch = create_full_node_flow(graph, 1)
    u, v = torch.randn(4, 3, 5), torch.randn(4, 3, 5)
    batch.ldata[0]["h"], batch.ldata[1]["h"] = u, v
    batch.apply_flows(0, fn.u_dot_v("h", "h", "d"))
    src, dst = batch.flows[0].edges()
    torch.testing.assert_close(batch.fdata[0]["d"], (u[src] * v[dst]).sum(-1, keepdim=True))


def test_what_means_something_else_here(graph: Graph) -> None:
    batch = NeighborSampler(graph, [9, 9])([0])
    assert len(batch) == 3
    batch.ldata[1]["mine"] = torch.ones(batch.layer_sizes[1])
    batch.copy_from_parent()
    assert set(batch.ldata[1]) == {"mine", "h"}
    batch.apply_layers(1, lambda nodes: {"seen": torch.ones(len(nodes))}, v=[1])  # a row of the layer
    assert batch.ldata[1]["seen"].tolist() == [0.0, 1.0, 0.0]
    assert batch.map_from_parent_nid(1, [2], remap_local=True).tolist() == [2]
    with pytest.raises(TypeError, match="positional"):
        batch.map_from_parent_nid(1, [2], True)


def test_a_loader_made_anew_repeats_its_first_epoch(graph: Graph) -> None:
    def loader() -> NodeFlowLoader:
        return NodeFlowLoader(NeighborSampler(graph, [1]), range(4), 1, shuffle=True)

    def order(batches: NodeFlowLoader) -> list[int]:
        return [int(batch.seeds) for batch in batches]

    kept = loader()
    epochs = [order(kept) for _ in range(4)]
    assert epochs[0] == order(loader()) == order(loader())
    assert any(epoch != epochs[0] for epoch in epochs)


def test_numbers_of_networkx_nodes() -> None:
    networkx = pytest.importorskip("networkx")
    graph, nodes = convert.from_networkx(networkx.Graph([(2, 0), (0, 1)]))
    assert nodes == [2, 0, 1]
    assert [end.tolist() for end in graph.edges()] == [[0, 1, 1, 2], [1, 0, 2, 1]]
