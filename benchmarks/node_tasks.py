"""Train a model with every sampler, and print a table of test scores, seconds and edges read, for
each data set.

python benchmarks/node_tasks.py --data debian FOLDER ... [--samplers labor ladies] [--seeds 3] [--epochs 5]

A data set is "debian" or a folder as ``nodeflow.datasets.read_folder`` reads it. Its settings are
those of ``settings/NAME.toml`` beside this file, for all samplers; NAME is the name of the folder.
Sets without a file have the default settings. ``fanouts`` are the sampler's own (see
``nodeflow train --help``); those of control variates are 2, and their models have no ``norm``.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.training import Result, Settings, Trainer

SAMPLERS = (
    "neighbor", "labor", "bernoulli", "fastgcn", "ladies", "random-walk", "saint", "cluster", "shadow", "cv",
)  # fmt: skip
# few draws are enough there; its models have no norm
SPECIAL = {"cv": {"fanouts": (2, 2), "norm": "none"}}


@dataclass
class Row:
    """What the runs of one sampler gave, a value per seed."""

    sampler: str
    scores: list[float]
    seconds: list[float]
    edges: list[float]
    epochs: list[int]

    def __str__(self) -> str:
        mean = statistics.mean(self.scores)
        spread = statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0
        seconds = statistics.mean(self.seconds)
        edges = statistics.mean(self.edges)
        return (
            f"| {self.sampler} | {mean:.4f} | {spread:.4f} | {seconds:.2f} | {edges / 1e6:.3f} | "
            f"{statistics.mean(self.epochs):.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", nargs="+", default=["debian"], metavar="FOLDER", help='folders, or "debian"'
    )
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=SAMPLERS)
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs of every sampler, with seeds 0, 1, ..."
    )
    parser.add_argument("--epochs", type=int, help="instead of those of the settings")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"{options.threads} thread(s), {options.seeds} seeds; {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
    for dataset, settings in opened(options.data, options.epochs):
        print_table(dataset, settings, options.samplers, options.seeds)


def opened(names: list[str], epochs: int | None) -> Iterator[tuple[Dataset, Settings]]:
    """Yield data sets, "debian" or folders, and their settings, with other ``epochs`` if they are
    given.
    """
    for name in names:
        dataset = debian() if name == "debian" else read_folder(name)
        settings = settings_of(dataset)
        yield dataset, settings if epochs is None else settings.replace(epochs=epochs)


def settings_of(dataset: Dataset) -> Settings:
    """Return the settings for a data set."""
    file = Path(__file__).parent / "settings" / f"{dataset.name}.toml"
    return Settings.from_dict(tomllib.loads(file.read_text())) if file.exists() else Settings()


def print_table(
    dataset: Dataset, settings: Settings, samplers: tuple[str, ...], seeds: int
) -> None:
    """Train with every sampler; print a line of each to standard error when it is known, then the
    table, best first.
    """
    rows = []
    metric = ""
    for sampler in samplers:
        results = [run(dataset, settings, sampler, seed) for seed in range(seeds)]
        metric = results[0].metric
        rows.append(
            Row(
                sampler,
                [result.test_score for result in results],
                [sum(record.seconds for record in result.records) for result in results],
                [
                    sum(record.edges_per_second * record.seconds for record in result.records)
                    for result in results
                ],
                [len(result.records) for result in results],
            )
        )
        print(rows[-1], file=sys.stderr, flush=True)
    print(f"\n{dataset}, model {settings.model.name}\n")
    print(
        f"| sampler | test {metric} | deviation | seconds | million edges | epochs "
        "|\n|---|---|---|---|---|---|"
    )
    for row in sorted(rows, key=lambda row: -statistics.mean(row.scores)):
        print(row)
    print(
        "\nseconds and edges: of all training epochs of a run, without validation; means over the "
        "seeds"
    )


def test_scores(dataset: Dataset, settings: Settings, sampler: str, seeds: int) -> list[float]:
    """Train with the seeds 0, 1, ...; return the test scores in points."""
    return [100 * run(dataset, settings, sampler, seed).test_score for seed in range(seeds)]


def difference(scores: list[float], others: list[float]) -> str:
    """Return the mean difference of scores with the same seeds, and its standard error."""
    pairs = [score - other for score, other in zip(scores, others, strict=True)]
    error = statistics.stdev(pairs) / len(pairs) ** 0.5 if len(pairs) > 1 else 0.0
    return f"{statistics.mean(pairs):+.2f}±{error:.2f}"


def run(dataset: Dataset, settings: Settings, sampler: str, seed: int) -> Result:
    """Train once."""
    groups = settings.to_dict()
    del groups["sampler"]["fanouts"]  # those of the sampler are by default its own
    groups["sampler"]["name"] = sampler
    return Trainer(
        dataset, Settings.from_dict(groups).replace(seed=seed, **SPECIAL.get(sampler, {}))
    ).run()


if __name__ == "__main__":
    main()
