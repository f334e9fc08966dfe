"""One graph of a NodeFlow: its union, with layers and flows as bits to read them again, and that
over all layers.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from _support.loader_tools import random_graph
from _support.old_nodeflow import Edges, edge_lists
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import (
    Graph,
    LadiesSampler,
    NeighborSampler,
    NodeFlow,
    RandomWalkSampler,
    TemporalNeighborSampler,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.graph import Schema
from nodeflow.testing import graphs


def nodes(layer: Any) -> list[tuple[int, int]]:
    context = [0] * len(layer) if layer.context is None else layer.context.tolist()
    return list(zip(layer.parent_nid.tolist(), context, strict=True))


def types_of(batch: NodeFlow) -> Any:
    """The number of the type of a node and its context, after which a union sorts them."""
    ranges = list(batch.layers[0].schema.nodes.values())
    return lambda pair: next(i for i, ids in enumerate(ranges) if pair[0] in ids)


def assert_union(batch: NodeFlow, *, in_order: bool = True) -> Graph:
    """Layers as sets, and flows as multisets of (source, destination, parent edge, weight), are
    those of the batch.
    """
    graph = batch.union(weights=True)
    context = (
        graph.ndata["context"]
        if "context" in graph.ndata
        else torch.zeros(graph.num_nodes, dtype=torch.int64)
    )
    node = list(zip(graph.ndata["parent_nid"].tolist(), context.tolist(), strict=True))
    wanted_nodes = list(dict.fromkeys(pair for layer in batch.layers for pair in nodes(layer)))
    assert node == (wanted_nodes if in_order else sorted(wanted_nodes, key=types_of(batch)))
    for i, layer in enumerate(batch.layers):
        held = (graph.ndata["layers"] >> i & 1).nonzero().flatten().tolist()
        assert {node[k] for k in held} == set(nodes(layer))
    src, dst = (end.tolist() for end in graph.edges())
    most: Counter[Any] = Counter()
    for k, flow in enumerate([flow for _, flow in batch.flows.items()]):
        below = nodes(flow.src_layer)
        above = nodes(flow.dst_layer)
        eid = flow.parent_eid.tolist() if flow.has_parent else [-1] * flow.num_edges
        ends = zip(*(end.tolist() for end in flow.edges()), eid, flow.weight.tolist(), strict=True)
        wanted = Counter((below[u], above[v], e, w) for u, v, e, w in ends)
        column = (
            graph.edata["parent_eid"].tolist()
            if "parent_eid" in graph.edata
            else [-1] * graph.num_edges
        )
        held = (graph.edata["flows"] >> k & 1).nonzero().flatten().tolist()
        weight = graph.edata["weight"][:, k]
        assert (
            Counter((node[src[e]], node[dst[e]], column[e], float(weight[e])) for e in held)
            == wanted
        )
        gone = graph.edata["flows"] >> k & 1 == 0
        assert not weight[gone].any()
        most |= Counter((u, v, e) for u, v, e, _ in wanted.elements())
    assert graph.num_edges == most.total()
    return graph


@st.composite
def batches(draw: st.DrawFn) -> NodeFlow:
    graph = draw(graphs(min_nodes=1))
    seeds = draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=5))
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=3))
    graph.edata["time"] = torch.arange(graph.num_edges) % 5
    if draw(st.booleans()):
        times = draw(st.lists(st.integers(0, 5), min_size=len(seeds), max_size=len(seeds)))
        return TemporalNeighborSampler(graph, fanouts)(seeds, times=times)
    modes: list[dict[str, Any]] = [
        {}, {"replace": True}, {"reuse": True}, {"include_dst": False}, {"disjoint": True}, {"direction": "out"},
    ]  # fmt: skip
    return viewed(NeighborSampler, graph, fanouts, **draw(st.sampled_from(modes)))(seeds)


TYPES = {"a": 4, "empty": 0, "b": 5}
ENDS = [("b", "x", "a"), ("a", "y", "b"), ("b", "none", "empty"), ("b", "y", "b")]


@given(
    st.integers(0, 5),
    st.lists(st.integers(0, 8), max_size=5),
    st.sampled_from([{}, {"replace": True}, {"disjoint": True}]),
)
def test_a_union_has_the_types_of_its_graph(
    seed: int, seeds: list[int], options: dict[str, Any]
) -> None:
    random = torch.Generator().manual_seed(seed)
    edges = {}
    for a, name, b in ENDS:
        size = 7 if b != "empty" else 0
        edges[a, name, b] = tuple(
            torch.randint(max(TYPES[of], 1), (size,), generator=random) for of in (a, b)
        )
    graph = Graph.typed({name: {"own": torch.ones(size)} for name, size in TYPES.items()}, edges)
    batch = viewed(NeighborSampler, graph, [2, 2], **options)(seeds)
    union = assert_union(batch, in_order=False)
    assert [list(union.schema.nodes), list(union.schema.relations)] == [list(TYPES), ENDS]
    assert not any(len(part.data) for part in (*union.nodes.values(), *union.relations.values()))
    for name, part in union.nodes.items():
        ids = union.ndata["parent_nid"][part.ids.start : part.ids.stop]
        assert all(nid in graph.nodes[name].ids for nid in ids.tolist())
    src, dst = union.edges()
    for relation, of in union.relations.items():
        at = slice(of.ids.start, of.ids.stop)
        assert all(
            eid in graph.relations[relation].ids for eid in union.edata["parent_eid"][at].tolist()
        )
        assert (
            len(union.nodes[relation[0]].to_local(src[at]))
            == len(union.nodes[relation[2]].to_local(dst[at]))
            == len(of)
        )


def test_edges_against_their_direction_leave_one_type() -> None:
    graph = Graph.typed({"a": 2, "b": 2}, {("a", "x", "b"): ([0, 1], [0, 1])})
    assert assert_union(NeighborSampler(graph.view("out"), [2])([0, 1])).schema.nodes.keys() == {
        "node"
    }
    walks = RandomWalkSampler(graph.view("out"), 1, num_walks=3, walk_length=2)([0, 1])
    assert assert_union(walks).schema.nodes.keys() == {"node"}
    assert NeighborSampler(graph, [2])([2]).union().schema == Schema(
        {"a": 1, "b": 1}, {("a", "x", "b"): 1}
    )
    assert NeighborSampler(Graph.typed({"a": 2, "b": 2}, {}), [2])([3, 0]).union().schema == Schema(
        {"a": 1, "b": 1}, {}
    )


@given(batches())
def test_layers_and_flows_can_be_read_again(batch):
    assert_union(batch)


def test_other_node_flows():
    graph = random_graph()
    assert_union(LadiesSampler(graph, [20, 10])(range(8)))
    whole = assert_union(create_full_node_flow(graph, 3))
    assert (whole.num_nodes, whole.num_edges) == (graph.num_nodes, graph.num_edges)
    assert whole.edata["flows"].eq(7).all()
    loops = assert_union(create_full_node_flow(graph, 2, add_self_loop=True))
    assert loops.num_edges == graph.num_edges + graph.num_nodes
    flows = [
        flow_from_edges([0, 0, 1], [0, 0, 0], num_src=2, num_dst=1),
        flow_from_edges([0], [0], num_src=1, num_dst=1),
    ]
    by_hand = assert_union(create_node_flow(flows, [[7, 3], [3], [7]]))
    assert "parent_eid" not in by_hand.edata
    assert by_hand.edata["flows"].tolist() == [2, 1, 1, 1]


def test_flows_that_skip_layers_come_last():
    flows = {(0, 1): ([0], [0], 2, 1), (1, 2): ([0], [0], 1, 1), (0, 2): ([0, 1], [0, 0], 2, 1)}
    made = {
        pair: flow_from_edges(u, v, num_src=n, num_dst=m) for pair, (u, v, n, m) in flows.items()
    }
    batch = create_node_flow(made, [[4, 5], [4], [4]])
    graph = assert_union(batch)
    assert graph.edata["flows"].tolist() == [7, 4]


def test_types_of_bits():
    graph = Graph.from_edges([0], [1])
    kinds = {7: torch.uint8, 8: torch.int16, 16: torch.int32, 62: torch.int64}
    for count, kind in kinds.items():
        union = create_full_node_flow(graph, count).union()
        assert union.ndata["layers"].dtype == kind
        assert union.edata["flows"].tolist() == [2**count - 1]
        assert list(union.edata) == ["flows", "parent_eid"]
    with pytest.raises(ValueError, match="at most 63, and this NodeFlow has 64"):
        create_full_node_flow(graph, 63).union()


def test_layers_without_parent_nodes():
    batch = create_node_flow([flow_from_edges([0], [0], num_src=1, num_dst=1)], [[0], None])
    with pytest.raises(ValueError, match="no parent nodes"):
        batch.union()


def test_no_seeds_and_no_flows():
    batch = NeighborSampler(random_graph(), [2, 2])([])
    assert (batch.union().num_nodes, batch.union().num_edges) == (0, 0)
    alone = NeighborSampler(random_graph(), [2])([3, 4])[1:].union()
    assert alone.ndata["parent_nid"].tolist() == [3, 4]
    assert alone.num_edges == 0


@given(
    edges=edge_lists(),
    fanouts=st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=3),
    own=st.booleans(),
)
def test_ids_are_those_of_the_nodeflow(edges: Edges, fanouts: list[int], own: bool) -> None:
    parent = Graph.from_edges(edges.src, edges.dst, num_nodes=edges.num_nodes)
    batch = NeighborSampler(parent, fanouts, include_dst=own)(range(edges.num_nodes))
    graph = batch.as_graph()
    starts = batch.layer_offsets()
    first = batch.flow_offsets()
    assert (graph.num_nodes, graph.num_edges) == (sum(batch.layer_sizes), sum(batch.flow_sizes))
    assert (starts[-1], first[-1]) == (graph.num_nodes, graph.num_edges)
    for i, flow in enumerate(batch.flows):
        src, dst = flow.edges()
        assert batch.layers(i).tolist() == list(range(starts[i], starts[i + 1]))
        assert batch.flows(i).tolist() == list(range(first[i], first[i + 1]))
        found = graph.find_edges(batch.flows(i))
        assert torch.equal(found[0], src + starts[i])
        assert torch.equal(found[1], dst + starts[i + 1])
        assert torch.equal(graph.in_degrees(batch.layers(i + 1)), batch.in_degrees(i + 1))
        assert torch.equal(graph.out_degrees(batch.layers(i)), batch.out_degrees(i))


def test_flows_that_skip_layers_come_last_in_the_graph() -> None:
    low, high = (flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=n) for n in (2, 1))
    skip = flow_from_edges([1], [0], num_src=2, num_dst=1)
    batch = create_node_flow({(0, 1): low, (0, 2): skip, (1, 2): high})
    assert (batch.layer_offsets(), batch.flow_offsets()) == ((0, 2, 4, 5), (0, 2, 4, 5))
    ends = [end.tolist() for end in batch.as_graph().edges()]
    assert ends == [[0, 1, 2, 3, 1], [2, 2, 4, 4, 4]]
    assert [end.tolist() for end in batch.as_graph().find_edges(batch.flows(0, 2))] == [[1], [4]]


def test_a_single_layer() -> None:
    batch = create_node_flow([], [[4, 2]])
    assert (batch.as_graph().num_nodes, batch.as_graph().num_edges) == (2, 0)
    assert (batch.layer_offsets(), batch.flow_offsets()) == ((0, 2), (0,))
