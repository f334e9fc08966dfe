"""NodeFlow.seed_data and NodeFlowLoader(seed_data=...): columns with a row per seed, in the order of the seeds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from _support.loader_tools import make, random_graph, seeds_of

from nodeflow import ClusterSampler, FullSampler, LinkSampler, NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.testing import assert_same_node_flow

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"weights": torch.arange(9.0)}], ids=str)
def test_rows_come_with_their_seeds(workers, options):
    seeds = [5, 5, 1, 2, 5, 1, 59, 5, 7]
    node = torch.tensor(seeds)
    columns = {"node": node, "twice": torch.stack([node, 2 * node], 1).double(), "array": node.numpy()}
    loader = make(seeds, 4, seed_data=columns, num_workers=workers, **options)
    assert loader.state_dict() == make(seeds, 4, **options).state_dict()
    for batch in loader:
        asked = torch.tensor(seeds_of(batch))
        assert batch.seed_data.num_rows == len(batch.seed_index) == len(asked)
        assert batch.seed_data["node"].equal(asked)
        assert batch.seed_data["array"].equal(asked)
        assert batch.seed_data["twice"].equal(torch.stack([asked, 2 * asked], 1).double())
        batch.validate()


def test_targets_of_pairs_edges_and_parts():
    graph = random_graph()
    pairs = torch.arange(60).view(30, 2)
    for batch in NodeFlowLoader(NeighborSampler(graph, [2]), pairs, 7, shuffle=True, seed_data={"y": pairs.sum(1)}):
        assert batch.seed_data["y"].equal(batch.seeds[batch.seed_index].sum(1))
    for sampler in (LinkSampler(NeighborSampler(graph, [2])), ClusterSampler(graph, 1, torch.arange(60) % 9)):
        ids = torch.arange(sampler.num_seeds)
        for batch in NodeFlowLoader(sampler, ids, 4, shuffle=True, seed_data={"y": 3 * ids}):
            assert batch.seed_data["y"].equal(3 * batch.seed_ids)
            batch.validate()


def one() -> NodeFlow:
    return next(iter(make([3, 9, 3], 3, seed_data={"y": torch.tensor([1.0, 2.0, 3.0])})))


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[1:],
        lambda b: b.to("cpu"),
        lambda b: b.with_parent(None),
        lambda b: pickle.loads(pickle.dumps(b)),
        copy.deepcopy,
        lambda b: FullSampler(b.parent, 1)(b.front.parent_nid).append(b),
    ],
)
def test_it_goes_where_the_batch_goes(change):
    batch = one()
    other = change(batch)
    other.validate()
    assert other.seed_data["y"].tolist() == [1, 2, 3]
    other.seed_data["z"] = torch.zeros(3)
    assert list(batch.seed_data) == ["y"]


def test_other_seeds_have_no_data_of_these():
    batch = one()
    assert batch.to("meta").seed_data["y"].device.type == "meta"
    assert list(batch[:-1].seed_data) == []
    assert batch[:-1].seed_data.num_rows == batch.layer_sizes[-2]
    other = batch.with_seeds(seed_index=torch.tensor([0]))
    assert (list(other.seed_data), other.seed_data.num_rows) == ([], 1)


def test_every_batch_has_a_frame_for_seeds():
    batch = NeighborSampler(random_graph(), [2])([4, 4])
    assert (batch.seed_data.num_rows, len(batch.seed_data)) == (2, 0)
    batch.seed_data["y"] = torch.ones(2)
    with pytest.raises(ValueError, match="2 rows"):
        batch.seed_data["y"] = torch.ones(1)
    with pytest.raises(AssertionError, match="columns of seed_data"):
        assert_same_node_flow(batch, NeighborSampler(random_graph(), [2])([4, 4]))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"y": torch.ones(59)}, r"seed_data\['y'\] must have a row per seed \(60\), got .*column\[seeds\]"),
        ({"y": 3}, r"seed_data\['y'\] must have a row per seed \(60\), got int 3"),
        ({"y": np.ones((1, 60))}, "must have a row per seed"),
    ],
)
def test_columns_that_are_refused(columns, words):
    with pytest.raises(ValueError, match=words):
        make(seed_data=columns)
    with pytest.raises(TypeError, match="seed_data must be a dict from names to columns"):
        make(seed_data=torch.ones(60))
