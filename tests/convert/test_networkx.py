"""networkx: attributes, multigraphs, names of nodes, and NodeFlows."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch
from _support.conversions import assert_same_graph, filled, types
from _support.graphs import ends_of
from hypothesis import given

from nodeflow import (
    ALL,
    FullSampler,
    Graph,
    NeighborSampler,
    TemporalNeighborSampler,
    create_node_flow,
    flow_from_edges,
)
from nodeflow._core.base.dtypes import COLUMN_TYPES
from nodeflow.convert import from_networkx, to_networkx
from nodeflow.testing import graphs

networkx = pytest.importorskip("networkx", reason="networkx is not installed")

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@given(graphs(min_nodes=1))
def test_networkx_and_back_is_the_same_graph(graph):
    """Ids, edge ids, repeated edges, and columns of every type, where the caller names the
    types.
    """
    made = to_networkx(filled(graph), node_columns=ALL, edge_columns=ALL)
    assert type(made) is networkx.MultiDiGraph
    assert list(made.nodes) == list(range(graph.num_nodes))
    assert {key: (u, v) for u, v, key in made.edges(keys=True)} == dict(enumerate(ends_of(graph)))
    assert sorted(ends_of(from_networkx(made)[0])) == sorted(ends_of(graph))
    if graph.num_edges == 0:  # without rows, a list does not tell how wide its rows were
        graph.edata.pop("edge_attr")
    back, names = from_networkx(
        made, node_columns=types(graph.ndata), edge_columns=types(graph.edata), keys_are_ids=True
    )
    assert names == list(range(graph.num_nodes))
    assert_same_graph(back, graph)


def test_networkx_directed_and_undirected():
    edges = [("a", "b"), ("c", "c"), ("b", "c")]
    one_way, nodes = from_networkx(networkx.DiGraph(edges))
    assert nodes == ["a", "b", "c"]
    assert sorted(ends_of(one_way)) == [(0, 1), (1, 2), (2, 2)]
    both_ways, nodes = from_networkx(networkx.Graph(edges))
    named = [(nodes[u], nodes[v]) for u, v in ends_of(both_ways)]
    assert sorted(named) == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "c")]
    assert named.index(("a", "b")) // 2 == named.index(("b", "a")) // 2


@pytest.mark.parametrize(
    "make", [lambda g: NeighborSampler(g, [2, 1], replace=True), lambda g: FullSampler(g, 2)]
)
def test_a_node_flow_as_a_networkx_graph(make):
    src = [0, 1, 2, 3, 3, 0, 0]
    dst = [1, 2, 0, 1, 0, 1, 0]
    graph = Graph.from_edges(src, dst, ndata={"x": torch.arange(4.0)}, edata={"t": torch.arange(7)})
    batch = make(graph)([1, 0])
    batch.copy_from_parent({0: ["x"]}, {1: ["t"]})
    made = to_networkx(batch, node_columns=["x"], edge_columns=["t"])
    assert made.number_of_nodes() == sum(batch.layer_sizes)
    assert made.number_of_edges() == sum(batch.flow_sizes)
    for (i, row), attributes in made.nodes(data=True):
        v = int(batch.layers[i].parent_nid[row])
        assert attributes == {"layer": i, "parent_nid": v} | ({"x": float(v)} if i == 0 else {})
    for (i, u), (j, v), key, attributes in made.edges(keys=True, data=True):
        flow = batch.flows[i, j]
        e = attributes["parent_eid"]
        assert (int(flow.edges()[0][key]), int(flow.edges()[1][key])) == (u, v)
        assert (made.nodes[i, u]["parent_nid"], made.nodes[j, v]["parent_nid"]) == (src[e], dst[e])
        assert attributes["weight"] == float(flow.weight[key])
        assert attributes.get("t") == (e if i == 1 else None)


def test_a_node_flow_in_contexts():
    graph = Graph.from_edges([0, 1], [1, 0], edata={"t": torch.tensor([1, 2])})
    batch = TemporalNeighborSampler(graph, [1], time="t")([0, 0], times=[3, 4])
    assert [made["context"] for _, made in to_networkx(batch).nodes(data=True)] == [
        0,
        1,
        0,
        1,
        0,
        1,
    ]


def test_node_flows_without_parents_and_with_skips():
    batch = create_node_flow(
        {(0, 1): flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1),
         (1, 2): flow_from_edges([0], [0], num_src=1, num_dst=1),
         (0, 2): flow_from_edges([1], [0], num_src=2, num_dst=1)}
    )  # fmt: skip
    made = to_networkx(batch)
    assert made.nodes[0, 1] == {"layer": 0}
    assert sorted(made.edges(data=True)) == [
        ((0, 0), (1, 0), {"weight": 1.0}), ((0, 1), (1, 0), {"weight": 1.0}), ((0, 1), (2, 0), {"weight": 1.0}),
        ((1, 0), (2, 0), {"weight": 1.0}),
    ]  # fmt: skip


def test_arrays_become_rows_and_networkx_may_be_missing(graph, monkeypatch):
    given = networkx.DiGraph([("p", "q")])
    networkx.set_node_attributes(given, {"p": np.ones(2), "q": np.zeros(2)}, "x")
    column = from_networkx(given, node_columns={"x": torch.float64})[0].ndata["x"]
    assert (column.tolist(), column.dtype) == ([[1, 1], [0, 0]], torch.float64)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install networkx$"):
        to_networkx(graph)


def test_floats_above_2_to_the_24_keep_their_digits():
    graph = networkx.DiGraph()
    graph.add_node("a", at=1.5, row=[0.5, 2.0])
    graph.add_node("b", at=2.0**24, row=[1.0, 1_000_000.4])
    graph.add_edge("b", "a", at=1_700_000_060.5, small=0.1, whole=1_700_000_060, wide=float("inf"))
    made, _ = from_networkx(
        graph, node_columns=["at", "row"], edge_columns=["at", "small", "whole", "wide"]
    )
    kinds = {
        name: column.dtype
        for name, column in {**made.edata, **made.ndata, "of edges": made.edata["at"]}.items()
    }
    assert kinds == {
        "at": torch.float32, "row": torch.float64, "of edges": torch.float64, "small": torch.float32,
        "whole": torch.int64, "wide": torch.float32,
    }  # fmt: skip
    assert made.edata["at"].tolist() == [1_700_000_060.5]
    assert made.ndata["row"].tolist() == [[0.5, 2.0], [1.0, 1_000_000.4]]
    del made.ndata["at"]
    seen = TemporalNeighborSampler(made, [-1], time="at")(
        [0, 0], times=[1_700_000_060.0, 1_700_000_060.5]
    )
    assert seen.flows[0].in_degrees.tolist() == [0, 1]


@pytest.mark.parametrize(
    "value", [300, -1, 1.5, 2**24 + 1, 2**53 + 1, 1e300, 1e39, math.nan, math.inf, 1j, True, 0.1, 7]
)
@pytest.mark.parametrize("dtype", sorted(COLUMN_TYPES, key=str))
def test_a_named_type_has_every_number_or_is_refused(value, dtype):
    """Floats alone are rounded: everything else comes back as it was, from numbers, lists and
    arrays.
    """
    whole = torch.iinfo(dtype) if dtype in INTEGERS else None
    if isinstance(value, complex):
        fits = dtype.is_complex
    elif dtype == torch.bool:
        fits = value in (0, 1)
    elif whole:
        fits = math.isfinite(value) and int(value) == value and whole.min <= value <= whole.max
    elif isinstance(value, int):
        digits = round(1 - math.log2(torch.finfo(dtype).eps))
        fits = value % 2 ** max(value.bit_length() - digits, 0) == 0
    else:
        fits = not math.isfinite(value) or abs(value) <= torch.finfo(dtype).max
    for made in (value, [value], np.array([value])):
        graph = networkx.DiGraph([(0, 1, {"w": made})])
        if fits:
            column = from_networkx(graph, edge_columns={"w": dtype})[0].edata["w"]
            assert (
                torch.equal(column.flatten(), torch.tensor([value], dtype=dtype)) or value != value
            )
        else:
            with pytest.raises(
                ValueError, match=rf"the edge attribute 'w' has .*, which {dtype} does not hold"
            ):
                from_networkx(graph, edge_columns={"w": dtype})
