"""nodeflow on the work of ``aggregate.py``."""

from __future__ import annotations

from collections.abc import Callable

from aggregate_work import Edges, serve
from torch import Tensor

from nodeflow import ops
from nodeflow.ops import Structure


def run(flow: Structure, op: str, h: Tensor, at_edges: Tensor | None = None) -> Tensor:
    if op == "gat":
        return ops.aggregate(flow, h, "sum", ops.segment_softmax(flow, at_edges))
    return ops.aggregate(flow, h, "sum" if op == "weighted" else op, at_edges)


def make(edges: Edges) -> tuple[Callable[[], Structure], Callable[..., Tensor], str]:
    return lambda: Structure(*edges), run, ""


if __name__ == "__main__":
    serve(make)
