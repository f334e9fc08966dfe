"""What every worker does: load the graph, then run rounds of a job when asked, one line in and one line out.

A worker runs in the environment of the library it measures, so this file needs numpy and torch only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

WIDTH, HIDDEN, CLASSES = 100, 128, 47
FANOUTS_FROM_SEEDS = (15, 10, 5)
BATCH_SIZE, BATCHES = 1024, 20


def load(folder: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return indptr and indices, int64."""
    indptr, indices = (torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in ("indptr", "indices"))
    return indptr, indices


def data(num_nodes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random features and labels."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_nodes, WIDTH, generator=generator)
    return x, torch.randint(0, CLASSES, (num_nodes,), generator=generator)


def seeds(num_nodes: int) -> torch.Tensor:
    """Return the seeds of one round."""
    return torch.from_numpy(np.random.default_rng(0).permutation(num_nodes))[: BATCH_SIZE * BATCHES]


def serve(make: Callable[[str, str], Callable[[int], dict[str, Any]]]) -> None:
    """Answer each line on standard input with the seconds that a round took, as JSON, and what the round reports.

    ``make(job, folder)`` prepares a job ("sample" or "step") and returns its round, a function of the round's number.
    """
    job, folder, threads = sys.argv[1:4]
    torch.set_num_threads(int(threads))
    run = make(job, folder)
    run(0)  # caches, compilation, memory pools
    print(json.dumps({"ready": True}), flush=True)
    for number, _ in enumerate(sys.stdin, 1):
        start = time.perf_counter()
        facts = run(number)
        print(json.dumps({"seconds": time.perf_counter() - start, **facts}), flush=True)
