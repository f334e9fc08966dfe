"""The promises of a NodeFlow: nothing rebinds, seeds and layers keep their order, slices and moves
keep the rest.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
    fn,
)
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import Choice
from nodeflow.testing import assert_same_node_flow, assert_valid, graphs, node_flows, seeds
from nodeflow.transform import add_reverse_edges, add_self_loops


def snapshot(batch: NodeFlow) -> dict[str, Any]:
    """Everything that a NodeFlow promises not to change, by value."""
    flows = {pair: batch.flows[pair] for pair in batch.flows.pairs()}
    return {
        "layers": [
            layer.parent_nid.tolist() if layer.has_parent else layer.num_nodes
            for layer in batch.layers
        ],
        "flows": {
            pair: (f.indptr.tolist(), f.indices.tolist(), f.weight.tolist())
            for pair, f in flows.items()
        },
        "eid": {pair: f.parent_eid.tolist() for pair, f in flows.items() if f.has_parent},
        "seeds": batch.seed_index.tolist(),
    }


# ---- immutability


@given(node_flows())
def test_no_attribute_of_any_part_can_be_rebound(batch):
    before = snapshot(batch)
    for part in (batch, *batch.layers, *(batch.flows[pair] for pair in batch.flows.pairs())):
        names = [name for name in dir(part) if not name.startswith("__")]
        assert len(names) > 5
        for name in [*names, "something_new"]:
            with pytest.raises(
                AttributeError, match=f"{type(part).__name__} is immutable: cannot set '{name}'"
            ):
                setattr(part, name, None)
            with pytest.raises(AttributeError, match="immutable"):
                delattr(part, name)
        assert not hasattr(part, "__dict__")
    assert snapshot(batch) == before


@given(node_flows(), st.data())
def test_public_calls_leave_the_structure_alone(batch, data):
    before = snapshot(batch)
    for tensor in (
        *(batch.layers(i) for i in range(batch.num_layers)),
        *(batch.flows(*pair) for pair in batch.flows.pairs()),
        *(batch.in_degrees(i) for i in range(batch.num_layers)),
        *(batch.out_degrees(i) for i in range(batch.num_layers)),
        *(degrees for flow in batch.flows for degrees in (flow.in_degrees, flow.out_degrees)),
        batch.map_to_parent_nid([]),
    ):
        tensor.fill_(7)  # what a call computes belongs to the caller
    for frame in batch.ldata:
        frame["x"] = torch.ones(frame.num_rows, 2)
    for i in range(batch.num_flows):
        batch.flow_compute(i, fn.copy_u("x", "m"), fn.sum("m", "x"))
    batch[:].append(batch[-1:])
    batch.to("cpu")
    assert snapshot(batch) == before
    batch.validate()


def test_a_sampler_of_ones_own_may_reuse_its_buffers(graph):
    indptr, src, eid, weight = (torch.tensor(x) for x in ([0, 1], [2], [4], [3.0]))

    class Fixed(Sampler):
        def choose(self, dst: torch.Tensor, step: Any) -> Choice:
            return Choice(indptr, src=src, eid=eid, weight=weight)

    batch = Fixed(graph, 1)([2])
    before = snapshot(batch)
    for tensor in (indptr, src, eid, weight):
        tensor.zero_()
    assert snapshot(batch) == before


# ---- order


flags = {"include_dst": st.booleans(), "replace": st.booleans()}
sampler_options = st.fixed_dictionaries(
    {**flags, "direction": st.sampled_from(["in", "out"]), "seed": st.integers(0, 5)}
)


@given(graphs(min_nodes=1), st.data())
def test_self_terms_are_right_with_and_without_destinations(graph, data):
    sampler = viewed(NeighborSampler, graph, [-1, -1], **data.draw(sampler_options))
    batch = sampler(data.draw(seeds(graph)))
    for flow in batch.flows:
        held = flow.src_layer.parent_nid.tolist()
        rows = [held.index(v) if v in held else -1 for v in flow.dst_layer.parent_nid.tolist()]
        assert flow.dst_in_src.tolist() == rows
        if -1 in rows:
            with pytest.raises(
                ValueError, match=f"destination {rows.index(-1)} of flow .* include_dst=True"
            ):
                flow.take_dst(flow.src_layer.parent_nid)
        else:
            assert torch.equal(flow.take_dst(flow.src_layer.parent_nid), flow.dst_layer.parent_nid)
        with pytest.raises(ValueError, match=f"rows.* {flow.num_src + 1}|{flow.num_src} rows"):
            flow.take_dst(torch.zeros(flow.num_src + 1))


# ---- slices and moves


@given(node_flows(), st.integers(-5, 5) | st.none(), st.integers(-5, 5) | st.none())
def test_slices_are_node_flows_of_consecutive_layers(batch, start, stop):
    numbers = range(batch.num_layers)[start:stop]
    if not numbers:
        with pytest.raises(ValueError, match="a slice must take consecutive layers, at least one"):
            batch[start:stop]
        return
    part = batch[start:stop]
    assert_valid(part)
    assert part.parent is batch.parent
    assert part.layer_sizes == tuple(batch.layer_sizes[i] for i in numbers)
    kept = [(i, j) for i, j in batch.flows.pairs() if i in numbers and j in numbers]
    assert part.flows.pairs() == [(i - numbers[0], j - numbers[0]) for i, j in kept]
    for (i, j), pair in zip(kept, part.flows.pairs(), strict=True):
        old = batch.flows[i, j]
        new = part.flows[pair]
        assert new.structure is old.structure
        assert new.dst_in_src.tolist() == old.dst_in_src.tolist()
        assert all(new.data[name] is old.data[name] for name in old.data)
    if numbers[-1] == batch.num_layers - 1:
        assert torch.equal(part.seed_index, batch.seed_index)
    else:
        assert part.seed_index.tolist() == list(range(part.back.num_nodes))
    part.front.data["only here"] = torch.ones(part.front.num_nodes)
    assert "only here" not in batch.layers[numbers[0]].data
    if len(numbers) == batch.num_layers:
        del part.front.data["only here"]
        assert_same_node_flow(part, batch)


@given(node_flows())
def test_moving_to_where_it_is_changes_nothing(batch):
    moved = batch.to("cpu")
    assert_same_node_flow(moved, batch)
    assert_valid(moved)
    assert moved.parent is batch.parent
    assert moved.device == torch.device("cpu")


def test_weights_are_made_once_and_only_when_asked_for(graph):
    batch = NeighborSampler(graph, [1, 1])([1, 2])
    flow = batch.flows[1]
    assert flow._weight._make is not None
    assert flow.weight is flow.weight
    assert flow.weight.dtype == torch.float32
    assert flow.weight.tolist() == [3, 2]  # in-degree over number drawn


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("options", [{}, {"reuse": True}, {"include_dst": False}])
def test_a_trip_to_a_gpu(graph, options):
    batch = NeighborSampler(graph, [2, 2], **options)([1, 2, 1])
    batch.copy_from_parent()
    moved = batch.to("cuda")
    moved.validate()
    assert moved.device.type == "cuda"
    assert moved.ldata[0]["feat"].device.type == "cuda"
    assert moved.flows[0].weight.device.type == "cuda"
    assert_same_node_flow(moved, batch)
    assert_same_node_flow(moved.to("cpu"), batch)
    assert_same_node_flow(moved[1:].to("cpu"), batch[1:])
    assert torch.equal(moved.map_to_parent_nid(moved.layers(0)).cpu(), batch.front.parent_nid)
    assert torch.equal(moved.map_from_parent_nid(0, batch.front.parent_nid).cpu(), batch.layers(0))
    assert torch.equal(
        moved.flows[0].structure.transposed()[1].cpu(), batch.flows[0].structure.transposed()[1]
    )
    assert (moved.flows[0].to_scipy() != batch.flows[0].to_scipy()).nnz == 0
    moved.copy_from_parent()
    moved.ldata[-1]["out"] = moved.ldata[-1]["feat"] * 2
    moved.copy_to_parent({-1: ["feat"]}, None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_pinned_memory(graph):
    batch = FullSampler(graph, 2)([1, 2])
    batch.copy_from_parent()
    pinned = batch.pin_memory()
    assert_same_node_flow(pinned, batch)
    for tensor in (
        pinned.flows[0].indptr,
        pinned.flows[0].indices,
        pinned.front.parent_nid,
        pinned.ldata[0]["feat"],
    ):
        assert tensor.is_pinned()


def test_what_is_kept_under_inference_mode_serves_training_later():
    graph = Graph.from_edges([0, 1, 2, 3], [1, 1, 2, 2])
    for reuse in (False, True):
        flow = NeighborSampler(graph, [2, 1], reuse=reuse)([1, 2]).flows[0]
        with torch.inference_mode():
            (
                flow.weight,
                flow.edges(),
                flow.structure.transposed(),
                flow.structure.buckets(),
                flow.parent_eid,
            )
        h = torch.rand(flow.num_src, 4, requires_grad=True)
        flow.aggregate(h, "sum", weight=flow.weight).sum().backward()
        flow.aggregate(h, "max").sum().backward()
        h[flow.edges()[1]].sum().backward()


def test_with_other_seeds_what_is_not_given_stays():
    batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1])([2, 0, 2])
    index = torch.tensor([1, 1, 0])
    ids = torch.tensor([7, 8, 9])
    assert batch.seed_index.tolist() == [0, 1, 0]
    assert batch.with_seeds(seed_ids=ids).seed_index.tolist() == [0, 1, 0]
    both = batch.with_seeds(seed_ids=ids).with_seeds(seed_index=index)
    assert (both.seed_index.tolist(), both.seed_ids.tolist()) == ([1, 1, 0], [7, 8, 9])


def test_torch_default_device_is_not_read():
    graph = Graph.from_edges([0, 1], [1, 2], edata={"w": torch.ones(2)})
    with torch.device("meta"):
        full = create_full_node_flow(graph, 1)
        made = create_node_flow([flow_from_edges([0], [0], num_src=1, num_dst=1)])
        more = add_self_loops(add_reverse_edges(graph, mark="new"))
        ids = full.layers(1)
    devices = [
        full.seeds,
        full.flows[0].indices,
        made.seed_index,
        made.flows[0].indptr,
        more.edata["new"],
        ids,
    ]
    assert {tensor.device.type for tensor in devices} == {"cpu"}
    full.validate()


@pytest.mark.parametrize("options", [{"reuse": True}, {}])
def test_a_move_keeps_shared_memory_shared(options):
    graph = Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 5])
    batches = [
        NeighborSampler(graph, [2, 2, 2], **options)([5, 4]),
        create_full_node_flow(graph, 3),
    ]
    for batch in batches:
        # "meta" stands for another device: everything is a new tensor there
        assert sharing(batch.to("meta")) == sharing(batch)


def sharing(batch: NodeFlow) -> list[tuple[torch.Size, int]]:
    """Of every tensor its shape, and the first tensor that has the same memory."""
    flows = [
        tensor for flow in batch.flows for tensor in (flow.indptr, flow.indices, flow.parent_eid)
    ]
    tensors = [layer.parent_nid for layer in batch.layers] + flows
    memory = [tensor.untyped_storage()._cdata for tensor in tensors]
    return [(tensor.shape, memory.index(one)) for tensor, one in zip(tensors, memory, strict=True)]


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_page_locked_memory_needs_a_gpu():
    graph = Graph.from_edges([0], [1], ndata={"x": torch.ones(2)})
    batch = NeighborSampler(graph, [1])([1])
    words = r"^pin_memory needs a GPU that torch can use \(.*\); without one leave it out$"
    loader = NodeFlowLoader(NeighborSampler(graph, [1]), [1], batch_size=1, pin_memory=True)
    for call in (batch.pin_memory, graph.ndata.pin_memory, lambda: list(loader)):
        with pytest.raises(ValueError, match=words):
            call()
