"""A sampler as ``collate_fn`` of torch's own DataLoader, in this process and in worker processes."""

from __future__ import annotations

import gc
import multiprocessing

import numpy as np
import pytest
import torch
from _support.graphs import random_graph
from _support.sampler_reference import fingerprint
from torch.utils.data import DataLoader, TensorDataset

from nodeflow import Graph, NeighborSampler, NodeFlowLoader

# a machine with one core
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")

START = [method for method in ("fork", "spawn") if method in multiprocessing.get_all_start_methods()]


def expected(sampler: NeighborSampler, seeds: list[int], size: int) -> list[str]:
    chunks = [seeds[k : k + size] for k in range(0, len(seeds), size)]
    found = [fingerprint(sampler(chunk)) for chunk in chunks]
    loader = NodeFlowLoader(sampler, seeds, size, shuffle=False)
    assert [fingerprint(batch) for batch in loader] == found
    return found


def check(loader: DataLoader, sampler: NeighborSampler, wanted: list[str]) -> None:
    found = []
    for batch in loader:
        assert batch.parent is sampler.graph  # a batch from another process finds its graph here
        batch.validate()
        found.append(fingerprint(batch))
    assert found == wanted


SEEDS = list(range(39, -1, -1))


@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"reuse": True}, {"include_dst": False, "direction": "out"}]
)
@pytest.mark.parametrize("kind", [list, torch.tensor, np.array])
def test_in_this_process(options, kind):
    sampler = NeighborSampler(random_graph(), [2, 3], seed=5, **options)
    check(DataLoader(kind(SEEDS), batch_size=16, collate_fn=sampler), sampler, expected(sampler, SEEDS, 16))


def test_in_forked_workers():
    if "fork" not in START:
        pytest.skip("this system starts no processes by fork")
    sampler = NeighborSampler(random_graph(), [2, 3], seed=5, reuse=True)
    wanted = expected(sampler, SEEDS, 16)
    for workers in (1, 2):
        loader = DataLoader(
            SEEDS, batch_size=16, collate_fn=sampler, num_workers=workers, multiprocessing_context="fork",
            persistent_workers=workers == 2,
        )  # fmt: skip
        for _ in range(workers):  # persistent workers serve a second epoch
            check(loader, sampler, wanted)


def test_forked_after_threads_have_sampled():
    """A process that has had worker threads can still fork: no lock of ours is left held."""
    if "fork" not in START:
        pytest.skip("this system starts no processes by fork")
    sampler = NeighborSampler(random_graph(), [2, 3], direction="out")
    list(NodeFlowLoader(sampler, SEEDS, 4, num_workers=4))
    loader = DataLoader(SEEDS, batch_size=16, collate_fn=sampler, num_workers=1, multiprocessing_context="fork")
    check(loader, sampler, expected(sampler, SEEDS, 16))


@pytest.mark.slow
def test_in_spawned_workers():
    # one start of processes for two things: two workers, and a second epoch by persistent ones
    sampler = NeighborSampler(random_graph(), [2, 3], seed=5)
    loader = DataLoader(
        SEEDS, batch_size=16, collate_fn=sampler, num_workers=2, multiprocessing_context="spawn",
        persistent_workers=True,
    )  # fmt: skip
    wanted = expected(sampler, SEEDS, 16)
    for _ in range(2):
        check(loader, sampler, wanted)


@pytest.mark.slow
def test_memory_mapped_graph_in_spawned_worker(tmp_path):
    graph = random_graph()
    np.save(tmp_path / "indptr.npy", np.asarray(graph.indptr))
    np.save(tmp_path / "indices.npy", graph.indices)
    mapped = Graph(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")))
    sampler = NeighborSampler(mapped, [2, 3])
    loader = DataLoader(SEEDS, batch_size=20, collate_fn=sampler, num_workers=1, multiprocessing_context="spawn")
    check(loader, sampler, expected(sampler, SEEDS, 20))


def test_shuffled_by_the_dataloader():
    """Whatever order it chooses, each batch is what the sampler gives for its seeds; torch's generator is its own."""
    sampler = NeighborSampler(random_graph(), [2, 3])
    generator = torch.Generator().manual_seed(3)
    batches = list(DataLoader(SEEDS, batch_size=16, shuffle=True, collate_fn=sampler, generator=generator))
    assert sorted(v for batch in batches for v in batch.seeds.tolist()) == list(range(40))
    for batch in batches:
        assert fingerprint(batch) == fingerprint(sampler(batch.seeds))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_names_its_cause(workers):
    if workers and "fork" not in START:
        pytest.skip("this system starts no processes by fork")
    sampler = NeighborSampler(random_graph(), [2])
    context = "fork" if workers else None
    loader = DataLoader([1, 40], batch_size=2, collate_fn=sampler, num_workers=workers, multiprocessing_context=context)
    with pytest.raises(IndexError, match=r"seeds\[1\] is 40"):
        list(loader)
    gc.collect()  # the workers of a DataLoader that raised end when its iterator is collected: not in another test


def test_samples_that_are_rows_of_ids():
    sampler = NeighborSampler(random_graph(), [2])
    found = list(DataLoader(TensorDataset(torch.arange(4), torch.arange(4, 8)), batch_size=2, collate_fn=sampler))
    assert [batch.seed_ids.tolist() for batch in found] == [[[0, 4], [1, 5]], [[2, 6], [3, 7]]]


def test_samples_that_are_no_ids_raise():
    sampler = NeighborSampler(random_graph(), [2])
    with pytest.raises(TypeError, match="seeds"):
        list(DataLoader(torch.ones(4), batch_size=2, collate_fn=sampler))
