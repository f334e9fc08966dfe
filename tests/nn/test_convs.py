"""The convolutions against dense matrices."""

from __future__ import annotations

import pytest
import torch
from _support.nn_reference import (
    KINDS,
    as_csr,
    assert_near,
    dense_conv,
    flows,
    gradients,
    make_conv,
    small_flow,
    values,
)
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nodeflow import Flow, Graph, create_full_node_flow, create_node_flow, flow_from_edges
from nodeflow.nn import GINConv, GraphConv, SAGEConv
from nodeflow.propagation import Propagation
from nodeflow.testing import graphs

WIDTHS = [(2, 5), (5, 2), (3, 3), (1, 1)]
GIN = [kind for kind in KINDS if kind.startswith("gin")]


@pytest.mark.parametrize("kind", KINDS)
@given(flow=flows(), widths=st.sampled_from(WIDTHS), bias=st.booleans())
def test_values_and_gradients_are_those_of_dense_matrices(
    kind: str, flow: Flow, widths: tuple[int, int], bias: bool
) -> None:
    conv = make_conv(kind, *widths, bias)
    h = values((flow.num_src, widths[0])).requires_grad_()
    found, expected = conv(flow, h), dense_conv(kind, conv, flow, h)
    assert found.shape == (flow.num_dst, widths[1])
    assert_near(found, expected)
    inputs = (h, *conv.parameters())
    for one, other in zip(gradients(found, *inputs), gradients(expected, *inputs), strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("kind", GIN)
def test_rows_that_enter_a_mlp_are_dense(kind: str) -> None:
    with pytest.raises(TypeError, match=r"h is a sparse matrix.*sparse_linear"):
        make_conv(kind, 3, 2)(small_flow(), as_csr(values((4, 3))))


@given(kind=st.sampled_from(KINDS), graph=graphs(min_nodes=1), seed=st.integers(0, 3))
def test_the_whole_graph_is_a_flow_like_any_other(kind: str, graph: Graph, seed: int) -> None:
    conv, h = make_conv(kind, 3, 2), values((graph.num_nodes, 3), seed)
    batch = create_full_node_flow(graph, 1)
    found = conv(batch, 0, h)
    assert_near(found, dense_conv(kind, conv, batch.flows[0], h))
    propagation = Propagation(graph)
    parts = [conv(propagation.flow(start, stop), h) for start, stop in propagation.ranges(2)]
    assert_near(torch.cat(parts), found)


@pytest.mark.parametrize(("kind", "name"), [("sage", "own"), ("sage pool", "own"), ("sage gcn", "neigh"),
                                            ("gcn", "linear"), ("gcn none", "linear")])  # fmt: skip
def test_a_node_without_neighbours_keeps_its_own_row(kind: str, name: str) -> None:
    flow = create_node_flow([flow_from_edges([], [], num_src=2, num_dst=1)], [[4, 9], [9]]).flows[0]
    conv = make_conv(kind, 3, 2, bias=False)
    h = values((2, 3))
    assert_near(conv(flow, h), h[1:] @ conv.get_submodule(name).weight.T)


@pytest.mark.parametrize(("aggregator", "fan_in"), [("mean", 16), ("gcn", 8), ("pool", 16)])
def test_start_values_of_sage_are_bounded_as_those_of_the_one_matrix(aggregator: str, fan_in: int) -> None:
    torch.manual_seed(0)
    conv = SAGEConv(8, 500, aggregator=aggregator)
    for name, parameter in conv.named_parameters():
        bound = (8 if name.startswith("pool") else fan_in) ** -0.5
        assert 0.8 * bound < parameter.abs().max() <= bound
    names = [name for name, _ in SAGEConv(2, 2, aggregator=aggregator, bias=False).named_parameters()]
    rest = {"mean": ["own.weight"], "gcn": [], "pool": ["own.weight", "pool.weight", "pool.bias"]}
    assert names == ["neigh.weight", *rest[aggregator]]


def test_start_values_of_gcn_are_glorot_ones() -> None:
    torch.manual_seed(0)
    conv = GraphConv(8, 500)
    bound = (6 / 508) ** 0.5
    assert 0.9 * bound < conv.linear.weight.abs().max() <= bound
    assert not conv.linear.bias.any()
    assert [name for name, _ in GraphConv(2, 2, bias=False).named_parameters()] == ["linear.weight"]


def test_eps_is_learned_when_asked_for() -> None:
    assert not list(GINConv(nn.Identity(), eps=0.25).parameters())
    assert GINConv(nn.Identity(), eps=0.25).state_dict()["eps"] == 0.25
    conv = GINConv(nn.Identity(), eps=0.25, train_eps=True)
    conv(small_flow(), torch.ones(4, 2)).sum().backward()
    assert conv.eps.grad == 6  # a 1 for each of two columns of three destinations


def test_what_is_printed() -> None:
    assert "norm='both', self_loops=False, degrees='sampled', order='transform'" in repr(
        GraphConv(2, 3, norm="both", self_loops=False, order="transform")
    )
    assert "aggregator='gcn'" in repr(SAGEConv(2, 3, aggregator="gcn"))
    assert "aggregator='sum', eps=0.5 (learned)" in repr(GINConv(nn.Identity(), eps=0.5, train_eps=True))
