"""What the workers of ``judge.py`` do: keep the last graph, and answer every call with the drawn
edges.

A worker runs in the environment of the library that it draws with, so this file needs torch only. A
line on standard input is a graph, ``{"src", "dst", "num_nodes", "edata"}``, or a call,
``{"sampler", "seeds", "seed", "times"}``; the answer to a call has one list ``[src, dst, eid]`` per
flow, in flow order, with the numbers of trees where it has any.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TextIO

import torch

Draw = Callable[
    [dict[str, Any], torch.Tensor, int, "torch.Tensor | None"], list[list[torch.Tensor]]
]


def serve(
    version: str,
    prepare: Callable[[torch.Tensor, int, dict[str, torch.Tensor]], Draw],
    answers: TextIO,
) -> None:
    """Answer lines until there are no more; ``prepare`` takes ends of edges, the number of nodes
    and columns.
    """
    torch.set_num_threads(1)
    print(json.dumps({"version": version}), file=answers, flush=True)
    draw: Draw | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "src" in asked:
            columns = {name: torch.tensor(values) for name, values in asked["edata"].items()}
            ends = torch.tensor([asked["src"], asked["dst"]], dtype=torch.int64)
            draw = prepare(ends, asked["num_nodes"], columns)
            answer: Any = {}
        else:
            assert draw is not None
            times = None if asked["times"] is None else torch.tensor(asked["times"])
            seeds = torch.tensor(asked["seeds"], dtype=torch.int64)
            try:
                flows = draw(asked["sampler"], seeds, asked["seed"], times)
                answer = {"flows": [[part.tolist() for part in flow] for flow in flows]}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
