"""Graph convolutions with the degrees of the parent graph: unbiased before the nonlinearity, exact
with all edges.
"""

from __future__ import annotations

import copy
from math import comb

import pytest
import torch
from _support.nn_reference import assert_near, normalised, values
from hypothesis import given, strategies as st
from torch import nn

from nodeflow import (
    FullSampler,
    Graph,
    LaborSampler,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.nn import FlowModel, GraphConv, IgnoredWeightWarning
from nodeflow.propagation import Propagation
from nodeflow.testing import graphs
from nodeflow.transform import degrees

DEGREES = ["in_degree", "out_degree"]
FORMS = [(norm, loops) for norm in ("right", "both", "none") for loops in (True, False)]


def with_degrees(graph: Graph) -> Graph:
    graph.ndata.update(degrees(graph))
    return graph


def make_conv(
    norm: str, self_loops: bool, in_features: int = 3, out_features: int = 2, **options
) -> GraphConv:
    torch.manual_seed(0)
    conv = GraphConv(
        in_features, out_features, norm=norm, self_loops=self_loops, degrees="parent", **options
    ).double()
    nn.init.normal_(conv.linear.bias)
    return conv


def whole(
    graph: Graph, conv: GraphConv, h: torch.Tensor, weight: torch.Tensor | None = None
) -> torch.Tensor:
    """The convolution of all nodes over all edges, from a dense matrix."""
    src, dst = graph.edges()
    adjacency = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    adjacency.index_put_(
        (dst, src), torch.ones(()).double() if weight is None else weight.double(), accumulate=True
    )
    eye = torch.eye(graph.num_nodes, dtype=torch.float64)
    return (
        normalised(adjacency, eye, conv.norm, conv.self_loops) @ h @ conv.linear.weight.T
        + conv.linear.bias
    )


def rows_of(batch: NodeFlow, h: torch.Tensor) -> torch.Tensor:
    batch.copy_from_parent(DEGREES)
    return h[batch.front.parent_nid]


@pytest.mark.parametrize(("norm", "self_loops"), FORMS)
@given(graph=graphs(min_nodes=1), data=st.data(), widths=st.sampled_from([(3, 1), (1, 3)]))
def test_all_edges_give_the_convolution_of_the_whole_graph(norm, self_loops, graph, data, widths):
    conv = make_conv(norm, self_loops, *widths)
    h = values((graph.num_nodes, widths[0]))
    expected = whole(with_degrees(graph), conv, h)
    seeds = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), unique=True, max_size=4))
    batch = FullSampler(graph, 1)(seeds)
    assert_near(conv(batch, 0, rows_of(batch, h)), expected[seeds])
    full = create_full_node_flow(graph, 1)
    assert_near(conv(full, 0, rows_of(full, h)), expected)
    model = FlowModel([conv])
    for rows in (None, 1, 2):
        assert_near(model.inference(graph, h, chunk_size=rows), expected.detach())


