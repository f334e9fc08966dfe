"""Rows that epochs read from a file, with a cache whose coming batches are known: by window, and by
dependent batches.

python benchmarks/reads.py [--scale 18] [--memory 10]

Of an RMAT graph; 1,024 seeds, 10 and 10 neighbours by LABOR, three epochs of 20 batches. Plans are
counted, not read. "Of Belady" compares with the fewest reads that any rule can reach (all batches
of the run known), "of gathers" with reading every row of every batch; "bytes, int8" are those of
rows of one byte a number, beside gathers of float32.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from rmat import ensure

from nodeflow import Graph, LaborSampler, NodeFlowLoader
from nodeflow.storage._plan import Plan

HERE = Path(__file__).resolve().parent
BATCH = 1024
BATCHES = 20
EPOCHS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=18, help="2**scale nodes")
    parser.add_argument(
        "--memory", type=float, nargs="+", default=[5, 10, 20], help="percent of the rows in memory"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where the graph is kept")
    options = parser.parse_args()
    place = ensure(options.data, options.scale, 16)
    graph = Graph(*(np.load(place / f"{name}.npy") for name in ("indptr", "indices")))
    print("| in memory | dependency | window | of Belady | of gathers | bytes, int8 |")
    print("|---|---|---|---|---|---|")
    for dependency in (1, 4, 16):
        batches = needed(graph, dependency)
        for percent in options.memory:
            room = int(percent / 100 * graph.num_nodes)
            total = sum(map(len, batches))
            best = reads(batches, room, len(batches), graph.num_nodes)
            for window in (5, BATCHES):
                read = reads(batches, room, window, graph.num_nodes)
                row = (
                    f"| {percent:g} % | {dependency} | {window} | {read / best:.2f} | "
                    f"{read / total:.3f} |"
                )
                print(f"{row} 1/{4 * total / read:.0f} |")


def needed(graph: Graph, dependency: int) -> list[np.ndarray]:
    """Return the input nodes of every batch."""
    seeds = torch.from_numpy(
        np.random.default_rng(0).permutation(graph.num_nodes)[: BATCHES * BATCH]
    )
    sampler = LaborSampler(graph, [10, 10], batch_dependency=dependency)
    loader = NodeFlowLoader(sampler, seeds, BATCH, shuffle=True)
    return [
        batch.layers[0].parent_nid.numpy()
        for epoch in range(EPOCHS)
        for batch in loader.draws(epoch)
    ]


def reads(batches: list[np.ndarray], room: int, window: int, num_nodes: int) -> int:
    """Return how many rows a plan with ``room`` rows in memory reads."""
    plan = Plan(num_nodes, room, window, None)
    coming = iter(batches)
    read = 0
    while (step := plan.advance(lambda: next(coming, None))) is not None:
        read += len(step.new)
    return read


if __name__ == "__main__":
    main()
