"""What every worker of ``link_evaluation.py`` does: evaluate one decoder on the same triples, again, when asked.

A worker runs in the environment of the library it measures, so this file needs numpy and torch only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Links(NamedTuple):
    """Triples (source, relation, destination) by split, ``[n, 3]``, and rows ``[n, width]`` of a model."""

    train: Tensor
    valid: Tensor
    test: Tensor
    nodes: Tensor
    relations: Tensor


def serve(make: Callable[[Links, str, int], tuple[Callable[[], float], str]]) -> None:
    """Answer each line with the seconds of an evaluation and its MRR.

    ``make(links, decoder, batch size)`` returns the evaluation, which returns the MRR, and a note.
    """
    file, decoder, width, count, batch, threads = sys.argv[1:7]
    torch.set_num_threads(int(threads))
    data = np.load(file)
    triples = torch.from_numpy(np.stack([data["src"], data["relation"], data["dst"]], 1).astype(np.int64))
    split = torch.from_numpy(data["split"].astype(np.int64))
    random = torch.Generator().manual_seed(0)
    rows = [torch.randn(int(data[name]), int(width), generator=random) for name in ("num_nodes", "num_relations")]
    test = triples[split == 2]
    if int(count):
        test = test[torch.randperm(len(test), generator=random)[: int(count)]]
    evaluate, note = make(Links(triples[split == 0], triples[split == 1], test, *rows), decoder, int(batch))
    sizes = {"triples": len(test), "nodes": len(rows[0])}
    print(json.dumps({"ready": True, "note": note, **sizes}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        mrr = evaluate()
        print(json.dumps({"seconds": time.perf_counter() - start, "mrr": mrr}), flush=True)
