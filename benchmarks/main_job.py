"""Seconds of the training of ``nodeflow train`` on debian, whose features are sparse, on one
process and on two.

python benchmarks/main_job.py [--rounds 3] [--epochs 4] [--hidden 256]

Every process computes in one thread, and a single one may draw in a second. "one core": that is
bound to one (Linux); the others may use all. "whole": every process has the graph; "parts": each
has a part, cut by METIS, whose rows travel; "owned": it takes the seeds that it holds. The first
epoch does not count. "seconds" are those of an epoch with its validation, medians over epochs and
rounds, which run in turn; "processor" is what the process that computes most spends in one; "full
pass" are the seconds of the scores of all nodes at the end. "load" is how many threads were ready
to run, by the system's average of a minute at the end of the last round: above the number of
processes, other programs ran, and processor seconds say more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from nodeflow.datasets import debian
from nodeflow.distributed import partition_graph
from nodeflow.training import Settings, Trainer
from nodeflow.training._data import read_parts
from nodeflow.training._processes import process_group
from nodeflow.transform import add_reverse_edges

CASES: list[tuple[str, int, str, str, int]] = [
    ("one core", 1, "whole", "even", 1024), ("all", 1, "whole", "even", 1024), ("all", 2, "whole", "even", 1024),
    ("all", 2, "parts", "even", 1024), ("all", 2, "parts", "owned", 1024), ("all", 2, "parts", "owned", 512),
]  # fmt: skip
"""Cores, processes, graph, share, and seeds per step and process."""


def worker(options: argparse.Namespace) -> None:
    """Train, as one of the processes; the first prints what came of it as JSON."""
    torch.set_num_threads(1)
    if options.cores == "one core":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with process_group() as peers:
        dataset = read_parts(options.parts, links=False) if options.parts else debian()
        names = "epochs", "hidden", "share", "batch_size"
        trainer = Trainer(dataset, Settings(**{name: getattr(options, name) for name in names}))
        seconds = []
        processor = []
        for _ in range(options.epochs):
            begun = perf_counter()
            worked = process_time()
            trainer.train_epoch()
            seconds.append(perf_counter() - begun)
            of_each = peers.gather("processor time", [np.array(process_time() - worked)])
            processor.append(max(array.item() for (array,) in of_each))
        begun = perf_counter()
        trainer.result()
        found = {
            "seconds": seconds[1:],
            "processor": processor[1:],
            "full": [perf_counter() - begun],
        }
        if peers.is_first:
            print(json.dumps(found | {"loss": trainer.records[-1].loss}), flush=True)


def run(
    case: tuple[str, int, str, str, int], parts: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Run a case in processes of its own."""
    cores, size, graph, share, batch_size = case
    torchrun = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
        if size > 1
        else []
    )
    words: list[object] = [
        "--worker",
        "--epochs",
        options.epochs,
        "--hidden",
        options.hidden,
        "--share",
        share,
    ]
    words += [
        "--batch-size",
        batch_size,
        "--cores",
        cores,
        *(["--parts", parts] if graph == "parts" else []),
    ]
    one = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, *torchrun, __file__, *map(str, words)]
    done = subprocess.run(
        command, env={**os.environ, **one}, check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    parser.add_argument(
        "--epochs", type=int, default=4, help="of each run; the first does not count"
    )
    parser.add_argument("--hidden", type=int, default=Settings().model.hidden)
    parser.add_argument("--method", default="metis", help="of the cut")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--parts", default="", help=argparse.SUPPRESS)
    parser.add_argument("--share", default="even", help=argparse.SUPPRESS)
    parser.add_argument("--batch-size", type=int, default=1024, help=argparse.SUPPRESS)
    parser.add_argument("--cores", default="all", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options)
        return
    rounds: list[list[dict[str, Any]]] = [[] for _ in CASES]
    with tempfile.TemporaryDirectory() as folder:
        data = debian()
        parts = Path(folder) / "parts"
        graph = add_reverse_edges(data.graph)
        split = {"train": data.train, "val": data.val, "test": data.test}
        partition_graph(graph, parts, 2, method=options.method, **split, progress=False)
        size = sum(file.stat().st_size for file in parts.rglob("*") if file.is_file())
        for _ in range(options.rounds):
            for found, case in zip(rounds, CASES, strict=True):
                found.append(run(case, parts, options))
    print(f"{os.cpu_count()} cores, parts of {size / 1e6:.1f} MB, load {os.getloadavg()[0]:.1f}\n")
    titles = (
        "cores",
        "processes",
        "graph",
        "share",
        "seeds",
        "seconds",
        "times one core",
        "processor",
        "times one core",
    )
    print(f"| {' | '.join(titles)} | full pass | last loss |\n{'|---' * (len(titles) + 2)}|")
    first: list[float] = []
    for case, found in zip(CASES, rounds, strict=True):
        middle = [
            statistics.median(chain(*(one[name] for one in found)))
            for name in ("seconds", "processor", "full")
        ]
        first = first or middle
        figures = [
            f"{of:.2f} | {one / of:.2f}" for of, one in zip(middle[:2], first[:2], strict=True)
        ]
        print(
            f"| {' | '.join(map(str, (*case, *figures)))} | {middle[2]:.2f} | "
            f"{found[0]['loss']:.6f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
