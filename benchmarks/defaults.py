"""Compare the default settings with the best of a random search, and print a table of test scores.

python benchmarks/defaults.py --data debian FOLDER ... [--tries 20] [--seeds 3]

A try takes one value of every line of ``SPACE``, the same tries for all data sets, and trains once
with seed 0. The try with the best validation score, and the defaults, are then trained with other
seeds. A difference is of mean test scores, in points, with its standard error; above zero the
defaults are better. Data sets are those of ``node_tasks.py``.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import time

import torch

from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.training import Result, Settings, Trainer

SPACE: dict[str, tuple[object, ...]] = {
    "model": ("sage", "gcn"),
    "hidden": (64, 128, 256, 512),
    "dropout": (0.0, 0.3, 0.5, 0.6, 0.8),
    "norm": ("none", "batch", "layer"),
    "lr": (0.001, 0.003, 0.01),
    "weight_decay": (0.0, 5e-5, 5e-4),
    "fanouts": ((5, 5), (10, 10), (15, 10), (10, 10, 10)),
    "batch_size": (256, 512, 1024),
    "epochs": (10, 15, 30),
}
"""Values of settings that are searched."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", nargs="+", default=["debian"], metavar="FOLDER", help='folders, or "debian"'
    )
    parser.add_argument("--tries", type=int, default=20, help="settings that are searched")
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        help="runs of the best and of the defaults, with seeds 1, 2, ...",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        help="of every run, instead of those of the search and of the defaults",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    draw = random.Random(0)
    tries = [
        {name: draw.choice(values) for name, values in SPACE.items()} for _ in range(options.tries)
    ]
    # all epochs; scores are those of the best
    tries = [{**values, "patience": 0} for values in tries]
    epochs = {} if options.epochs is None else {"epochs": options.epochs}
    print(
        f"one thread, {options.tries} tries, {options.seeds} seeds; {platform.machine()}, "
        f"{os.cpu_count()} cores\n"
    )
    print(
        "| data | defaults | best of the search | difference, points | minutes of the search | its "
        "settings |"
    )
    print("|---|---|---|---|---|---|")
    for name in options.data:
        dataset = debian() if name == "debian" else read_folder(name)
        start = time.monotonic()
        best = max(tries, key=lambda values: validation_score(dataset, {**values, **epochs}))
        minutes = (time.monotonic() - start) / 60
        ours, theirs = (
            [
                100 * run(dataset, {**values, **epochs}, seed).test_score
                for seed in range(1, options.seeds + 1)
            ]
            for values in ({}, best)
        )
        difference = statistics.mean(ours) - statistics.mean(theirs)
        error = (squared_error(ours) + squared_error(theirs)) ** 0.5
        words = ", ".join(f"{setting} {value}" for setting, value in best.items())
        print(
            f"| {dataset.name} | {statistics.mean(ours):.2f} | {statistics.mean(theirs):.2f} | "
            f"{difference:+.2f}±{error:.2f} | {minutes:.0f} | {words} |",
            flush=True,
        )


def validation_score(dataset: Dataset, values: dict[str, object]) -> float:
    """Train once with seed 0, print a line to standard error, and return the best validation
    score.
    """
    result = run(dataset, values, 0)
    print(
        f"{dataset.name} {result.best_val_score:.4f} {result.test_score:.4f} {values}",
        file=sys.stderr,
        flush=True,
    )
    return result.best_val_score


def run(dataset: Dataset, values: dict[str, object], seed: int) -> Result:
    """Train once."""
    return Trainer(dataset, Settings(values, seed=seed)).run()


def squared_error(scores: list[float]) -> float:
    """The square of the standard error of a mean."""
    return statistics.variance(scores) / len(scores) if len(scores) > 1 else 0.0


if __name__ == "__main__":
    main()
