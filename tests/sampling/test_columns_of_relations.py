"""Columns that belong to single relations, as weights, probabilities, filters and types of
edges.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nodeflow import (
    FullSampler,
    Graph,
    LadiesSampler,
    NeighborSampler,
    TemporalNeighborSampler,
    transform,
)
from nodeflow.flow import create_full_node_flow
from nodeflow.propagation import Propagation
from nodeflow.testing import assert_unbiased

RELATIONS = {("a", "x", "b"): 40, ("b", "y", "b"): 50, ("b", "z", "a"): 0, ("a", "z", "b"): 30}


def graphs(dtype: torch.dtype = torch.float32) -> tuple[Graph, Graph]:
    """A graph with columns of relations, and the same graph with the columns that these stand for,
    of all edges.
    """
    rng = np.random.default_rng(0)
    edges = {}
    whole = {"w": torch.ones(120, dtype=dtype), "keep": torch.ones(120, dtype=torch.bool)}
    start = 0
    for relation, count in RELATIONS.items():
        columns = {}
        if relation[1] != "y":
            columns["w"] = torch.from_numpy(rng.integers(0, 9, count)).to(dtype)
        if relation[1] == "y":
            columns["keep"] = torch.from_numpy(rng.random(count) < 0.6)
        for name, column in columns.items():
            whole[name][start : start + count] = column
        start += count
        edges[relation] = rng.integers(0, 5, count), rng.integers(0, 5, count), columns
    graph = Graph.typed({"a": 5, "b": 5}, edges)
    graph.edata["time"] = torch.arange(120)
    same = Graph.typed({"a": 5, "b": 5}, {name: part[:2] for name, part in edges.items()})
    same.edata.update({**whole, "time": torch.arange(120)})
    return graph, same


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.bfloat16])
@pytest.mark.parametrize(
    "make",
    [
        lambda graph: NeighborSampler(graph.view(weight="w"), [2, {"x": 3, "y": 2}], prob="w"),
        lambda graph: NeighborSampler(graph.view("both", where="keep", weight="w"), [2]),
        lambda graph: FullSampler(graph.view(where="keep", weight="w"), 2),
        lambda graph: LadiesSampler(graph.view(where="keep", weight="w"), [6]),
        lambda graph: TemporalNeighborSampler(graph.view(where="keep"), [3], prob="w"),
    ],
)
def test_equals_a_column_of_all_edges(make, dtype):
    one, other = map(make, graphs(dtype))
    call = {"times": [60] * 10} if one.takes_times else {}
    batch = one(range(10), **call)
    same = other(range(10), **call)
    for flow, expected in zip(batch.flows, same.flows, strict=True):
        assert flow.parent_eid.tolist() == expected.parent_eid.tolist()
        assert flow.weight.dtype == expected.weight.dtype
        assert flow.weight.tolist() == expected.weight.tolist()


def test_relations_without_probabilities_are_drawn_uniformly():
    graph = Graph.typed(
        {"a": 3, "b": 1},
        {
            ("a", "x", "b"): ([0, 1, 2], [0, 0, 0], {"p": torch.tensor([0.0, 0, 7])}),
            ("b", "y", "b"): ([0] * 4, [0] * 4),
        },
    )
    sampler = NeighborSampler(graph, [1], prob="p", seed=3)
    drawn = torch.cat([sampler([3], epoch=epoch).flows[0].parent_eid for epoch in range(2000)])
    counts = torch.bincount(drawn, minlength=7)
    assert counts[:3].tolist() == [0, 0, 2000]
    assert (counts[3:] - 500).abs().max() < 90
    assert_unbiased(sampler, [3])


def test_everything_that_reads_edge_columns_reads_them():
    one, other = graphs()
    x = torch.rand(10, 3)
    assert torch.equal(Propagation(one.view(weight="w"))(x), Propagation(other.view(weight="w"))(x))
    flows = [create_full_node_flow(graph, 1, weight="w").flows[0] for graph in (one, other)]
    assert torch.equal(flows[0].weight, flows[1].weight)
    for graph in (one, other):
        graph.ndata.update(transform.degrees(graph.view(where="keep", weight="w")))
    assert torch.equal(one.ndata["in_degree"], other.ndata["in_degree"])
    parts = [transform.filter_edges(graph, "keep").edata["parent_eid"] for graph in (one, other)]
    assert torch.equal(*parts)


def test_types_of_edges_must_be_there_for_all_relations():
    graph, _ = graphs()
    graph.relations["y"].data["kind"] = torch.arange(50) % 2
    with pytest.raises(
        KeyError, match=r"every relation must have the column 'kind'; without it are .*'x'.*'z'"
    ):
        NeighborSampler(graph, [2], edge_type="kind")
    for relation, part in graph.relations.items():
        part.data["kind"] = torch.full((len(part),), len(relation[1])) + torch.arange(len(part)) % 2
    assert NeighborSampler(graph, [{1: 2}], edge_type="kind")([5]).flows[0].num_edges == 2
