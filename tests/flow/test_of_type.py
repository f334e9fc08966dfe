"""``layer.of`` and ``flow.of``: the nodes of a type and the edges of a relation in a batch, with
their frames.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st

from nodeflow import (
    ALL,
    Graph,
    Layer,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    create_full_node_flow,
    flow_from_edges,
)
from nodeflow.propagation import Propagation

TYPES = {"author": 5, "venue": 2, "paper": 8, "empty": 0}
RELATIONS = [("author", "writes", "paper"), ("paper", "cites", "paper"), ("venue", "prints", "paper"),
             ("paper", "rev_writes", "author")]  # fmt: skip


def typed(seed: int = 0, edges: int = 20) -> Graph:
    generator = torch.Generator().manual_seed(seed)

    def ids(name: str) -> torch.Tensor:
        return torch.randint(TYPES[name], (edges,), generator=generator)

    nodes: dict[str, Any] = {
        name: {"x": torch.rand(size, width, generator=generator), "id": torch.arange(size)}
        for width, (name, size) in enumerate(TYPES.items(), 1)
    }
    del nodes["venue"]["x"]
    columns = {"w": torch.rand(edges, generator=generator)}
    pairs = {r: (ids(r[0]), ids(r[2])) for r in RELATIONS}
    graph = Graph.typed(
        nodes, {r: (*ends, columns) if r in RELATIONS[:2] else ends for r, ends in pairs.items()}
    )
    graph.ndata["all"] = torch.arange(graph.num_nodes)
    return graph


def batch_of(graph: Graph, seeds: list[int], fanout: int = 3) -> NodeFlow:
    return NeighborSampler(graph, [fanout, fanout], seed=1)(seeds)


@given(st.lists(st.integers(0, 14), min_size=1, max_size=6), st.integers(0, 3), st.integers(0, 30))
def test_types_and_relations_part_a_batch(seeds, seed, edges):
    graph = typed(seed, edges)
    batch = batch_of(graph, seeds)
    for layer in batch.layers:
        rows = torch.cat([layer.of(name).rows for name in TYPES])
        assert rows.sort().values.tolist() == list(range(layer.num_nodes))
        for name, part in graph.nodes.items():
            held = layer.of(name)
            assert len(held) == len(held.parent_nid) == held.data.num_rows
            assert torch.equal(part.to_graph(held.parent_nid), layer.parent_nid[held.rows])
    for i in range(batch.num_flows):
        flow = batch.flows[i]
        parts = [flow.of(relation) for relation in RELATIONS]
        assert sum(part.num_edges for part in parts) == flow.num_edges
        h = torch.rand(flow.num_src, 2, dtype=torch.float64)
        total = sum(part.aggregate(h, weight=part.weight.double()) for part in parts)
        torch.testing.assert_close(total, flow.aggregate(h, weight=flow.weight.double()))
        for relation, part in zip(RELATIONS, parts, strict=True):
            assert part.structure.num_dst == flow.num_dst
            of_graph = graph.relations[relation]
            assert all(e in of_graph.ids for e in part.parent_eid.tolist())
            src, dst = part.edges()
            ends = graph.find_edges(part.parent_eid)
            assert torch.equal(flow.src_layer.parent_nid[src], ends[0])
            assert torch.equal(flow.dst_layer.parent_nid[dst], ends[1])
            assert torch.equal(part.dst_in_src, flow.dst_in_src)


def check_columns(batch: NodeFlow, graph: Graph) -> None:
    for layer in batch.layers:
        assert torch.equal(layer.data["all"], layer.parent_nid)
        for name in TYPES:
            held = layer.of(name)
            assert torch.equal(held.data["id"], held.parent_nid)
            assert ("x" in held.data) == (name != "venue")
            if name != "venue":
                assert torch.equal(held.data["x"], graph.nodes[name].data["x"][held.parent_nid])
    for i in range(batch.num_flows):
        for relation in RELATIONS[:2]:
            part = batch.flows[i].of(relation)
            of_graph = graph.relations[relation]
            assert torch.equal(
                part.data["w"], of_graph.data["w"][of_graph.to_local(part.parent_eid)]
            )


def test_columns_of_types_come_into_batches_and_travel():
    graph = typed()
    batch = batch_of(graph, [7, 8, 0, 5])
    batch.copy_from_parent()
    check_columns(batch, graph)
    check_columns(batch.to("cpu"), graph)
    check_columns(batch[1:], graph)
    check_columns(pickle.loads(pickle.dumps(batch)), graph)
    loader = NodeFlowLoader(NeighborSampler(graph, [2, 2]), range(15), 4, ndata=ALL, edata=ALL)
    for one in loader:
        check_columns(one, graph)
    for one in NodeFlowLoader(
        NeighborSampler(graph, [2]), range(15), 4, ndata={0: ["x"], -1: ["id"]}
    ):
        assert list(one.layers[0].of("paper").data) == ["x"]
        assert list(one.layers[-1].of("paper").data) == ["id"]
        assert not one.layers[0].of("venue").data


def test_columns_of_types_go_back_to_the_graph():
    graph = typed()
    batch = batch_of(graph, [7, 8, 0])
    for name in TYPES:
        part = batch.back.of(name)
        part.data["score"] = part.parent_nid * 2.0
    batch.copy_to_parent({-1: ["score"]})
    # nodes 7 and 8 are papers 0 and 1
    assert graph.nodes["paper"].data["score"].tolist() == [0, 2, 0, 0, 0, 0, 0, 0]
    assert "score" not in graph.ndata


def test_a_frame_of_a_type_is_kept_and_not_shared_with_copies():
    batch = batch_of(typed(), [7])
    batch.back.of("paper").data["h"] = torch.ones(1)
    other = batch[1:]
    assert other.back.of("paper").data["h"].tolist() == [1]
    other.back.of("paper").data["h"] = torch.zeros(1)
    assert batch.back.of("paper").data["h"].tolist() == [1]
    part = batch.flows[0].of("cites")
    assert batch.flows[0].of(("paper", "cites", "paper")) is part


def test_without_types_there_is_one_of_each():
    graph = Graph.from_edges([0, 1], [1, 2], ndata={"x": torch.ones(3)}, edata={"w": torch.ones(2)})
    batch = create_full_node_flow(graph, 2)
    batch.copy_from_parent()
    assert batch.layers[0].of("node").data is batch.layers[0].data
    assert batch.layers[0].of("node").rows.tolist() == [0, 1, 2]
    assert batch.flows[0].of("edge") is batch.flows[0]


def test_a_batch_by_hand_has_the_types_of_its_graph():
    graph = typed()
    layer = Layer(2, torch.tensor([7, 0]))
    assert NodeFlow([layer], parent=graph).layers[0].of("paper").rows.tolist() == [0]
    other = Graph.from_edges([0], [1], num_nodes=15)
    assert NodeFlow([layer], parent=other).layers[0].of("node").rows.tolist() == [0, 1]


def test_edges_by_relation():
    graph = typed()
    batch = NeighborSampler(graph, [3], seed=1)(range(15))
    for flow in (
        batch.flows[0],
        pickle.loads(pickle.dumps(batch)).flows[0],
        Propagation(graph).flow(0, 15),
    ):
        cut = flow.by_relation
        edges = [cut.edges(graph.schema.number(relation)) for relation in RELATIONS]
        assert [len(own) for own in edges] == [
            flow.of(relation).num_edges for relation in RELATIONS
        ]
        assert torch.cat(edges).sort().values.tolist() == list(range(flow.num_edges))
        for own, relation in zip(edges, RELATIONS, strict=True):
            assert own.tolist() == sorted(own.tolist())
            assert torch.equal(flow.of(relation).parent_eid, flow.parent_eid[own])
        for own, relation in zip(edges, RELATIONS, strict=True):
            begins = flow.of(relation).indptr
            assert torch.equal(begins, torch.searchsorted(own, flow.indptr))
    loops = create_full_node_flow(Graph.from_edges([0], [1]), 1, add_self_loop=True).flows[0]
    assert (loops.by_relation.edges(0).tolist(), loops.parent_eid.tolist()) == ([1], [-1, 0, -1])
    with pytest.raises(ValueError, match="belongs to no graph"):
        flow_from_edges([0], [0], num_src=1, num_dst=1).by_relation  # noqa: B018


def test_flows_of_all_edges_have_the_columns_of_relations():
    graph = typed()
    flow = Propagation(graph).flow(4, 12).of("cites")
    own = graph.relations["cites"]
    assert torch.equal(flow.data["w"], own.data["w"][own.to_local(flow.parent_eid)])
    assert list(Propagation(graph).flow(0, 3).of("prints").data) == []
