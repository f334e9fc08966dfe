"""Flows of relations into nodes of their own type, and flows without the sources that no edge
reads.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from nodeflow import Flow, Graph, Layer, NeighborSampler, TemporalNeighborSampler
from nodeflow.flow import entering, without_unread

RELATIONS = [
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "rev_writes", "author"),
]


def drawn(edges: int, *, times: bool, include_dst: bool, seed: int) -> Flow:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, (3, 2, edges), generator=generator)
    time = {"time": torch.randint(9, (edges,), generator=generator)}
    graph = Graph.typed(
        {"author": 4, "paper": {"x": torch.rand(4, 2)}},
        {r: (*ends, time) for r, ends in zip(RELATIONS, ids, strict=True)},
    )
    if times:
        sampler = TemporalNeighborSampler(graph, [2], include_dst=include_dst, seed=seed)
        return sampler([0, 5, 5, 6], times=[3, 5, 9, 9]).flows[0]
    return NeighborSampler(graph, [2], include_dst=include_dst, seed=seed)([0, 5, 6]).flows[0]


def same_nodes(layer: Layer, whole: Layer, rows: torch.Tensor) -> None:
    assert layer.parent_nid.equal(whole.parent_nid[rows])
    assert (layer.context is None) == (whole.context is None)
    assert layer.context is None or layer.context.equal(whole.context[rows])
    assert layer.schema is whole.schema


@given(
    st.integers(0, 12), st.booleans(), st.booleans(), st.permutations(range(3)), st.integers(1, 3)
)
def test_edges_of_relations_enter_their_own_type(edges, times, include_dst, order, count):
    flow = drawn(edges, times=times, include_dst=include_dst, seed=edges)
    relations = [RELATIONS[k] for k in order[:count]]
    one, sizes = entering(flow, relations)
    parts = [flow.dst_layer.of(relation[2]).rows for relation in relations]
    rows = torch.cat(parts)
    assert sizes == [len(part) for part in parts]
    same_nodes(one.dst_layer, flow.dst_layer, rows)
    assert one.src_layer is flow.src_layer
    assert one.dst_in_src.equal(flow.dst_in_src[rows])
    own = torch.cat([flow.of(relation).parent_eid for relation in relations])
    assert one.parent_eid.equal(own)
    assert one.indices.equal(torch.cat([flow.of(relation).indices for relation in relations]))
    assert rows[one.edges()[1]].equal(
        torch.cat([flow.of(relation).edges()[1] for relation in relations])
    )
    assert one.weight.equal(torch.cat([flow.of(relation).weight for relation in relations]))


@given(st.integers(0, 12), st.booleans(), st.booleans(), st.integers(0, 2))
def test_sources_are_those_that_edges_read_and_the_destinations(edges, times, include_dst, k):
    flow = entering(drawn(edges, times=times, include_dst=include_dst, seed=edges), [RELATIONS[k]])[
        0
    ]
    flow.src_layer.data["row"] = torch.arange(flow.num_src)
    small, src = without_unread(flow)
    own = flow.dst_in_src[flow.dst_in_src >= 0]
    others = sorted(set(flow.indices.tolist()) - set(own.tolist()))
    assert src.tolist() == [*own.tolist(), *others]
    same_nodes(small.src_layer, flow.src_layer, src)
    assert small.src_layer.data["row"].equal(src)
    assert small.dst_layer is flow.dst_layer
    assert (small.num_src, small.indptr.tolist()) == (len(src), flow.indptr.tolist())
    assert src[small.indices].equal(flow.indices)
    assert [int(src[v]) if v >= 0 else -1 for v in small.dst_in_src] == flow.dst_in_src.tolist()
    assert small.parent_eid.equal(flow.parent_eid)
    assert small.weight.equal(flow.weight)


def test_edges_against_their_direction_are_refused():
    graph = Graph.typed({"author": 4, "paper": 4}, {RELATIONS[0]: ([0, 1], [2, 2])})
    flow = NeighborSampler(graph.view("out"), [2])([0]).flows[0]
    with pytest.raises(ValueError, match="enter nodes of another type than its destinations"):
        entering(flow, [RELATIONS[0]])
