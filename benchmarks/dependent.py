"""Train on batches that share random numbers beside independent ones, with the same seeds; a table
of test scores.

python benchmarks/dependent.py --data FOLDER ... [--dependency 4 16] [--seeds 3] [--epochs 5]

Batches are those of LABOR; "dependency" is its ``batch_dependency``, for how many batches a node
keeps its random number. Data sets and their settings are those of ``node_tasks.py``. Differences
are to independent batches (1) with the same seed, in points of the test score, with their standard
error.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics

import torch
from node_tasks import difference, opened, test_scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", nargs="+", default=["debian"], metavar="FOLDER", help='folders, or "debian"'
    )
    parser.add_argument("--dependency", type=int, nargs="+", default=[4, 16], help="beside 1")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each, with seeds 0, 1, ...")
    parser.add_argument("--epochs", type=int, help="instead of those of the settings")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one thread, {options.seeds} seeds; {platform.machine()}, {os.cpu_count()} cores\n")
    print("| data | dependency | test score | difference, points |\n|---|---|---|---|")
    for dataset, settings in opened(options.data, options.epochs):
        first: list[float] = []
        for dependency in (1, *options.dependency):
            own = settings.replace(
                sampler="labor", sampler_options={"batch_dependency": dependency}
            )
            scores = test_scores(dataset, own, "labor", options.seeds)
            first = first or scores
            beside = "" if dependency == 1 else difference(scores, first)
            print(
                f"| {dataset.name} | {dependency} | {statistics.mean(scores):.2f} | {beside} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
