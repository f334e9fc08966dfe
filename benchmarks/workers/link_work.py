"""What every worker of ``link_speed.py`` does: train or evaluate one decoder on the same triples,
again, when asked.

A worker runs in the environment of the library it measures, so this file needs numpy and torch
only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Links(NamedTuple):
    """Triples (source, relation, destination) by split, ``[n, 3]``, and rows ``[n, width]`` of a
    model.
    """

    train: Tensor
    valid: Tensor
    test: Tensor
    nodes: Tensor
    relations: Tensor


def serve(jobs: Mapping[str, Callable[[Links, str, int], Callable[[], float]]], note: str) -> None:
    """Answer each line with the seconds of a job and what it found.

    ``jobs[name](links, decoder, batch size)`` returns the job: an evaluation, which returns the
    MRR, or an epoch, which returns the mean loss.
    """
    file, decoder, width, count, batch, threads, job = sys.argv[1:8]
    torch.set_num_threads(int(threads))
    data = np.load(file)
    triples = torch.from_numpy(
        np.stack([data["src"], data["relation"], data["dst"]], 1).astype(np.int64)
    )
    split = torch.from_numpy(data["split"].astype(np.int64))
    random = torch.Generator().manual_seed(0)
    rows = [
        torch.randn(int(data[name]), int(width), generator=random)
        for name in ("num_nodes", "num_relations")
    ]
    parts = [triples[split == part] for part in range(3)]
    worked = 2 if job == "evaluate" else 0
    if int(count):
        parts[worked] = parts[worked][
            torch.randperm(len(parts[worked]), generator=random)[: int(count)]
        ]
    run = jobs[job](Links(*parts, *rows), decoder, int(batch))
    sizes = {"triples": len(parts[worked]), "nodes": len(rows[0])}
    print(json.dumps({"ready": True, "note": note, **sizes}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        found = run()
        print(json.dumps({"seconds": time.perf_counter() - start, "found": found}), flush=True)
