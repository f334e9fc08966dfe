"""What every worker does: load the graph, then run rounds of a job when asked, one line in and one
line out.

A worker runs in the environment of the library it measures, so this file needs numpy and torch
only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

BATCHES = 20


@dataclass(frozen=True)
class Work:
    """What a round does: a job, on batches of so many seeds, with a GraphSAGE of so many layers."""

    job: str = "step"
    variant: str = "uniform"
    width: int = 100
    hidden: int = 128
    dropout: float = 0.0
    classes: int = 47
    batch_size: int = 1024
    fanouts_from_seeds: tuple[int, ...] = (15, 10, 5)
    device: str = ""
    """Where the graph lies and batches are drawn; empty: on the processor, in the usual way."""

    @property
    def widths(self) -> list[tuple[int, int]]:
        """Width of the rows that enter and leave every convolution."""
        return list(
            pairwise(
                [self.width, *[self.hidden] * (len(self.fanouts_from_seeds) - 1), self.classes]
            )
        )


def load(folder: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return indptr and indices, int64."""
    indptr, indices = (
        torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in ("indptr", "indices")
    )
    return indptr, indices


def data(work: Work, num_nodes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random features and labels."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_nodes, work.width, generator=generator)
    return x, torch.randint(0, work.classes, (num_nodes,), generator=generator)


def seeds(work: Work, num_nodes: int) -> torch.Tensor:
    """Return the seeds of one round."""
    return torch.from_numpy(np.random.default_rng(0).permutation(num_nodes))[
        : work.batch_size * BATCHES
    ]


def wait_for(device: str) -> None:
    """Wait until a device has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def serve(
    prepare: Callable[[str], Callable[[Work], Callable[[int], dict[str, Any]]]], version: str
) -> None:
    """Answer each line on standard input, a Work as JSON, with the seconds that a round of it took
    and what it tells.

    ``prepare(folder)`` loads the graph and returns a function that gets a Work ready: that returns
    its round, a function of the round's number. The first round of a work is for caches,
    compilation and memory pools. ``version`` names the library and its version.
    """
    folder, threads = sys.argv[1:3]
    torch.set_num_threads(int(threads))
    make = prepare(folder)
    rounds = {}
    print(json.dumps({"version": version}), flush=True)
    for number, line in enumerate(sys.stdin, 1):
        asked = json.loads(line)
        work = Work(**{**asked, "fanouts_from_seeds": tuple(asked["fanouts_from_seeds"])})
        if work not in rounds:
            rounds.clear()  # the features of the work before
            rounds[work] = make(work)
            rounds[work](0)
        start = time.perf_counter()
        facts = rounds[work](number)
        print(json.dumps({"seconds": time.perf_counter() - start, **facts}), flush=True)
