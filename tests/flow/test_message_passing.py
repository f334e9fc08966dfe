"""Message passing from tensors to tensors is that on frames, and leaves frames alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nodeflow import Flow, Graph, create_node_flow, flow_from_edges, fn, message_passing
from nodeflow.nn import FlowConv, FlowModel


def example() -> tuple[Flow, Tensor, Tensor]:
    flow = flow_from_edges([0, 1, 3, 3, 2], [0, 0, 0, 1, 1], num_src=4, num_dst=3)
    flow = create_node_flow([flow], [[5, 6, 7, 8], [5, 6, 7]]).flows[0]
    generator = torch.Generator().manual_seed(0)
    flow.data["w"] = torch.rand(5, generator=generator)
    return flow, torch.rand(4, 2, generator=generator), torch.rand(3, 2, generator=generator)


def message(edges):
    return {
        "m": edges.src["h"] * edges.dst["k"] + edges.data["w"].unsqueeze(1) * edges.data["more"]
    }


def reduce(nodes):
    return {"out": nodes.mailbox["m"].median(dim=1).values}


def update(nodes):
    return {"new": nodes.data["out"] + nodes.data["k"]}


def test_columns_are_those_of_flow_compute():
    flow, h, k = example()
    more = torch.arange(10.0).view(5, 2)
    found = message_passing(
        flow, message, reduce, update, src={"h": h}, dst={"k": k}, edge={"more": more}
    )
    assert (list(flow.src_layer.data), list(flow.dst_layer.data), list(flow.data)) == (
        [],
        [],
        ["w"],
    )
    batch = create_node_flow([flow], [[5, 6, 7, 8], [5, 6, 7]])
    batch.ldata[0]["h"] = h
    batch.ldata[1]["k"] = k
    batch.fdata[0]["more"] = more
    batch.fdata[0]["w"] = flow.data["w"]
    batch.flow_compute(0, message, reduce, update)
    assert list(found) == ["out", "new"]
    for name, column in found.items():
        assert torch.equal(column, batch.ldata[1][name])


def test_built_in_functions_and_gradients():
    flow, h, _ = example()
    h.requires_grad_()
    found = message_passing(
        flow, fn.u_mul_e("h", "w", "m"), [fn.sum("m", "a"), fn.max("m", "b")], src={"h": h}
    )
    torch.testing.assert_close(found["a"], flow.aggregate(h, "sum", weight=flow.data["w"]))
    torch.testing.assert_close(found["b"], flow.aggregate(h, "max", weight=flow.data["w"]))
    (grad,) = torch.autograd.grad(found["a"].sum(), h)
    assert grad.shape == h.shape


def test_frames_of_the_layers_are_not_read():
    flow, h, _ = example()
    flow.src_layer.data["h"] = h
    with pytest.raises(KeyError, match="no column 'h'"):
        message_passing(flow, fn.copy_u("h", "m"), fn.sum("m", "out"), src={})


class Weighted(FlowConv):
    def forward(self, flow, h):
        return message_passing(flow, fn.u_mul_e("h", "w", "m"), fn.sum("m", "out"), src={"h": h})[
            "out"
        ]


@pytest.mark.parametrize("rows", [None, 1, 3])
def test_in_a_full_pass_edges_have_the_columns_of_the_graph(rows):
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], edata={"w": torch.arange(1.0, 5.0)})
    model = FlowModel([Weighted()])
    assert model.inference(graph, torch.ones(4, 1), chunk_size=rows).flatten().tolist() == [
        4,
        1,
        2,
        3,
    ]
    assert model.inference(graph, torch.ones(4, 1), nodes=[3, 3, 0]).flatten().tolist() == [3, 3, 4]
