"""The work of ``typed.py``: a graph with the sizes of ogbn-mag, its seeds, and how a worker
answers.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

NODES = {"author": 1_134_649, "paper": 736_389, "field": 59_965, "institution": 8_740}
RELATIONS = {
    ("author", "writes", "paper"): 7_145_660,
    ("paper", "cites", "paper"): 5_416_271,
    ("paper", "topic", "field"): 7_505_078,
    ("author", "at", "institution"): 1_043_998,
}
SEED_TIME = 900_000
BATCHES = 10
JOBS: dict[str, tuple[list[int], int]] = {
    "static": ([15, 10], 1_024),
    "temporal": ([16, 16], 8_192),
}
"""Fanouts of every relation in flow order, and seeds of a batch; temporal batches see nodes up to
``SEED_TIME``.
"""
WIDTH = 128
CLASSES = 349
"""Columns of features of every type, and classes, for training steps."""

Ids = NDArray[np.int64]
Edges = dict[tuple[str, str, str], tuple[Ids, Ids]]


def make_edges(scale: float) -> Edges:
    """Return the edges of each relation and its reverse, in ids of their types; the ends are
    skewed.
    """
    draw = np.random.default_rng(0)
    sizes = sizes_of(scale)
    names = {kind: draw.permutation(n) for kind, n in sizes.items()}

    def ends(kind: str, m: int) -> Ids:
        return names[kind][np.floor(sizes[kind] * draw.random(m) ** 2.5).astype(np.int64)]

    edges = {
        (s, r, d): (ends(s, int(m * scale)), ends(d, int(m * scale)))
        for (s, r, d), m in RELATIONS.items()
    }
    return edges | {(d, f"rev_{r}", s): (b, a) for (s, r, d), (a, b) in edges.items()}


def sizes_of(scale: float) -> dict[str, int]:
    return {kind: int(n * scale) for kind, n in NODES.items()}


def make_times(scale: float) -> dict[str, Ids]:
    draw = np.random.default_rng(1)
    return {kind: draw.integers(0, 10**6, n) for kind, n in sizes_of(scale).items()}


def seeds_of(round_number: int, batch: int, size: int, scale: float) -> Ids:
    draw = np.random.default_rng([round_number, batch])
    return draw.choice(sizes_of(scale)["paper"], size, replace=False)


def serve(prepare: Callable[[float], Callable[[str, Ids], int]], version: str) -> None:
    """Answer each line ``{"job": ..., "round": ...}`` with the seconds and the edges of ``BATCHES``
    batches.

    The first batch of a job, which is for caches and compilation, does not count.
    """
    scale = float(sys.argv[1])
    run = prepare(scale)
    print(json.dumps({"version": version}), flush=True)
    warm = set()
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        size = JOBS["temporal" if asked["job"] == "temporal" else "static"][1]
        size = min(size, sizes_of(scale)["paper"])
        seeds = [seeds_of(asked["round"], i, size, scale) for i in range(BATCHES)]
        if asked["job"] not in warm:
            warm.add(asked["job"])
            run(asked["job"], seeds[0])
        begin = time.perf_counter()
        edges = sum(run(asked["job"], each) for each in seeds)
        print(json.dumps({"seconds": time.perf_counter() - begin, "edges": edges}), flush=True)
