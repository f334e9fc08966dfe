"""Loaders of several processes: their state, what wraps them, arguments that are refused."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from _support.loader_tools import fingerprint, make, random_graph, seeds_of
from _support.sampler_families import graph_of_all
from _support.share_tools import joined, loaders, rows_of, sampler_of

from nodeflow import ClusterSampler, LinkSampler, NeighborSampler, NodeFlowLoader, SaintSampler
from nodeflow.loader._shares import shares_of
from nodeflow.storage import Cached, Lookahead, presample

GRAPH = random_graph()


def sampler() -> NeighborSampler:
    return NeighborSampler(GRAPH, [2, 3])


# ---- state


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (4, 2), (2, 4)])
def test_another_number_of_processes_goes_on(before, after):
    given: dict[str, Any] = {"seeds": range(50), "shuffle": True, "total": 12}
    (single,) = loaders(sampler(), 1, **given)
    wanted = [batch for _ in range(2) for batch in single]
    running = loaders(sampler(), before, **given)
    states = []
    for loader in running:
        for k, _ in enumerate(loader):
            if k == 1:
                states.append(json.loads(json.dumps(loader.state_dict())))
    assert all(state == states[0] for state in states)
    resumed = loaders(sampler(), after, **given)
    for loader in resumed:
        loader.load_state_dict(states[0])
    found = [[batch for _ in range(2) for batch in loader] for loader in resumed]
    assert len(found[0]) == len(wanted) - 2
    for *parts, whole in zip(*found, wanted[2:], strict=True):
        assert joined(parts) == rows_of(whole)


def test_states_are_those_of_before():
    """One process: the entries that states had before there were shares, and nothing else."""
    state = make(shuffle=True, transform=lambda batch: batch).state_dict()
    assert set(state) == {
        "epoch", "batch_number", "batch_size", "shuffle", "drop_last", "seed", "num_seeds", "seeds_hash", "shape",
        "inputs_ahead", "sampler",
    }  # fmt: skip
    assert state["batch_size"] == 16
    make(batch_size=4, shuffle=True, rank=3, world_size=4).load_state_dict(state)
    with pytest.raises(
        ValueError, match="batch_size=16, this one has 12, the seeds of a batch in all processes"
    ):
        make(batch_size=4, shuffle=True, rank=0, world_size=3).load_state_dict(state)


def test_the_kind_of_share_is_a_setting():
    owned = {"share": [0] * 60, "rank": 0, "world_size": 2, "batch_size": 8}
    make(**owned).load_state_dict(make(**owned).state_dict())
    with pytest.raises(ValueError, match="share=even, this one has owned"):
        make(**owned).load_state_dict(make().state_dict())
    with pytest.raises(ValueError, match="share=owned, this one has even"):
        make().load_state_dict(make(**owned).state_dict())


def test_inputs_that_were_prepared_ahead_belong_to_their_process():
    def loader(rank: int) -> NodeFlowLoader:
        return make(
            batch_size=8, rank=rank, world_size=2, inputs=lambda seeds: seeds.sum(), inputs_ahead=2
        )

    running = loader(1)
    next(iter(running))
    state = running.state_dict()
    loader(1).load_state_dict(state)
    with pytest.raises(
        ValueError, match="process 1 of 2 has prepared for its seeds, this is process 0 of 2"
    ):
        loader(0).load_state_dict(state)
    alone = make(inputs=lambda seeds: seeds.sum(), inputs_ahead=2)
    with pytest.raises(ValueError, match="this is process 0 of 1"):
        alone.load_state_dict(state)
    alone.load_state_dict(alone.state_dict())


# ---- the loader around it


@pytest.mark.parametrize(("workers", "prefetch"), [(2, 1), (3, 0)])
def test_any_number_of_workers(workers, prefetch):
    given = {"seeds": range(50), "batch_size": 4, "shuffle": True, "rank": 1, "world_size": 4}
    here = [fingerprint(batch) for batch in NodeFlowLoader(sampler(), **given)]
    there = NodeFlowLoader(sampler(), num_workers=workers, prefetch=prefetch, **given)
    weights = []
    for batch, wanted in zip(there, here, strict=True):
        assert fingerprint(batch) == wanted
        weights.append(there.seed_weight)  # that of this batch, however far ahead the workers are
    assert weights == [1 / 4] * 3 + [4 / 2]


def test_one_process_is_as_before():
    given = {"seeds": range(50), "batch_size": 16, "shuffle": True}
    loader = NodeFlowLoader(sampler(), rank=0, world_size=1, **given)
    assert [fingerprint(b) for b in loader] == [
        fingerprint(b) for b in NodeFlowLoader(sampler(), **given)
    ]
    assert (loader.rank, loader.world_size, loader.seed_weight) == (0, 1, 1 / 2)
    assert "process" not in repr(loader)
    owned = NodeFlowLoader(sampler(), share="owned", **given)  # one process owns all seeds
    assert [seeds_of(b) for b in owned] == [seeds_of(b) for b in NodeFlowLoader(sampler(), **given)]
    other = NodeFlowLoader(sampler(), rank=1, world_size=2, **given)
    assert "50 seeds in 2 batches of 16 for process 1 of 2" in repr(other)


def test_lookahead_and_presample_see_the_share():
    graph = random_graph()
    graph.ndata["x"] = Cached(graph.ndata["x"], heat=[0] * 60, memory=0)
    (loader,) = loaders(NeighborSampler(graph, [2, 3]), 4, seeds=range(50), ndata={0: ["x"]})[3:]
    planned = [fingerprint(batch) for batch in Lookahead(loader, memory=9)]
    loader.set_epoch(0)
    batches = list(loader)
    assert planned == [fingerprint(batch) for batch in batches]
    assert len(batches[-1].seeds) == 0  # 50 = 4 * 12 + 2
    inputs = torch.cat([batch.front.parent_nid for batch in batches])
    assert presample(loader, epochs=1).equal(inputs.bincount(minlength=60))


def test_samplers_with_most_seeds_count_their_own():
    saint = SaintSampler(GRAPH, 1, kind="node", budget=5)
    assert len(NodeFlowLoader(saint, range(5), 1, rank=0, world_size=2)) == 3
    cluster = ClusterSampler(graph_of_all(), 1, np.arange(60) % 7)
    owned = NodeFlowLoader(cluster, range(7), 2, rank=1, world_size=2, share=[0, 1, 0, 1, 0, 1, 0])
    assert [batch.seed_ids.tolist() for batch in owned] == [[1, 3], [5]]


def test_chunks_stay_together():
    links = LinkSampler(sampler(), chunk=4)
    two = loaders(links, 2, 20, seeds=range(30))
    assert [[len(batch.seed_ids) for batch in loader] for loader in two] == [[12, 8], [8, 2]]
    owner = np.arange(500) % 4 % 2
    owned = loaders(links, 2, 20, seeds=range(30), share=owner)
    assert [[len(batch.seed_ids) for batch in loader] for loader in owned] == [[20, 10], [0, 0]]


def test_rows_of_seeds_belong_to_the_owner_of_the_first():
    pairs = torch.tensor([[0, 1], [1, 0], [2, 1], [3, 2]])
    for owner in (torch.arange(60) % 2, lambda ids: ids % 2):
        loader = NodeFlowLoader(sampler(), pairs, 2, rank=1, world_size=2, share=owner)
        assert [seeds_of(batch) for batch in loader] == [[[1, 0], [3, 2]]]


def test_edges_belong_to_the_processes_that_hold_them():
    peers = SimpleNamespace(
        size=2, rank=0, owners=lambda ids, kind: ids // 2 if kind == "edge" else ids
    )
    links: Any = SimpleNamespace(
        graph=SimpleNamespace(peers=peers), seed_kind="edge", seeds_together=1, num_seeds=4
    )
    assert shares_of(links, torch.arange(4), 2, "owned", (0, 2)).owner.tolist() == [0, 0, 1, 1]


# ---- arguments


def test_seed_weight_before_the_first_batch():
    loader = make(batch_size=8, rank=0, world_size=2)
    with pytest.raises(RuntimeError, match="this epoch has given none"):
        _ = loader.seed_weight


def test_no_seeds_at_all():
    loader = make(seeds=[], rank=1, world_size=2, share=[0] * 60)
    assert (len(loader), list(loader)) == (0, [])
    assert (
        len(
            NodeFlowLoader(
                sampler_of("neighbor", GRAPH), torch.zeros(0, 2).long(), rank=0, world_size=2
            )
        )
        == 0
    )


SEEDS = [*range(60), *range(5)]  # 65 on two ranks: steps of 32, 32 and 1 seeds


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_the_default_group_is_asked(monkeypatch):
    sampler = NeighborSampler(random_graph(), [2])
    assert NodeFlowLoader(sampler, range(9)).world_size == 1
    monkeypatch.setattr(dist, "get_rank", lambda: 2)
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    loader = NodeFlowLoader(sampler, range(9), 2)
    assert (loader.rank, loader.world_size, len(loader)) == (2, 3, 2)
    assert NodeFlowLoader(sampler, range(9), 2, rank=0, world_size=1).world_size == 1
