"""A sampler as ``collate_fn`` of torch's own DataLoader, in this process and in worker
processes.
"""

from __future__ import annotations

import gc
import multiprocessing
from typing import Any

import numpy as np
import pytest
import torch
from _support.graphs import random_graph
from _support.sampler_reference import fingerprint
from _support.views import viewed
from torch.utils.data import DataLoader, TensorDataset

from nodeflow import Graph, NeighborSampler, NodeFlowLoader

# a machine with one core
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")

SEEDS = list(range(39, -1, -1))
FORKED, SPAWNED = (
    {"num_workers": 1, "multiprocessing_context": method} for method in ("fork", "spawn")
)
needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="this system starts no processes by fork",
)


def check(sampler: NeighborSampler, seeds: Any = SEEDS, *, epochs: int = 1, **options: Any) -> None:
    """Batches of 16 by a DataLoader are those of the sampler, and of its own loader."""
    wanted = [fingerprint(sampler(SEEDS[k : k + 16])) for k in range(0, 40, 16)]
    assert [
        fingerprint(batch) for batch in NodeFlowLoader(sampler, SEEDS, 16, shuffle=False)
    ] == wanted
    loader = DataLoader(seeds, batch_size=16, collate_fn=sampler, **options)
    for _ in range(epochs):
        batches = list(loader)
        assert [fingerprint(batch) for batch in batches] == wanted
        for batch in batches:
            # a batch from another process finds its graph here
            assert batch.parent is sampler.graph
            batch.validate()


@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"reuse": True}, {"include_dst": False, "direction": "out"}]
)
@pytest.mark.parametrize("kind", [list, torch.tensor, np.array])
def test_in_this_process(options, kind):
    sampler = viewed(NeighborSampler, random_graph(), [2, 3], seed=5, **options)
    check(sampler, kind(SEEDS))


@pytest.mark.parametrize(
    "context",
    [pytest.param(FORKED, marks=needs_fork), pytest.param(SPAWNED, marks=pytest.mark.slow)],
)
def test_in_worker_processes(context):
    """Two, which serve a second epoch; a single one, after threads have sampled here: no lock of
    ours is left held.
    """
    sampler = NeighborSampler(random_graph(), [2, 3], seed=5, reuse=True)
    check(sampler, epochs=2, persistent_workers=True, **{**context, "num_workers": 2})
    sampler = NeighborSampler(random_graph().view("out"), [2, 3])
    list(NodeFlowLoader(sampler, SEEDS, 4, num_workers=4))
    check(sampler, **context)


@pytest.mark.slow
def test_memory_mapped_graph_in_spawned_worker(tmp_path):
    graph = random_graph()
    np.save(tmp_path / "indptr.npy", np.asarray(graph.indptr))
    np.save(tmp_path / "indices.npy", graph.indices)
    mapped = Graph(
        *(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices"))
    )
    check(NeighborSampler(mapped, [2, 3]), **SPAWNED)


def test_shuffled_by_the_dataloader():
    """Whatever order it chooses, each batch is what the sampler gives for its seeds; torch's
    generator is its own.
    """
    sampler = NeighborSampler(random_graph(), [2, 3])
    generator = torch.Generator().manual_seed(3)
    batches = list(
        DataLoader(SEEDS, batch_size=16, shuffle=True, collate_fn=sampler, generator=generator)
    )
    assert sorted(v for batch in batches for v in batch.seeds.tolist()) == list(range(40))
    for batch in batches:
        assert fingerprint(batch) == fingerprint(sampler(batch.seeds))


@pytest.mark.parametrize("context", [{}, pytest.param(FORKED, marks=needs_fork)])
def test_an_error_names_its_cause(context):
    loader = DataLoader(
        [1, 40], batch_size=2, collate_fn=NeighborSampler(random_graph(), [2]), **context
    )
    with pytest.raises(IndexError, match=r"seeds\[1\] is 40"):
        list(loader)
    # the workers of a DataLoader that raised end when its iterator is collected: not in another
    # test
    gc.collect()


def test_samples_are_ids_or_rows_of_ids():
    sampler = NeighborSampler(random_graph(), [2])
    found = list(
        DataLoader(
            TensorDataset(torch.arange(4), torch.arange(4, 8)), batch_size=2, collate_fn=sampler
        )
    )
    assert [batch.seed_ids.tolist() for batch in found] == [[[0, 4], [1, 5]], [[2, 6], [3, 7]]]
    with pytest.raises(TypeError, match="seeds"):
        list(DataLoader(torch.ones(4), batch_size=2, collate_fn=sampler))
