"""Pickles of NodeFlows: about the size of the payload, bit for bit the same, with the parent left
behind.
"""

from __future__ import annotations

import copy
import gc
import io
import multiprocessing
import pickle
from typing import Any

import pytest
import scipy.sparse
import torch
from hypothesis import given

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
)
from nodeflow.testing import assert_same_node_flow, assert_valid, node_flows


def payload(batch: NodeFlow) -> int:
    """Bytes of all that ``batch`` holds, where parts that share memory count once."""
    tensors = [batch.seed_index, *(layer.parent_nid for layer in batch.layers if layer.has_parent)]
    frames = [layer.data for layer in batch.layers]
    for pair in batch.flows.pairs():
        flow = batch.flows[pair]
        tensors += [flow.indptr, flow.indices, *([flow.parent_eid] if flow.has_parent else [])]
        tensors += [] if flow._weight is None else [flow.weight]
        frames.append(flow.data)
    for column in (column for frame in frames for column in frame.values()):
        sparse = column.layout == torch.sparse_csr
        tensors += (
            [column.crow_indices(), column.col_indices(), column.values()] if sparse else [column]
        )
    spans: dict[int, list[tuple[int, int]]] = {}
    for tensor in tensors:
        start = tensor.storage_offset() * tensor.element_size()
        span = (start, start + tensor.numel() * tensor.element_size())
        spans.setdefault(tensor.untyped_storage().data_ptr(), []).append(span)
    total = 0
    for parts in spans.values():
        end = 0
        for start, stop in sorted(parts):
            total += max(0, stop - max(start, end))
            end = max(end, stop)
    return total


@pytest.fixture(scope="module")
def large() -> Graph:
    src, dst = torch.randint(0, 3_000, (2, 30_000), generator=torch.Generator().manual_seed(0))
    return Graph.from_edges(
        src,
        dst,
        num_nodes=3_000,
        ndata={"feat": torch.ones(3_000, 16)},
        edata={"w": torch.ones(30_000)},
    )


BATCHES: dict[str, Any] = {
    "resampled": lambda graph: NeighborSampler(graph, [5, 5, 5])(range(50)),
    "reused": lambda graph: NeighborSampler(graph, [5, 5, 5], reuse=True)(range(50)),
    "neighbours only": lambda graph: NeighborSampler(graph, [5, 5], include_dst=False)(range(50)),
    "full reused": lambda graph: FullSampler(graph, 3, reuse=True)(range(20)),
    "whole graph, 1 layer": lambda graph: create_full_node_flow(graph, 1),
    "whole graph, 5 layers": lambda graph: create_full_node_flow(graph, 5, add_self_loop=True),
    "a slice": lambda graph: FullSampler(graph, 2)(range(20))[1:],
    "appended": lambda graph: FullSampler(graph, 1)(range(3_000)).append(
        FullSampler(graph, 1)(range(3_000))
    ),
}


@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("columns", [False, True])
def test_a_pickle_is_as_large_as_its_payload(large, kind, columns):
    batch = BATCHES[kind](large)
    if columns:
        batch.copy_from_parent()
        wide = torch.ones(100_000, 4)
        for i, frame in enumerate(batch.ldata):
            frame["view"] = wide[7 : 7 + frame.num_rows]  # all of them views of one large tensor
            frame["sparse"] = scipy.sparse.eye(frame.num_rows, 50_000, k=i, format="csr")
    for protocol in (pickle.DEFAULT_PROTOCOL, pickle.HIGHEST_PROTOCOL):
        data = pickle.dumps(batch, protocol)
        assert len(data) <= 1.1 * payload(batch) + 4_000 + 400 * len(batch)
    same = pickle.loads(data)
    assert_same_node_flow(same, batch)
    assert_valid(same)
    assert payload(same) <= payload(batch)  # what was shared is shared again
    assert same.parent is large
    assert len(pickle.dumps(same, protocol)) <= len(data) + 1_000


