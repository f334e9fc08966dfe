"""ShaDow: a subgraph of its own for every seed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from _support.sampler_reference import chi_square, random_graph, star
from _support.strategies import calls, masks
from _support.subgraph_reference import edges_in, induced, key_of_batch, rows_of, shadow
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, create_full_node_flow
from nodeflow.nn import GraphConv, SAGEConv
from nodeflow.sampling import ShadowSampler
from nodeflow.testing import graphs, seeds


def scopes(batch, layer: int = 0) -> list[tuple[int, int]]:
    one = batch.layers[layer]
    return list(zip(one.parent_nid.tolist(), one.context.tolist(), strict=True))


def assert_scopes(batch, rows, expected, asked, num_flows) -> None:
    """Layers hold these rows, the last one the seeds; every flow all edges between rows of one
    seed.
    """
    batch.validate()
    num_seeds = len(set(asked))
    assert batch.layer_sizes == (len(expected),) * num_flows + (num_seeds,)
    for layer in range(num_flows):
        assert scopes(batch, layer) == expected
    assert scopes(batch, -1) == expected[:num_seeds]
    assert batch.seeds[batch.seed_index].tolist() == list(asked)
    everywhere = {(v, i): [((u, i), e) for u, e in rows[v]] for v, i in expected}
    edges = induced(everywhere, expected)
    for flow in range(num_flows):
        assert edges_in(batch, flow) == (edges if flow < num_flows - 1 else edges[:num_seeds])


@given(graphs(), st.data())
def test_the_same_scopes_as_the_description(graph, data):
    """The reference draws in plain Python; rows, edges and order must be the same."""
    asked = data.draw(seeds(graph, max_size=5))
    depth = data.draw(st.integers(0, 3))
    fanout = data.draw(st.sampled_from([-1, 1, 2, 3]))
    num_flows = data.draw(st.integers(1, 3))
    replace = data.draw(st.booleans())
    direction = data.draw(st.sampled_from(["in", "out"]))
    mask = data.draw(masks(graph))
    options = {
        "replace": replace,
        "direction": direction,
        "edge_filter": mask,
        "seed": data.draw(st.integers(0, 3)),
    }
    which = data.draw(calls)
    sampler = viewed(ShadowSampler, graph, num_flows, depth, fanout, **options)
    rows = rows_of(graph, direction, lambda e: mask[e])
    key = key_of_batch("shadow", asked, seed=options["seed"], **which)
    batch = sampler(asked, **which)
    assert_scopes(batch, rows, shadow(rows, asked, depth, fanout, key, replace), asked, num_flows)


@pytest.mark.parametrize("layer", [SAGEConv, GraphConv, "sum"])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_full_scopes_give_what_the_whole_graph_gives(layer, direction):
    """With all neighbours and a depth of at least the layers, a GNN's outputs are those on the
    whole graph.
    """
    graph = random_graph(1)
    torch.manual_seed(0)
    h = torch.randn(40, 5, dtype=torch.float64)
    asked = [3, 17, 3, 0, 39, 22]
    convolutions = [None if layer == "sum" else layer(5, 5).double() for _ in range(3)]

    def run(batch):
        x = h[batch.front.parent_nid]
        for flow, convolution in zip(batch.flows, convolutions, strict=True):
            x = (
                flow.aggregate(x, "sum")
                if convolution is None
                else torch.tanh(convolution(flow, x))
            )
        return x[batch.seed_index]

    exact = run(FullSampler(graph.view(direction), 3)(asked))
    if direction == "in":
        torch.testing.assert_close(
            run(create_full_node_flow(graph, 3))[asked], exact, rtol=0, atol=1e-12
        )
    for depth in (3, 4):
        batch = ShadowSampler(graph.view(direction), 3, depth, -1)(asked)
        torch.testing.assert_close(run(batch), exact, rtol=0, atol=1e-12)
    # one hop less, and something is missing: the test above can fail
    assert not torch.allclose(
        run(ShadowSampler(graph.view(direction), 3, 2, -1)(asked)), exact, atol=1e-3
    )


def test_every_subset_is_equally_likely():
    """Ten subsets of 2 out of 5 neighbours, for 3000 seeds: a deviation of 15 % of all is surely
    found.
    """
    pairs = {frozenset(pair): i for i, pair in enumerate(combinations(range(5), 2))}
    batch = ShadowSampler(star(5, hubs=3000), 1, 1, 2)(range(3000))
    drawn = batch.front.parent_nid[3000:].view(3000, 2) - 3000
    assert torch.equal(batch.front.context[3000:], torch.arange(3000).repeat_interleave(2))
    places = [pairs[frozenset(row)] for row in drawn.tolist()]
    assert chi_square(np.bincount(places, minlength=10)) < 1
    table = np.zeros((10, 10))
    np.add.at(table, (places[:-1], places[1:]), 1)
    assert chi_square(table) < 1  # and each draw is independent of the one before


def test_the_same_node_in_two_scopes_is_two_rows():
    graph = Graph.from_edges([2, 3, 4, 2, 5, 6, 4], [0, 0, 0, 1, 1, 1, 2])
    batch = ShadowSampler(graph, 2, 1, -1)([0, 1])
    assert scopes(batch) == [(0, 0), (1, 1), (2, 0), (3, 0), (4, 0), (2, 1), (5, 1), (6, 1)]
    # 4 -> 2 is among the nodes of the first scope only
    assert batch.flows[0].in_degrees.tolist() == [3, 3, 1, 0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="several contexts"):
        batch.front.rows_of([2])
    assert batch.flows[-1].take_dst(torch.arange(8)).tolist() == [0, 1]


def test_a_hub():
    """50,000 neighbours: ten are drawn, and only edges among them and the hub are kept."""
    degree = 50_000
    src = np.concatenate([np.arange(1, degree + 1), np.arange(1, degree)])
    graph = Graph.from_edges(
        src, np.concatenate([np.zeros(degree, np.int64), np.arange(2, degree + 1)])
    )
    batch = ShadowSampler(graph, 2, 1, 10)([0])
    assert batch.layer_sizes == (11, 11, 1)
    assert batch.flows[-1].num_edges == 10
    near = set(batch.front.parent_nid[1:].tolist())
    assert batch.flow_sizes[0] == 10 + sum(v - 1 in near for v in near)


def test_weights_and_shared_structure():
    graph = random_graph(4)
    graph.edata["w"] = torch.linspace(-1, 2, 200)
    batch = ShadowSampler(graph.view(weight="w"), 3, 2, 2)([1, 5, 9])
    for flow in batch.flows:
        assert torch.equal(flow.weight, graph.edata["w"][flow.parent_eid])
    plain = ShadowSampler(graph, 3, 2, 2)([1, 5, 9])
    assert plain.flows[0].weight.unique().tolist() == [1.0]
    assert batch.flows[0].structure is batch.flows[1].structure
    assert batch.flows[2].indices.data_ptr() == batch.flows[0].indices.data_ptr()
    batch.layers[0].data["x"] = torch.ones(batch.layer_sizes[0])
    assert [list(layer.data) for layer in batch.layers] == [["x"], [], [], []]
    graph.ndata["f"] = torch.arange(40)
    batch.copy_from_parent({0: ["f"], -1: ["f"]}, ["w"])
    assert torch.equal(batch.front.data["f"], batch.front.parent_nid)
    assert torch.equal(batch.flows[1].data["w"], batch.flows[1].weight)
