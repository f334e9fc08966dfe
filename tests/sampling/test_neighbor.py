"""NeighborSampler: what it draws, in which order, and in which modes; all against a pure Python
sampler.
"""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.sampler_families import MODES
from _support.sampler_reference import assert_equals_reference, fingerprint, random_graph, star
from _support.views import viewed

from nodeflow import FullSampler, Graph, NeighborSampler


@pytest.mark.parametrize("fanout", [31, 32, 33, 34, 64, 65, 99])
def test_many_picks_equal_pure_python(fanout):
    # from 33 picks on a hash set replaces the scan; the last list has 100 edges, so 99 leaves out a
    # single one
    graph = star(100, hubs=3)
    seeds = [2, 0, 1]
    assert_equals_reference(
        NeighborSampler(graph, [fanout], seed=fanout)(seeds), graph, [fanout], seeds, seed=fanout
    )


def test_hashed_and_scanned_destinations_in_one_flow():
    src = np.concatenate(
        [np.arange(5, 205), np.arange(10, 15), np.arange(20, 60), np.arange(50, 84)]
    )
    dst = np.repeat([0, 1, 2, 3], [200, 5, 40, 34])
    graph = Graph.from_edges(src, dst)
    assert_equals_reference(
        NeighborSampler(graph, [35])([3, 2, 1, 0, 4]), graph, [35], [3, 2, 1, 0, 4]
    )


# ---- fanouts


def test_last_fanout_belongs_to_the_seeds():
    # a tree in which everybody has five in-neighbours, so that every fanout shows
    src = torch.arange(1, 5 + 25 + 1)
    graph = Graph.from_edges(src, (src - 1) // 5)
    batch = NeighborSampler(graph, fanouts=[2, 3])([0])
    assert batch.flows[1].in_degrees.tolist() == [3]
    assert batch.flows[0].in_degrees.tolist() == [2, 2, 2, 2]
    for fanouts in itertools.permutations([1, 2, 4]):
        batch = NeighborSampler(random_graph(0, 30, 600), fanouts)([3, 4])
        assert [set(flow.in_degrees.tolist()) for flow in batch.flows] == [{f} for f in fanouts]


def test_kinds_of_fanouts():
    graph = random_graph(3)
    expected = fingerprint(NeighborSampler(graph, [2, 3])([1, 2]))
    for fanouts in (
        (2, 3),
        range(2, 4),
        np.array([2, 3]),
        torch.tensor([2, 3]),
        [np.int32(2), torch.tensor(3)],
    ):
        assert fingerprint(NeighborSampler(graph, fanouts)([1, 2])) == expected


def test_a_batch_owns_its_arrays():
    graph = random_graph(2)
    seeds = torch.tensor([3, 4, 5])
    for options in MODES:
        batch = viewed(NeighborSampler, graph, [-1, -1], **options)(seeds)
        expected = fingerprint(batch)
        seeds += 1
        assert fingerprint(batch) == expected
        seeds -= 1


# ---- reuse


def test_reuse_shares_one_structure():
    batch = NeighborSampler(random_graph(6, 50, 1000), [2, 2, 3], reuse=True)([1, 2, 3])
    whole = batch.flows[0]
    for flow in batch.flows:
        for name in ("indptr", "indices", "parent_eid", "weight"):
            part = getattr(flow, name)
            all_ = getattr(whole, name)
            assert part.data_ptr() == all_.data_ptr()
            assert part.equal(all_[: len(part)])
    for layer in batch.layers:
        assert layer.parent_nid.data_ptr() == batch.front.parent_nid.data_ptr()
    batch.validate()


@pytest.mark.parametrize("direction", ["in", "out"])
def test_full_neighbourhoods_are_the_same_in_both_modes(direction):
    graph = random_graph(8)
    seeds = [4, 4, 17, 30]
    batches = [
        FullSampler(graph.view(direction), 3),
        FullSampler(graph.view(direction), 3, reuse=True),
        NeighborSampler(graph.view(direction), [-1] * 3, reuse=True, seed=5),
        NeighborSampler(graph.view(direction), [2**63 - 1] * 3),
    ]
    assert len({fingerprint(sampler(seeds)) for sampler in batches}) == 1


def test_pickled_memory_mapped_sampler_is_small(tmp_path):
    np.save(tmp_path / "indptr.npy", np.arange(100_001))
    np.save(tmp_path / "indices.npy", np.arange(100_000)[::-1].copy())
    graph = Graph(
        *(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices"))
    )
    data = pickle.dumps(NeighborSampler(graph, [2]))
    assert len(data) < 5000  # the files travel by name
    assert fingerprint(pickle.loads(data)([7])) == fingerprint(NeighborSampler(graph, [2])([7]))


def test_torch_defaults_are_not_read():
    sampler = NeighborSampler(random_graph(16), [-1, 3], reuse=True)
    expected = fingerprint(sampler([1, 2, 3]))
    torch.set_default_dtype(torch.float64)
    try:
        assert fingerprint(sampler([1, 2, 3])) == expected
        assert fingerprint(FullSampler(sampler.graph, 1)([3])) == fingerprint(
            FullSampler(sampler.graph, 1)([3])
        )
        assert FullSampler(sampler.graph, 1)([3]).flows[0].weight.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):  # stands for any default device that is not the CPU
        assert fingerprint(sampler([1, 2, 3])) == expected