def test_many_layers_cost_nothing(large):
    sizes = [len(pickle.dumps(create_full_node_flow(large, n))) for n in (1, 8)]
    assert sizes[1] - sizes[0] < 5_000
    # all is reached before
    reused = [len(pickle.dumps(FullSampler(large, n, reuse=True)([1]))) for n in (9, 11)]
    assert reused[1] - reused[0] < 0.1 * reused[0]


@given(node_flows())
def test_all_node_flows_survive_bit_for_bit(batch):
    file = io.BytesIO()
    torch.save(batch, file)
    file.seek(0)
    for same in (
        pickle.loads(pickle.dumps(batch)),
        copy.copy(batch),
        copy.deepcopy(batch),
        torch.load(file, weights_only=False),
    ):
        assert_same_node_flow(same, batch)
        assert_valid(same)
        assert same.parent is batch.parent
        assert repr(same) == repr(batch)
        for pair in batch.flows.pairs():
            assert same.flows[pair].dst_in_src.tolist() == batch.flows[pair].dst_in_src.tolist()


def test_copies_own_their_memory(graph):
    batch = FullSampler(graph, 1)([1])
    batch.copy_from_parent()
    before = batch.ldata[0]["feat"].clone()
    for same in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        same.ldata[0]["feat"].fill_(-1)
        same.flows[0].indices.fill_(0)
        assert torch.equal(batch.ldata[0]["feat"], before)
    batch.validate()


def test_layers_and_flows_travel_alone_as_well(graph):
    for batch in (NeighborSampler(graph, [1, 2])([1, 2]), create_full_node_flow(graph, 2)):
        batch.copy_from_parent()
        for change in (copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))):
            layer = change(batch.front)
            flow = change(batch.flows[0])
            assert torch.equal(layer.parent_nid, batch.front.parent_nid)
            assert torch.equal(layer.data["feat"], batch.front.data["feat"])
            again = create_node_flow(
                [flow], [flow.src_layer.parent_nid, flow.dst_layer.parent_nid], parent=graph
            )
            assert_same_node_flow(again[:1], batch[:1], frames=False)
            assert torch.equal(flow.weight, batch.flows[0].weight)
            assert torch.equal(flow.dst_in_src, batch.flows[0].dst_in_src)
            with pytest.raises(AttributeError, match="immutable"):
                flow.data = None


def test_gradients_and_computations_stay_behind(graph):
    batch = FullSampler(graph, 1)([1])
    batch.ldata[0]["h"] = torch.ones(batch.layer_sizes[0], requires_grad=True) * 2
    batch.register_layer_computation(0, update=lambda nodes: {})
    same = pickle.loads(pickle.dumps(batch))
    assert not same.ldata[0]["h"].requires_grad
    assert torch.equal(same.ldata[0]["h"], batch.ldata[0]["h"])
    with pytest.raises(ValueError, match="no layer has a computation"):
        same.compute()


def test_the_parent_is_found_while_it_lives():
    graph = Graph.from_edges([0, 1], [1, 0], ndata={"feat": torch.arange(200_000.0).view(2, -1)})
    batch = FullSampler(graph, 1)([1])
    data = pickle.dumps(batch)
    assert len(data) < 5_000  # the parent is not in it
    assert pickle.loads(data).parent is graph
    del graph, batch
    gc.collect()
    orphan = pickle.loads(data)
    assert orphan.parent is None
    assert orphan.seeds.tolist() == [1]
    orphan.validate()


def _describe(*parts: Any) -> tuple[bool, list[int], bool]:
    batch = next(part for part in parts if isinstance(part, NodeFlow))
    graphs = [part for part in parts if isinstance(part, Graph)]
    batch.validate()
    return batch.parent is None, batch.seeds.tolist(), bool(graphs) and batch.parent is graphs[0]


def _sample(graph: Graph) -> NodeFlow:
    return NeighborSampler(graph, [2, 1], seed=4)([2, 1, 2])


@pytest.mark.slow
def test_batches_travel_between_processes(graph):
    batch = _sample(graph)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_describe, (batch,)) == (True, [2, 1], False)
        assert pool.apply(_describe, (graph, batch)) == (False, [2, 1], True)
        back = pool.apply(_sample, (graph,))  # sampled there, used here
    assert back.parent is graph
    assert_same_node_flow(back, batch)
