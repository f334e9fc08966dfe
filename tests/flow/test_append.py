"""append: the joint layer, the order of its rows, its frame, and everything that must go on working
afterwards.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.effort import examples
from hypothesis import assume, given, strategies as st

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    create_node_flow,
    flow_from_edges,
    fn,
)
from nodeflow.testing import assert_same_node_flow, assert_valid, graphs, node_flows, seeds


def parent_edges(batch: NodeFlow, i: int, j: int) -> list[tuple[int, int, int, float]]:
    """The edges of a flow by parent ids (source, destination, edge) and weight, in order."""
    flow = batch.flows[i, j]
    src, dst = flow.edges()
    ends = batch.layers[i].parent_nid[src].tolist(), batch.layers[j].parent_nid[dst].tolist()
    return list(zip(*ends, flow.parent_eid.tolist(), flow.weight.tolist(), strict=True))


@given(node_flows(), st.data())
def test_cut_and_joined_again_it_is_the_same(batch, data):
    at = data.draw(st.integers(0, batch.num_layers - 1))
    joined = batch[: at + 1].append(batch[at:])
    assert_valid(joined)
    inside = {(i, j): batch.flows[i, j] for i, j in batch.flows.pairs() if j <= at or i >= at}
    assert set(joined.flows.pairs()) == set(inside)
    if len(inside) == len(batch.flows.pairs()):  # no flow skips the cut
        assert_same_node_flow(joined, batch)
    for pair, flow in inside.items():
        assert joined.flows[pair].structure is flow.structure
        assert joined.flows[pair].dst_in_src.tolist() == flow.dst_in_src.tolist()
    assert joined.parent is batch.parent


@given(graphs(min_nodes=1), st.data())
def test_layers_in_another_order_hold_the_same_edges(graph, data):
    options = {"include_dst": data.draw(st.booleans()), "seed": data.draw(st.integers(0, 3))}
    second = NeighborSampler(graph, [1, 2], **options)(data.draw(seeds(graph)))
    nodes = data.draw(st.permutations(second.front.parent_nid.tolist()))
    first = NeighborSampler(graph, [2], **options)(nodes)
    first.back.data.update({"both": torch.ones(len(nodes)), "mine": torch.ones(len(nodes))})
    second.front.data.update({"both": torch.zeros(len(nodes)), "id": second.front.parent_nid * 10})
    joined = first.append(second)
    assert_valid(joined)
    assert joined.layers[1].parent_nid.tolist() == nodes
    assert joined.layer_sizes == (*first.layer_sizes, *second.layer_sizes[1:])
    assert parent_edges(joined, 0, 1) == parent_edges(first, 0, 1)
    for i in (0, 1):
        assert parent_edges(joined, i + 1, i + 2) == parent_edges(second, i, i + 1)
    assert joined.ldata[1]["both"].tolist() == [1] * len(nodes)  # this one's where both have it
    assert joined.ldata[1]["id"].tolist() == [v * 10 for v in nodes]
    assert torch.equal(joined.seeds, second.seeds)
    assert torch.equal(joined.seed_index, second.seed_index)
    for flow in joined.flows:
        held = flow.src_layer.parent_nid.tolist()
        rows = [held.index(v) if v in held else -1 for v in flow.dst_layer.parent_nid.tolist()]
        assert flow.dst_in_src.tolist() == rows
        if -1 not in rows:
            assert torch.equal(flow.take_dst(flow.src_layer.parent_nid), flow.dst_layer.parent_nid)
    assert "id" not in first.back.data
    assert "mine" not in second.front.data


def test_seeds_of_a_last_layer_that_is_the_joint_one():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    first = FullSampler(graph, 1)([0, 1, 2])
    last = FullSampler(graph, 1)([2, 0, 1, 2])[-1:]
    joined = first.append(last)
    assert joined.num_flows == 1
    assert joined.seeds.tolist() == [0, 1, 2]
    assert joined.seeds[joined.seed_index].tolist() == [2, 0, 1, 2]
    joined.validate()


def test_flows_that_skip_layers_are_renumbered_too(graph):
    def flow(src: list[int], num_src: int, num_dst: int) -> Any:
        return flow_from_edges(
            src, [0] * len(src), num_src=num_src, num_dst=num_dst, data={"src": torch.tensor(src)}
        )

    first = create_node_flow(
        {(0, 1): flow([0], 1, 2), (1, 2): flow([1], 2, 3), (0, 2): flow([0, 0], 1, 3)},
        [[0], None, [1, 2, 3]],
    )
    parts = {(0, 1): flow([0, 2], 3, 1), (1, 2): flow([0], 1, 1), (0, 2): flow([1, 2, 2], 3, 1)}
    second = create_node_flow(parts, [[3, 1, 2], None, [4]], parent=graph)
    joined = first.append(second)
    assert_valid(joined)
    assert joined.flows.pairs() == [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (2, 4)]
    assert joined.flows[2].indices.tolist() == [2, 1]  # 3 and 2 as [1, 2, 3] numbers them
    assert joined.flows[2, 4].indices.tolist() == [0, 1, 1]
    assert joined.fdata[2, 4]["src"].tolist() == [1, 2, 2]  # edges keep their order
    assert joined.parent is graph
    joined.ldata[2]["h"] = torch.tensor([1.0, 2.0, 3.0])
    joined.flow_compute((2, 4), fn.copy_u("h", "m"), fn.sum("m", "h"))
    assert joined.ldata[4]["h"].tolist() == [5]


def test_pooled_layers_join_by_position():
    up = flow_from_edges([0, 1], [0, 1], num_src=2, num_dst=2)
    pooled = create_node_flow([up], [[3, 4], None])
    other = create_node_flow([up], [None, [4, 3]])
    joined = pooled.append(other)
    assert_valid(joined)
    assert [layer.has_parent for layer in joined.layers] == [True, False, True]
    with pytest.raises(ValueError, match="append needs the same nodes in Layer"):
        other.append(other)


def test_a_batch_grows_layer_by_layer_from_the_latest_activations():
    ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"h": torch.arange(4.0)})
    batch = FullSampler(ring, 1)([2, 0, 3, 1])
    batch.copy_from_parent({0: ["h"]}, None)
    for step in range(4):
        batch.flow_compute(-1, fn.copy_u("h", "m"), fn.sum("m", "h"))
        latest = dict(zip(batch.seeds.tolist(), batch.back.data["h"].tolist(), strict=True))
        assert latest == {v: float((v - step - 1) % 4) for v in range(4)}
        grown = batch.append(
            FullSampler(ring, 1)(torch.randperm(4, generator=torch.Generator().manual_seed(step)))
        )
        assert grown.num_flows == batch.num_flows + 1
        assert grown.flows[0].structure is batch.flows[0].structure
        assert grown.ldata[0]["h"] is batch.ldata[0]["h"]
        assert grown.ldata[-2]["h"] is batch.back.data["h"]
        assert_valid(grown)
        batch = grown


def test_a_part_without_a_parent_takes_the_others(graph):
    first = FullSampler(graph, 1)([1, 2])
    bare = create_node_flow([], [[2, 1]])
    assert (
        first.append(bare).parent
        is bare.append(create_node_flow([], [[1, 2]], parent=graph)).parent
        is graph
    )
    strange = create_node_flow([flow_from_edges([0], [0], num_src=1, num_dst=2)], [[99], [1, 2]])
    with pytest.raises(
        IndexError, match=r"layers\[0\].parent_nid\[0\] is 99, but node ids go from 0 to 5"
    ):
        strange.append(create_node_flow([], [[1, 2]], parent=graph))


@examples(25)
@given(node_flows(max_layers=2), node_flows(max_layers=2))
def test_any_two_join_exactly_when_their_nodes_agree(first, second):
    back = first.back
    front = second.front
    same = back.has_parent == front.has_parent and len(back) == len(front)
    if same and back.has_parent:
        same = sorted(back.parent_nid.tolist()) == sorted(front.parent_nid.tolist())
    assume(first.parent is None or second.parent is None)
    if same and first.parent is second.parent:
        assert_valid(first.append(second))
    elif not same:
        with pytest.raises(ValueError, match="append needs"):
            first.append(second)