@pytest.mark.parametrize(("norm", "self_loops"), FORMS)
def test_the_mean_over_all_choices_is_the_convolution_of_the_whole_graph(norm, self_loops):
    """Every pair out of four edges is as probable as every other: node 0 has these edges, one of
    them twice.
    """
    graph = with_degrees(Graph.from_edges([1, 2, 2, 3, 0, 0, 1, 3], [0, 0, 0, 0, 1, 2, 3, 3]))
    conv = make_conv(norm, self_loops)
    h = values((4, 3))
    sampler = NeighborSampler(graph, [2])
    found: dict[tuple[int, ...], torch.Tensor] = {}
    for epoch in range(200):
        batch = sampler([0], epoch=epoch)
        found[tuple(sorted(batch.flows[0].parent_eid.tolist()))] = conv(
            batch, 0, rows_of(batch, h)
        )[0]
    assert len(found) == comb(4, 2)
    torch.testing.assert_close(
        torch.stack([*found.values()]).mean(0), whole(graph, conv, h)[0], rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("kind", ["neighbor", pytest.param("labor", marks=pytest.mark.slow)])
def test_estimates_are_unbiased_with_edge_weights_and_a_filter(kind):
    generator = torch.Generator().manual_seed(1)
    src, dst = torch.randint(8, (2, 40), generator=generator)
    weight = torch.rand(40, generator=generator) + 0.1
    kept = torch.rand(40, generator=generator) < 0.8
    graph = Graph.from_edges(src, dst, num_nodes=8, edata={"w": weight})
    edges = graph.view(where=kept, weight="w")
    graph.ndata.update(degrees(edges))
    conv = make_conv("both", True)
    h = values((8, 3))
    make = {"neighbor": NeighborSampler, "labor": LaborSampler}[kind]
    sampler = make(edges, [2])
    outs = []
    for epoch in range(500):
        batch = sampler(range(8), epoch=epoch)
        outs.append(conv(batch, 0, rows_of(batch, h)).detach())
    found = torch.stack(outs)
    expected = whole(graph, conv, h, weight * kept)
    error = found.std(0) / len(outs) ** 0.5 + 1e-6
    assert ((found.mean(0) - expected).abs() / error).max() < 5
    assert found.std(0).max() > 0.1  # there is something to be unbiased about


def test_out_edges_swap_the_degrees(graph):
    graph.ndata.update(degrees(graph.view("out")))
    src, dst = graph.edges()
    turned = with_degrees(Graph.from_edges(dst, src, num_nodes=graph.num_nodes))
    conv = make_conv("both", True, 2)
    h = values((graph.num_nodes, 2))
    batch = FullSampler(graph.view("out"), 1)(range(graph.num_nodes))
    assert_near(conv(batch, 0, rows_of(batch, h)), whole(turned, conv, h))
    assert_near(
        FlowModel([conv]).inference(Propagation(graph.view("out")), h),
        whole(turned, conv, h).detach(),
    )


def test_degrees_by_hand():
    graph = Graph.from_edges(
        [0, 0, 1, 2], [1, 1, 1, 0], num_nodes=4, edata={"w": torch.tensor([1.0, 2.0, 0.5, 4.0])}
    )
    found = degrees(graph)
    assert (found["in_degree"].tolist(), found["out_degree"].tolist()) == (
        [1, 3, 0, 0],
        [2, 1, 1, 0],
    )
    found = degrees(graph.view("out", where=torch.tensor([True, False, True, True]), weight="w"))
    assert (found["out_degree"].tolist(), found["in_degree"].tolist()) == (
        [4, 1.5, 0, 0],
        [1, 0.5, 4, 0],
    )
    with pytest.raises(ValueError, match="direction must be 'in' or 'out', got 'both'"):
        degrees(graph.view("both"))
    with pytest.raises(KeyError, match=r"weight: graph\.edata has no column 'p'"):
        degrees(graph.view(weight="p"))


@pytest.mark.parametrize(("norm", "missing"), [("right", "'in_degree' in the destination"),
                                               ("both", "'in_degree' in the destination"),
                                               ("out", "'out_degree' in the source")])  # fmt: skip
def test_layers_without_degrees_are_refused_with_what_to_do(norm, missing, graph):
    flow = flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1)
    batch = create_node_flow([flow], [[3, 4], [3]])
    if norm == "out":
        norm = "both"
        batch.ldata[1]["in_degree"] = torch.tensor([2])
    conv = make_conv(norm, True)
    h = values((2, 3))
    with pytest.raises(
        ValueError, match=rf"the column {missing} layer.*transform.degrees.*copy_from_parent"
    ):
        conv(batch, 0, h)
    with pytest.raises(ValueError, match=r"needs the column.*transform.degrees"):
        FlowModel([make_conv(norm, True, 2)]).inference(graph, values((6, 2)))
    batch.ldata[0]["out_degree"] = torch.tensor([1, 1])
    batch.ldata[1]["in_degree"] = torch.tensor([2])
    assert conv(batch, 0, h).shape == (1, 2)  # integers that someone set by hand do as well
    batch.ldata[1]["in_degree"] = torch.tensor([[2]])
    with pytest.raises(
        ValueError, match=r"'in_degree' must have one number per node, got shape \(1, 1\)"
    ):
        conv(batch, 0, h)


def test_sampled_degrees_leave_estimator_weights_out(graph):
    graph.edata["w"] = torch.arange(1.0, graph.num_edges + 1)
    h = values((6, 2))
    for norm in ("right", "both", "none"):
        conv = GraphConv(2, 3, norm=norm).double()
        plain, weighted = (
            FullSampler(graph.view(weight=weight), 1)(range(6)) for weight in (None, "w")
        )
        assert not torch.equal(plain.flows[0].weight, weighted.flows[0].weight)
        expected = conv(plain, 0, h)
        with pytest.warns(IgnoredWeightWarning):
            assert torch.equal(conv(weighted, 0, h), expected)
        parent = copy.copy(conv)
        parent.degrees = "parent"
        parent.weighted = True
        parent.weight_advice = None
        graph.ndata.update(degrees(graph))
        assert not torch.allclose(
            parent(plain, 0, rows_of(plain, h)), parent(weighted, 0, rows_of(weighted, h))
        )


def test_inference_by_ranges_counts_all_edges_that_leave_a_source(graph):
    """Sampled degrees: in the flow of a range, those of a source are not all there."""
    conv = GraphConv(2, 3, norm="both").double()
    h = values((6, 2))
    expected = whole(graph, conv, h).detach()
    for rows in (None, 1, 4):
        assert_near(FlowModel([conv]).inference(graph, h, chunk_size=rows), expected)
