"""Time batches and training steps on a graph of several node types, beside pyg-lib and PyTorch
Geometric, in turn.

python benchmarks/typed.py --pyg PYTHON

The graph has the sizes of ogbn-mag (1.9 M nodes of 4 types, 42 M edges of 8 relations) and skewed
degrees. "static": 1,024 papers, 10 neighbours per relation, then 15; "+ views": also the rows of
every type and the edges of every relation. "temporal": 8,192 papers at one time, 16 and 16 of what
is older. "step": a static batch, features of width 128, and forward pass, backward pass and Adam
step of two layers of a GraphSAGE per relation (HeteroConv), 64 wide. pyg-lib draws for a node once,
so nodeflow does too (``reuse=True``) in all but the first row.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from compare import Worker

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "workers"))

from typed_work import BATCHES  # noqa: E402

JOBS = {
    "static": "static", "static, reuse": "static", "static, reuse + views": "static", "temporal": "temporal",
    "step": "step",
}  # fmt: skip
"""What nodeflow does, and the work of PyTorch Geometric that it is compared with."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pyg", metavar="PYTHON", help="interpreter with torch-geometric and pyg-lib"
    )
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--rounds", type=int, default=7, help=f"rounds of {BATCHES} batches")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of the graph")
    options = parser.parse_args()
    workers = {"nodeflow": Worker(sys.executable, "typed_nodeflow", [str(options.scale)], 1)}
    if options.pyg:
        workers["pyg"] = Worker(options.pyg, "typed_pyg", [str(options.scale)], 1)
    answers: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(options.rounds):
        for job in options.jobs:
            for name, worker in workers.items():
                asked = {"job": job if name == "nodeflow" else JOBS[job], "round": number}
                answer = worker.ask(json.dumps(asked))
                answers.setdefault((job, name), []).append((answer["seconds"], answer["edges"]))
    print(f"one thread, {options.rounds} rounds in turn of {BATCHES} batches, medians\n")
    print("| | ms per batch | edges per batch | M edges/s | time ratio | edge rate ratio |")
    print("|---|---|---|---|---|---|")
    for (job, name), rounds in answers.items():
        ms = 1e3 * statistics.median(seconds for seconds, _ in rounds) / BATCHES
        edges = statistics.median(edges for _, edges in rounds) / BATCHES
        row = f"| {job}, {name} | {ms:.2f} | {edges:,.0f} | {edges / ms / 1e3:.2f} |"
        if name == "pyg":
            own, count = (
                statistics.median(column) for column in zip(*answers[job, "nodeflow"], strict=True)
            )
            row += f" {ms * BATCHES / 1e3 / own:.2f} | {count / own / (edges / ms * 1e3):.2f} |"
        print(row if name == "pyg" else f"{row} | |")


if __name__ == "__main__":
    main()
