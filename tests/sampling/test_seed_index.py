"""NodeFlows whose ``seed_index`` has two dimensions: a row of seeds for every seed edge."""

from __future__ import annotations

import pickle

import pytest
import torch
from _support.sampler_reference import random_graph

from nodeflow import NeighborSampler, create_node_flow
from nodeflow.sampling import LinkSampler
from nodeflow.testing import assert_same_node_flow

GRAPH = random_graph(0)


def test_a_node_flow_with_rows_of_seeds():
    links = LinkSampler(NeighborSampler(GRAPH, [2, 2], reuse=True), num_negatives=2, exclude="self")
    for eid in ([3, 8, 3], []):
        batch = links(eid)
        assert repr(batch).startswith("NodeFlow(")
        same = [batch.to("cpu"), pickle.loads(pickle.dumps(batch)), batch[:], batch.with_parent(None)]
        for other in same:
            other.validate()
            assert_same_node_flow(other, batch)
        assert batch[1:].seed_index.equal(batch.seed_index)
        assert batch[:-1].seed_index.tolist() == list(range(batch.layer_sizes[1]))
        lower = NeighborSampler(GRAPH, [2])(batch.front.parent_nid.flip(0))
        joined = lower.append(batch)
        joined.validate()
        assert joined.seed_index.equal(batch.seed_index)
        # the layer that joins them is the last one, in another order
        end = create_node_flow([], [batch.seeds.flip(0)], parent=GRAPH)
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
    batch = LinkSampler(NeighborSampler(GRAPH, [2, 2], reuse=True), num_negatives=2)([3, 8, 3])
    moved = batch.pin_memory().to("cuda", non_blocking=True)
    assert_same_node_flow(moved, batch)
    assert moved.seed_index.device.type == "cuda"
