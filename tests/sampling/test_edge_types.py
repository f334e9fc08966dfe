"""NeighborSampler with ``edge_type``: a fanout for every type of edges, each drawn on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_reference import (
    chi_square,
    fingerprint,
    picked_positions,
    random_graph,
    star,
)
from _support.views import viewed
from _support.weighted_reference import edges_by_kind

from nodeflow import Graph, NeighborSampler
from nodeflow.testing import assert_reproducible, assert_unbiased


def typed_graph(seed: int, types: list[int], nodes: int = 30, edges: int = 500) -> Graph:
    graph = random_graph(seed, nodes, edges)
    rng = np.random.default_rng(seed)
    graph.edata["t"] = torch.from_numpy(rng.choice(types, edges))
    graph.edata["w"] = torch.from_numpy(rng.random(edges) * (rng.random(edges) < 0.8))
    return graph


def typed_draw(graph: Graph, fanouts: dict[int, int] | int, ids: list[int], **options: Any) -> Any:
    """The edges that distinct seeds draw: type by type, in ascending order."""
    column = graph.edata["t"].tolist()
    types = sorted(set(column))
    counts = [fanouts if isinstance(fanouts, int) else fanouts.get(kind, 0) for kind in types]
    return edges_by_kind(
        graph,
        ids,
        counts,
        lambda e: types.index(column[e]),
        lambda v, place: v * len(types) + place,
        **options,
    )


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("direction", ["in", "out"])
@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize(
    "fanouts", [2, -1, {0: 1, 7: 3}, {-4: -1, 0: 2}, {7: 0, 0: 1, -4: 40}, {7: 0}, {}], ids=str
)
def test_equals_pure_python(fanouts, prob, direction, replace):
    for number, ids in enumerate([[5], [7, 1, 29, 0], list(range(30))]):
        graph = typed_graph(number, [0, 7, -4])
        options = {"replace": replace, "direction": direction, "seed": number, "prob": prob}
        batch = viewed(NeighborSampler, graph, [fanouts], edge_type="t", **options)(
            ids, epoch=number
        )
        batch.validate()
        assert picked_positions(batch) == typed_draw(graph, fanouts, ids, epoch=number, **options)
        # types come in ascending order
        for picked in picked_positions(batch):
            kinds = graph.edata["t"][picked].tolist()
            assert kinds == sorted(kinds)


def test_fanouts_are_in_flow_order():
    # node 0 has three edges of either type from 1..3, and these have the same from each other
    pairs = [(u, v) for v in range(4) for u in range(4) for _ in range(2) if u != v]
    graph = Graph.from_edges(*zip(*pairs, strict=True), edata={"t": torch.arange(24) % 2})
    batch = NeighborSampler(graph, [{0: 1, 1: 2}, {1: 3}], edge_type="t")([0])
    assert [graph.edata["t"][p].tolist() for p in picked_positions(batch, 1)] == [[1, 1, 1]]
    assert [graph.edata["t"][p].tolist() for p in picked_positions(batch, 0)] == [[0, 1, 1]] * 4
    batch = NeighborSampler(graph, [{0: 1, 1: 2}, {1: 3}], edge_type="t", reuse=True)([0])
    assert batch.flows[0].in_degrees.tolist() == [3, 3, 3, 3]  # node 0 keeps its three of type 1
    assert graph.edata["t"][picked_positions(batch, 0)[0]].tolist() == [1, 1, 1]


def test_one_type_is_no_type():
    """With a single type, rows and random numbers are those of the sampler without types."""
    graph = typed_graph(3, [5])
    for options in (
        {},
        {"replace": True},
        {"direction": "out"},
        {"reuse": True},
        {"include_dst": False},
    ):
        plain = viewed(NeighborSampler, graph, [2, 3], **options)(range(9))
        assert fingerprint(
            viewed(NeighborSampler, graph, [2, 3], edge_type="t", **options)(range(9))
        ) == fingerprint(plain)
        typed = viewed(NeighborSampler, graph, [{5: 2}, {5: 3}], edge_type="t", **options)(range(9))
        assert fingerprint(typed) == fingerprint(plain)


@pytest.mark.parametrize("replace", [False, True])
def test_types_are_uniform_and_independent(replace):
    """Joint table of one draw of three edges and two of four, for 60,000 nodes.

    If one node in 25 drew the same place for both types, n r^2 would be about 290, and it would be
    found.
    """
    hubs = 60_000
    d = 7
    graph = star(d, hubs)
    graph.edata["t"] = torch.tensor([0, 1, 0, 1, 1, 0, 1]).repeat(hubs)
    batch = NeighborSampler(graph, [{0: 1, 1: 2}], edge_type="t", replace=replace)(range(hubs))
    rows = batch.flows[0].parent_eid.numpy().reshape(hubs, 3) % d
    zeros = np.array([0, 2, 5])
    ones = np.array([1, 3, 4, 6])
    first = np.searchsorted(zeros, rows[:, 0])
    pairs = np.searchsorted(ones, rows[:, 1:])
    assert (zeros[first] == rows[:, 0]).all()
    assert (ones[pairs] == rows[:, 1:]).all()
    codes = pairs[:, 0] * 4 + pairs[:, 1] if replace else (1 << pairs).sum(1)
    found, second = np.unique(codes, return_inverse=True)
    assert len(found) == (16 if replace else 6)
    assert chi_square(np.bincount(first * len(found) + second, minlength=3 * len(found))) < 1


def test_weights_are_degree_of_the_type_over_number_drawn():
    graph = typed_graph(4, [0, 1, 2])
    fanouts = {0: 2, 1: -1, 2: 1}
    for replace in (False, True):
        flow = NeighborSampler(graph, [fanouts], edge_type="t", replace=replace)(range(30)).flows[0]
        dst = graph.edges()[1]
        for e, own in zip(flow.parent_eid.tolist(), flow.weight.tolist(), strict=True):
            kind = int(graph.edata["t"][e])
            degree = int(((dst == dst[e]) & (graph.edata["t"] == kind)).sum())
            drawn = (
                degree if kind == 1 else fanouts[kind] if replace else min(degree, fanouts[kind])
            )
            assert own == np.float32(degree / drawn)


def test_unbiased():
    graph = typed_graph(5, [0, 1, 2])
    graph.edata["a"] = torch.from_numpy(np.random.default_rng(0).normal(size=500))
    every = [{0: 1, 1: 2, 2: -1}, {0: 2, 1: 1, 2: 2}]
    for fanouts, options in (
        (every, {"weight": "a"}),
        (every, {"replace": True, "prob": "w", "weight": "a"}),
        (every, {"prob": "w", "direction": "out"}),
        ([{0: 2}, {0: 1}], {}),  # then the sums are over edges of type 0
        ([{0: 2, 1: 0}, {0: 1}], {"prob": "w", "weight": "a"}),
    ):
        sampler = viewed(NeighborSampler, graph, fanouts, edge_type="t", **options)
        assert_unbiased(sampler, [0, 3, 11], draws=250)
        assert_reproducible(sampler, [0, 3, 11])


def test_estimand_is_0_for_types_that_no_flow_draws():
    graph = typed_graph(5, [0, 1, 2])
    kinds = graph.edata["t"]
    sampler = NeighborSampler(
        graph.view(where=torch.arange(500) < 400), [{0: 2, 2: 0}, {1: 1}], edge_type="t"
    )
    assert sampler.estimand().equal(((kinds < 2) & (torch.arange(500) < 400)).double())
    assert (
        NeighborSampler(graph, [2, {1: 1}], edge_type="t")
        .estimand()
        .equal(torch.ones(500).double())
    )


def test_graph_without_edges():
    graph = Graph([0, 0, 0], [], edata={"t": torch.zeros(0, dtype=torch.int64)})
    for prob in (None, "w"):
        graph.edata["w"] = torch.zeros(0)
        assert NeighborSampler(graph, [2, -1], edge_type="t", prob=prob)([1, 0]).flow_sizes == (
            0,
            0,
        )
        assert NeighborSampler(graph, [{}, 2], edge_type="t", prob=prob).estimand().shape == (0,)


@pytest.mark.parametrize("types", [[0], [0, 1]])
def test_what_no_flow_draws_counts_nothing(types):
    graph = typed_graph(0, types)
    assert NeighborSampler(graph, [{}, {}], edge_type="t").estimand().sum() == 0
    assert (
        NeighborSampler(graph, [{}, {0: 1}], edge_type="t").estimand().sum()
        == (graph.edata["t"] == 0).sum()
    )


def test_every_type_takes_a_row_of_every_node_so_there_are_not_many():
    graph = Graph.from_edges(range(64), range(64), edata={"t": torch.arange(64) % 32})
    assert NeighborSampler(graph, [1], edge_type="t")([40]).flows[0].parent_eid.tolist() == [40]
    graph.edata["t"] = torch.arange(64) % 33  # 64 * 33 rows are more than 16 for each node and edge
    with pytest.raises(
        ValueError,
        match="edge_type: the column 't' has 33 types, and every node gets a row for each",
    ):
        NeighborSampler(graph, [1], edge_type="t")
