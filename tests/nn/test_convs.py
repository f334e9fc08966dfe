"""The convolutions against dense matrices."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from nn_reference import as_csr, assert_near, dense, dense_gcn, dense_sage, flows, gradients, values
from torch import nn

from nodeflow import Flow, Graph, NeighborSampler, create_node_flow, flow_from_edges
from nodeflow.nn import GraphConv, SAGEConv

Conv = SAGEConv | GraphConv
REFERENCES = {SAGEConv: dense_sage, GraphConv: dense_gcn}
KINDS = list(REFERENCES)

WIDTHS = [(2, 5), (5, 2), (3, 3), (1, 1)]
"""Both orders: the first aggregates before the matrix is applied, the second after."""


def make_conv(kind: type[Conv], in_features: int, out_features: int, bias: bool = True) -> Conv:
    conv = kind(in_features, out_features, bias=bias).double()
    for i, parameter in enumerate(conv.parameters()):  # the bias too, which may start at 0
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    return conv


def small_flow() -> Flow:
    """Destination 0 with a double edge and a loop, 1 without edges, 2 with one; destinations are not the prefix."""
    flow = flow_from_edges([3, 3, 2, 0], [0, 0, 0, 2], num_src=4, num_dst=3)
    return create_node_flow([flow], [[5, 6, 7, 8], [7, 5, 6]]).flows[0]


@pytest.mark.parametrize("kind", KINDS)
@given(flow=flows(), widths=st.sampled_from(WIDTHS), bias=st.booleans())
def test_values_and_gradients_are_those_of_dense_matrices(
    kind: type[Conv], flow: Flow, widths: tuple[int, int], bias: bool
) -> None:
    conv = make_conv(kind, *widths, bias)
    h = values((flow.num_src, widths[0])).requires_grad_()
    found, expected = conv(flow, h), REFERENCES[kind](*dense(flow), conv, h)
    assert found.shape == (flow.num_dst, widths[1])
    assert_near(found, expected)
    inputs = (h, *conv.parameters())
    for one, other in zip(gradients(found, *inputs), gradients(expected, *inputs), strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("kind", KINDS)
@given(flow=flows(), widths=st.sampled_from(WIDTHS), bias=st.booleans())
def test_sparse_rows_equal_dense_rows(kind: type[Conv], flow: Flow, widths: tuple[int, int], bias: bool) -> None:
    conv = make_conv(kind, *widths, bias)
    h = values((flow.num_src, widths[0]), zeros=0.6)
    from_sparse, from_dense = conv(flow, as_csr(h)), conv(flow, h)
    assert from_sparse.layout == torch.strided
    assert_near(from_sparse, from_dense)
    for one, other in zip(
        gradients(from_sparse, *conv.parameters()), gradients(from_dense, *conv.parameters()), strict=True
    ):
        assert_near(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", WIDTHS)
def test_gradients_are_numerical_ones(kind: type[Conv], widths: tuple[int, int]) -> None:
    conv, flow = make_conv(kind, *widths), small_flow()
    names = [name for name, _ in conv.named_parameters()]
    h = values((4, widths[0])).requires_grad_()

    def call(h: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(conv, dict(zip(names, parameters, strict=True)), (flow, h))

    parameters = [parameter.detach().clone().requires_grad_() for parameter in conv.parameters()]
    assert torch.autograd.gradcheck(call, (h, *parameters))
    assert torch.autograd.gradgradcheck(call, (h, *parameters))


@pytest.mark.parametrize(("kind", "name"), [(SAGEConv, "own"), (GraphConv, "linear")])
def test_a_node_without_neighbours_keeps_its_own_row(kind: type[Conv], name: str) -> None:
    flow = create_node_flow([flow_from_edges([], [], num_src=2, num_dst=1)], [[4, 9], [9]]).flows[0]
    conv = make_conv(kind, 3, 2, bias=False)
    h = values((2, 3))
    assert_near(conv(flow, h), h[1:] @ conv.get_submodule(name).weight.T)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_products_does_not_matter(kind: type[Conv]) -> None:
    """A wide layer aggregates first; cut into narrow ones, which multiply first, it gives the same columns."""
    flow, h = small_flow(), values((4, 3))
    wide = make_conv(kind, 3, 6)
    columns = []
    for start, stop in pairwise([0, 2, 4, 6]):
        narrow = copy.deepcopy(wide)
        for module in narrow.modules():
            if isinstance(module, nn.Linear):
                module.out_features = stop - start
                module.weight = nn.Parameter(module.weight[start:stop].detach())
                module.bias = None if module.bias is None else nn.Parameter(module.bias[start:stop].detach())
        columns.append(narrow(flow, h))
    assert_near(torch.cat(columns, 1), wide(flow, h))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", [(2, 4), (4, 2)])
@pytest.mark.parametrize("sparse", [False, True])
def test_batches_without_destinations_are_refused_with_what_to_do(
    kind: type[Conv], widths: tuple[int, int], sparse: bool
) -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    batch = NeighborSampler(graph, [-1], include_dst=False)([2])
    h = values((batch.layer_sizes[0], widths[0]))
    with pytest.raises(ValueError, match=r"not in its source layer.*include_dst=True"):
        make_conv(kind, *widths)(batch.flows[0], as_csr(h) if sparse else h)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_do_not_fit_the_flow_are_refused(kind: type[Conv]) -> None:
    with pytest.raises(ValueError, match="4 rows"):
        make_conv(kind, 3, 2)(small_flow(), values((5, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_start_values_depend_on_the_seed_only(kind: type[Conv]) -> None:
    torch.manual_seed(3)
    first, second = kind(4, 6), kind(4, 6)
    torch.manual_seed(3)
    again = kind(4, 6)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not any(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True) if a.ndim == 2
    )


def test_start_values_of_sage_are_bounded_as_those_of_the_one_matrix() -> None:
    conv = SAGEConv(8, 500)
    bound = (2 * 8) ** -0.5
    for parameter in conv.parameters():
        assert parameter.abs().max() <= bound
        assert parameter.abs().max() > 0.9 * bound
    assert [name for name, _ in SAGEConv(2, 2, bias=False).named_parameters()] == ["neigh.weight", "own.weight"]


def test_start_values_of_gcn_are_glorot_ones() -> None:
    conv = GraphConv(8, 500)
    bound = (6 / 508) ** 0.5
    assert 0.9 * bound < conv.linear.weight.abs().max() <= bound
    assert not conv.linear.bias.any()
    assert [name for name, _ in GraphConv(2, 2, bias=False).named_parameters()] == ["linear.weight"]
