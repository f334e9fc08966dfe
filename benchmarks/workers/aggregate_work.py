"""What every worker of ``aggregate.py`` does: one forward and backward pass on one flow, again and
again, when asked.

A worker runs in the environment of the library it measures, so this file needs numpy and torch
only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

HEADS = 8


class Edges(NamedTuple):
    """The edges of the flow, CSR over destinations (int64)."""

    indptr: Tensor
    indices: Tensor
    num_src: int

    @property
    def num_dst(self) -> int:
        """Number of destinations."""
        return len(self.indptr) - 1


def inputs(edges: Edges, op: str, width: int, dtype: torch.dtype) -> tuple[list[Tensor], Tensor]:
    """Return the leaves that get gradients (h, then weights or scores) and the gradient of the
    result.
    """
    make = torch.Generator().manual_seed(width)

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make).to(dtype)

    row = (HEADS, width // HEADS) if op == "gat" else (width,)
    leaves = [randn(edges.num_src, *row)]
    if op == "weighted":
        leaves.append(randn(len(edges.indices)))
    if op == "gat":
        leaves.append(randn(len(edges.indices), HEADS, 1))
    return [leaf.requires_grad_() for leaf in leaves], randn(edges.num_dst, *row)


def serve(make: Callable[[Edges], tuple[Callable[[], Any], Callable[..., Tensor], str]]) -> None:
    """Answer each line "op width times dtype" with the seconds of each pass and the sums of squares
    of its results.

    ``make(edges)`` returns ``fresh()``, which gives the library's object for the flow and is not
    timed, the operation ``run(flow, op, *leaves)``, and a note. The flow is a new one in every
    pass, as in training, so what a library derives from it (sorted by source, say) is part of the
    time.
    """
    folder, threads = sys.argv[1:3]
    torch.set_num_threads(int(threads))
    indptr, indices = (
        torch.from_numpy(np.load(f"{folder}/{name}.npy")) for name in ("indptr", "indices")
    )
    edges = Edges(indptr, indices, int(np.load(f"{folder}/num_src.npy")))
    fresh, run, note = make(edges)
    print(json.dumps({"ready": True, "note": note}), flush=True)
    known: dict[tuple[str, int, torch.dtype], Any] = {}
    for line in sys.stdin:
        op, width, times, dtype = line.split()
        at = op, int(width), getattr(torch, dtype)
        if at not in known:
            known.clear()
            known[at] = inputs(edges, *at)
        leaves, grad = known[at]
        seconds = []
        for _ in range(int(times)):
            flow = fresh()
            for leaf in leaves:
                leaf.grad = None
            start = time.perf_counter()
            out = run(flow, op, *leaves)
            out.backward(grad)
            seconds.append(time.perf_counter() - start)
            facts = [
                tensor.detach().double().square().sum().item()
                for tensor in (out, *(x.grad for x in leaves))
            ]
            del out
        print(json.dumps({"seconds": seconds, "facts": facts}), flush=True)
