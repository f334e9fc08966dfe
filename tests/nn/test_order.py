"""Sum first or multiply first: the same results, the cheaper one chosen, and operations counted."""

from __future__ import annotations

import pytest
import torch
from _support.effort import examples
from _support.nn_reference import (
    LINEAR,
    OWN,
    as_csr,
    assert_near,
    flows,
    gradients,
    make_conv,
    small_flow,
    values,
)
from hypothesis import given, strategies as st

from nodeflow import Flow, FullSampler, flow_from_edges
from nodeflow.nn import GCN, GraphConv, SAGEConv, flop_counter

ORDERS = ["aggregate", "transform"]


@pytest.mark.parametrize("kind", LINEAR)
@examples(30)
@given(flow=flows(), widths=st.sampled_from([(2, 5), (5, 2), (1, 1)]), bias=st.booleans())
def test_both_orders_give_the_same(kind, flow, widths, bias):
    results = []
    h = values((flow.num_src, widths[0])).requires_grad_()
    for order in ORDERS:
        conv = make_conv(kind, *widths, bias, order=order)
        out = conv(flow, h)
        first = torch.autograd.grad(out.square().sum(), [h, *conv.parameters()], create_graph=True)
        second = torch.autograd.grad(sum(x.square().sum() for x in first), [h, *conv.parameters()])
        results.append([out, *gradients(conv(flow, h), h, *conv.parameters()), *first, *second])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("needed", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_operations_are_those_that_are_run(kind, order, needed, backward):
    conv = make_conv(kind, 5, 3, order=order)
    h = values((4, 5)).requires_grad_(needed)
    flow = small_flow()
    with flop_counter(display=False) as counter:
        out = conv(flow, h)
        if backward:
            out.sum().backward()
    expected = conv.flops(flow, h, backward=backward)
    assert set(expected) == set(ORDERS)
    assert counter.get_total_flops() == expected[order]
    if needed:
        assert conv.flops(flow, backward=backward) == expected


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("backward", [False, True])
def test_operations_on_sparse_rows(kind, backward):
    conv = make_conv(kind, 5, 3, order="aggregate")  # not for sparse rows
    h = as_csr(values((4, 5), zeros=0.5))
    flow = small_flow()
    with flop_counter(display=False) as counter:
        out = conv(flow, h)
        if backward:
            out.sum().backward()
    assert conv.order_for(flow, h) == "transform"
    assert conv.flops(flow, h, backward=backward) == {"transform": counter.get_total_flops()}


def test_operations_by_hand():
    # 4 sources, 3 destinations, 4 edges
    assert SAGEConv(5, 3).flops(small_flow()) == {
        "aggregate": 4 * 5 + 2 * 3 * 5 * 3 + 2 * 3 * 5 * 3,
        "transform": 4 * 3 + 2 * 4 * 5 * 3 + 2 * 3 * 5 * 3,
    }


def test_operations_of_a_whole_model(graph):
    model = GCN(2, 8, 3, num_layers=2)
    batch = FullSampler(graph, 2)([3, 5])
    h = torch.ones(batch.layer_sizes[0], 2)
    with flop_counter(display=False) as counter:
        model(batch, h).sum().backward()
    expected = [
        conv.flops(flow, rows, backward=True)[conv.order_for(flow, rows)]
        for conv, flow, rows in zip(model.convs, batch.flows, (h, None), strict=True)
    ]
    assert counter.get_total_flops() == sum(expected)
    assert counter.get_flop_counts()["GCN.convs.0"]  # torch tells modules apart


def hub(num_src: int, num_dst: int, num_edges: int) -> Flow:
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(num_src, (num_edges,), generator=generator)
    dst = torch.randint(num_dst, (num_edges,), generator=generator)
    return flow_from_edges(src, dst, num_src=num_src, num_dst=num_dst)


@pytest.mark.parametrize("kind", LINEAR)
def test_the_cheaper_order_is_chosen(kind):
    few_destinations = hub(500, 10, 600)
    many_edges = hub(50, 50, 4000)
    assert make_conv(kind, 64, 32).order_for(few_destinations) == "aggregate"
    assert make_conv(kind, 64, 4).order_for(many_edges) == "transform"
    assert make_conv(kind, 4, 64).order_for(many_edges) == "aggregate"
    for order in ORDERS:
        assert make_conv(kind, 64, 4, order=order).order_for(many_edges) == order
        assert make_conv(kind, 4, 64, order=order).order_for(many_edges) == order


def test_inputs_that_need_no_gradient_are_rather_summed_first():
    """Their sums have no backward pass, which the products behind them would have."""
    flow = hub(30, 30, 3000)
    conv = make_conv("sage", 10, 8)
    h = values((30, 10))
    assert conv.order_for(flow, h) == "aggregate"
    assert conv.order_for(flow, h.requires_grad_()) == "transform"
    with torch.no_grad():
        assert conv.order_for(flow, h) == "transform"


@pytest.mark.parametrize("kind", [kind for kind in LINEAR if kind not in OWN])
def test_own_rows_are_read_only_where_the_layer_says_so(kind):
    flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)  # without parent ids
    assert_near(
        make_conv(kind, 2, 2, order="aggregate")(flow, values((2, 2))),
        make_conv(kind, 2, 2, order="transform")(flow, values((2, 2))),
    )


def test_a_maximum_has_one_order():
    conv = make_conv("sage pool", 64, 4)
    assert (
        conv.order_for(hub(50, 50, 4000))
        == conv.order_for(small_flow(), as_csr(values((4, 64))))
        == "aggregate"
    )
    with pytest.raises(ValueError, match=r"one order; count operations with nn\.flop_counter"):
        conv.flops(small_flow())


@pytest.mark.parametrize(("edges", "order"), [(40, "aggregate"), (60, "transform")])
def test_products_sums_and_new_matrices_decide(edges, order):
    """From 10 sources to 1 destination, 64 to 16 numbers: by hand, with the factors 10 and 60.

    40 edges: 2,048 + 25,600 + 3,840 against 20,480 + 6,400 + 9,600; without the matrices the second
    were less. 60 edges: 2,048 + 38,400 + 3,840 against 20,480 + 9,600 + 9,600.
    """
    flow = flow_from_edges([i % 10 for i in range(edges)], [0] * edges, num_src=10, num_dst=1)
    with torch.no_grad():
        assert GraphConv(64, 16, norm="none", self_loops=False).order_for(flow) == order
