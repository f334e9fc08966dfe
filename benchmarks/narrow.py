"""Train on features that are stored narrow beside float32, with the same seeds, and print a table
of test scores.

python benchmarks/narrow.py --data FOLDER ... [--widths int8 bfloat16] [--seeds 3] [--components
128] [--epochs 5]

Data sets and their settings are those of ``node_tasks.py``. Words and flags would be stored without
any error, so the features are the first principal components of theirs, scaled to a deviation of 1:
dense numbers of any size. With ``--components 0`` they are as they come. "error" is the mean over
the columns of their mean error (``ColumnErrors``); differences are to float32 with the same seed,
in points of the test score, with their standard error.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from dataclasses import replace

import scipy.sparse.linalg
import torch
from node_tasks import difference, opened, test_scores
from torch import Tensor

from nodeflow import storage
from nodeflow.datasets import Dataset
from nodeflow.graph import with_frames
from nodeflow.storage import Rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", nargs="+", default=["debian"], metavar="FOLDER", help='folders, or "debian"'
    )
    parser.add_argument(
        "--widths", nargs="+", choices=("int8", "float16", "bfloat16", "auto"), default=["int8"]
    )
    parser.add_argument(
        "--components", type=int, default=128, help="columns of features; 0: as they come"
    )
    parser.add_argument("--limit", type=float, default=0.25, help="of the errors of columns")
    parser.add_argument("--sampler", default="neighbor")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each, with seeds 0, 1, ...")
    parser.add_argument("--epochs", type=int, help="instead of those of the settings")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one thread, {options.seeds} seeds; {platform.machine()}, {os.cpu_count()} cores\n")
    print(
        "| data | columns | stored as | error, % | test score | difference, points "
        "|\n|---|---|---|---|---|---|"
    )
    for dataset, settings in opened(options.data, options.epochs):
        x = dense(dataset.graph.ndata["feat"], options.components)
        first: list[float] = []
        for width in ("float32", *options.widths):
            column: Tensor | Rows = (
                x if width == "float32" else storage.narrow(x, width, limit=options.limit)
            )
            error = (
                100 * float(column.error.mean.mean())
                if isinstance(column, storage.NarrowRows)
                else 0.0
            )
            data = with_features(dataset, column)
            scores = test_scores(data, settings, options.sampler, options.seeds)
            first = first or scores
            beside = "" if width == "float32" else difference(scores, first)
            mean = statistics.mean(scores)
            print(
                f"| {dataset.name} | {x.shape[1]} | {width} | {error:.2f} | {mean:.2f} | {beside} "
                "|",
                flush=True,
            )


def dense(x: Tensor, components: int) -> Tensor:
    """Return features as dense float32; their principal components, each with a deviation of 1."""
    if components == 0:
        return (x.to_dense() if x.layout != torch.strided else x).float()
    if x.layout == torch.strided:
        left, sizes, _ = torch.svd_lowrank(x.float(), components, niter=4)
        return left * len(x) ** 0.5
    parts = x.values().double().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()
    left, sizes, _ = scipy.sparse.linalg.svds(
        scipy.sparse.csr_array(parts, shape=tuple(x.shape)), components, rng=0
    )
    return torch.from_numpy(left[:, sizes.argsort()[::-1]].copy()).float() * len(x) ** 0.5


def with_features(dataset: Dataset, x: Tensor | Rows) -> Dataset:
    """Return the data set with other features."""
    graph = dataset.graph
    return replace(dataset, graph=with_frames(graph, {**graph.ndata, "feat": x}, graph.edata))


if __name__ == "__main__":
    main()
