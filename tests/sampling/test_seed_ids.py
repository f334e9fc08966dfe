"""``seed_ids``: what a batch was asked for, whatever its seeds are, through everything that makes a
NodeFlow anew.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from _support.loader_tools import fingerprint, random_graph
from _support.sampler_reference import random_graph as multigraph

from nodeflow import (
    ClusterSampler,
    Graph,
    LinkSampler,
    NeighborSampler,
    NodeFlowLoader,
    SaintSampler,
    ShadowSampler,
    TemporalNeighborSampler,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.sampling.base import SamplerBase
from nodeflow.testing import assert_same_node_flow

SRC = [0, 1, 2, 3, 4, 5, 0, 2]
DST = [1, 2, 3, 4, 5, 0, 3, 5]
GRAPH = Graph.from_edges(SRC, DST, edata={"time": torch.arange(8), "label": torch.arange(8) * 10})

MAKERS: dict[str, tuple[SamplerBase, list[int], dict[str, Any]]] = {
    "nodes": (NeighborSampler(GRAPH, [2, 1]), [3, 1, 3, 5], {}),
    "times": (TemporalNeighborSampler(GRAPH, [2, 1]), [3, 1, 3, 3], {"times": [5, 5, 9, 5]}),
    "scopes": (ShadowSampler(GRAPH, 2, depth=1, fanout=1), [4, 4, 0], {}),
    "edges": (LinkSampler(NeighborSampler(GRAPH, [2, 1]), num_negatives=2), [7, 2, 7], {}),
    "parts": (ClusterSampler(GRAPH, 2, parts=[0, 1, 2, 0, 1, 2]), [2, 0, 2], {}),
    "subgraphs": (SaintSampler(GRAPH, 2, kind="edge", budget=3), [2**40], {}),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_they_are_what_was_asked_for(kind):
    sampler, asked, options = MAKERS[kind]
    given = torch.tensor(asked)
    batch = sampler(given, **options)
    given.zero_()  # the caller's tensor is not kept
    again = pickle.loads(pickle.dumps(batch))
    top = batch[1:] if batch.num_flows > 1 else batch
    for same in (batch.to("cpu"), again, batch[:]):
        assert_same_node_flow(same, batch)
    for made in (batch, top, batch[:2].append(batch[1:])):
        assert made.seed_ids.tolist() == asked
        assert made.seed_ids.dtype == torch.int64
    if not batch.has_seed_ids:
        assert batch.seeds[batch.seed_index].tolist() == asked


def test_a_slice_without_the_seeds_has_seeds_of_its_own():
    batch = MAKERS["parts"][0]([2, 0])
    assert batch[:2].seed_ids.tolist() == batch.layers[1].parent_nid.tolist()
    assert create_full_node_flow(GRAPH, 1).seed_ids.tolist() == list(range(6))


def test_rows_of_a_table_in_a_shuffled_epoch():
    loader = NodeFlowLoader(MAKERS["edges"][0], range(8), batch_size=3, shuffle=True)
    src, dst = GRAPH.edges()
    seen: list[int] = []
    for batch in loader:
        ends = batch.seeds[batch.seed_index]
        assert torch.equal(ends[:, 0], src[batch.seed_ids])
        assert torch.equal(ends[:, 1], dst[batch.seed_ids])
        seen += GRAPH.edata["label"][batch.seed_ids].tolist()
    assert sorted(seen) == [0, 10, 20, 30, 40, 50, 60, 70]
    assert seen != sorted(seen)


def test_batches_that_differ_in_them_only_are_told_apart():
    sampler = ClusterSampler(GRAPH, 1, parts=[0, 0, 0, 2, 2, 2])
    one = sampler([0])
    two = sampler([0, 0])
    with pytest.raises(AssertionError, match="seed_ids"):
        assert_same_node_flow(one, two)


def test_without_parent_ids_there_are_none():
    pool = flow_from_edges([0], [0], num_src=1, num_dst=1)
    with pytest.raises(ValueError, match="no parent nodes"):
        _ = create_node_flow([pool], [[0], None], parent=GRAPH).seed_ids


# ---- seeds that come in rows, such as pairs

PAIRS = torch.tensor([[3, 1], [5, 3], [0, 0], [3, 1], [2, 4]])


def test_rows_of_seeds_stay_together_in_a_shuffled_epoch():
    sampler = NeighborSampler(GRAPH, [2, 1])
    loader = NodeFlowLoader(sampler, PAIRS, batch_size=2, shuffle=True, ndata=None)
    for _ in range(2):
        batches = list(loader)
        assert [tuple(batch.seed_index.shape) for batch in batches] == [(2, 2), (2, 2), (1, 2)]
        found = torch.cat([batch.seed_ids for batch in batches])
        assert sorted(found.tolist()) == sorted(PAIRS.tolist())
        for batch in batches:
            batch.validate()
            assert torch.equal(batch.seeds[batch.seed_index], batch.seed_ids)
    again = NodeFlowLoader(sampler, PAIRS.tolist(), batch_size=2, shuffle=True, num_workers=2)
    again.set_epoch(1)
    for one, two in zip(batches, again, strict=True):
        assert_same_node_flow(one, two)
    flat = NodeFlowLoader(sampler, PAIRS.flatten(), batch_size=2)
    with pytest.raises(ValueError, match="the state is of a loader with"):
        flat.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("every", [True, False])
def test_rows_of_seeds_have_times(every):
    sampler = MAKERS["times"][0]
    times = torch.tensor([9, 5, 9, 9, 2])
    wanted = times.unsqueeze(1).expand(5, 2)
    given = wanted if every else times
    batch = sampler(PAIRS, times=given)
    assert torch.equal(batch.back.data["time"][batch.seed_index], wanted)
    assert torch.equal(batch.seed_ids, PAIRS)
    loader = NodeFlowLoader(sampler, PAIRS, batch_size=5, times=given)
    assert_same_node_flow(next(iter(loader)), sampler(PAIRS, times=wanted, batch_number=0))
    for wrong in (times[:4], wanted[:, :1], wanted.flatten()):
        with pytest.raises(ValueError, match="times must"):
            sampler(PAIRS, times=wrong)
        with pytest.raises(ValueError, match="times must"):
            NodeFlowLoader(sampler, PAIRS, batch_size=5, times=wrong)


def test_no_rows_and_rows_of_one():
    sampler = NeighborSampler(GRAPH, [2])
    assert sampler(PAIRS[:0]).seed_index.shape == (0, 2)
    assert sampler(PAIRS[:, :1]).seed_ids.tolist() == [[3], [5], [0], [3], [2]]
    assert sampler(torch.empty(0, 0, dtype=torch.int64)).seed_ids.shape == (0, 0)


def test_pairs_that_are_no_edges_need_the_sampler_of_nodes_only():
    sampler = NeighborSampler(GRAPH, [2])
    pairs = torch.tensor([[3, 1], [3, 3], [0, 1]])
    for way in (pairs, pairs.tolist(), pairs.numpy(), list(pairs)):
        batch = sampler(way)
        assert torch.equal(batch.seeds[batch.seed_index], pairs)
        assert torch.equal(batch.seed_ids, pairs)
    flat = sampler(pairs.flatten())
    assert torch.equal(flat.seed_index.view(-1, 2), batch.seed_index)
    assert [layer.parent_nid.tolist() for layer in flat.layers] == [
        layer.parent_nid.tolist() for layer in batch.layers
    ]
    assert flat.flows[0].parent_eid.tolist() == batch.flows[0].parent_eid.tolist()


def test_pairs_that_share_a_node_are_told_apart_by_their_seeds():
    sampler = NeighborSampler(random_graph(), [2, 3])
    pairs = torch.tensor([[0, 1], [0, 2], [3, 2]])
    for batch, pair in zip(NodeFlowLoader(sampler, pairs, 1), pairs, strict=True):
        assert_same_node_flow(batch, sampler(pair.unsqueeze(0), epoch=0))
    one, two = NodeFlowLoader(sampler, pairs[[0, 0]], 1)
    assert fingerprint(one) != fingerprint(two)


RANDOM = multigraph(0)


def test_a_node_flow_with_rows_of_seeds():
    links = LinkSampler(
        NeighborSampler(RANDOM, [2, 2], reuse=True), num_negatives=2, exclude="self"
    )
    for eid in ([3, 8, 3], []):
        batch = links(eid)
        assert_same_node_flow(batch.with_parent(None), batch)
        assert batch[1:].seed_index.equal(batch.seed_index)
        assert batch[:-1].seed_index.tolist() == list(range(batch.layer_sizes[1]))
        lower = NeighborSampler(RANDOM, [2])(batch.front.parent_nid.flip(0))
        joined = lower.append(batch)
        joined.validate()
        assert joined.seed_index.equal(batch.seed_index)
        # the layer that joins them is the last one, in another order
        end = create_node_flow([], [batch.seeds.flip(0)], parent=RANDOM)
        end._set(seed_index=len(batch.seeds) - 1 - batch.seed_index)
        turned = batch[:].append(end)
        turned.validate()
        assert turned.seeds[turned.seed_index].equal(batch.seeds[batch.seed_index])
    broken = links([3])
    broken._set(seed_index=broken.seed_index + len(broken.seeds))
    with pytest.raises(ValueError, match="seed_index must hold rows of the last layer"):
        broken.validate()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_rows_of_seeds_travel_to_a_gpu():
    batch = LinkSampler(NeighborSampler(RANDOM, [2, 2], reuse=True), num_negatives=2)([3, 8, 3])
    moved = batch.pin_memory().to("cuda", non_blocking=True)
    assert_same_node_flow(moved, batch)
    assert moved.seed_index.device.type == "cuda"
