"""The samplers that draw neighbours, beside one another in one process, where memory and caches are
warm for all.

python benchmarks/variants.py [--rounds 11]

Draws 3-hop neighbourhoods (fanouts 15, 10, 5 from 1,024 seeds, one thread) on the RMAT graph of
``compare.py``, in turn, and prints a table of medians of processor time, which other programs
lengthen less than that of a clock.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rmat import ensure

sys.path.insert(0, str(Path(__file__).resolve().parent / "workers"))
from nodeflow_worker import SAMPLERS
from work import Work, load, seeds

from nodeflow import Graph


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent / "data")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument(
        "--variants", nargs="+", default=list(SAMPLERS)[:-1], choices=list(SAMPLERS)
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph = Graph(*load(str(ensure(options.data, options.scale, options.edge_factor))))
    graph.edata["w"] = np.random.default_rng(2).random(graph.num_edges, np.float32)
    work = Work()
    samplers = {
        name: SAMPLERS[name](graph, work.fanouts_from_seeds[::-1]) for name in options.variants
    }
    batches = seeds(work, graph.num_nodes).split(work.batch_size)
    times: dict[str, list[float]] = {name: [] for name in samplers}
    for number in range(options.rounds + 1):  # the first compiles
        for name, sampler in samplers.items():
            start = time.process_time()
            for i, part in enumerate(batches):
                sampler(part, epoch=number, batch_number=i)
            times[name].append(1e3 * (time.process_time() - start) / len(batches))
    first = statistics.median(times[options.variants[0]][1:])
    print(f"{options.rounds} rounds in turn of {len(batches)} batches, one process, one thread\n")
    print(
        "| | processor ms per batch (median) | min to max | time over that of "
        f"{options.variants[0]} |"
    )
    print("|---|---|---|---|")
    for name, found in times.items():
        middle = statistics.median(found[1:])
        print(
            f"| {name} | {middle:.2f} | {min(found[1:]):.2f} to {max(found[1:]):.2f} | "
            f"{middle / first:.2f} |"
        )


if __name__ == "__main__":
    main()
