"""What it gains, and what it costs, that seeds of the same part of a graph come together: rows,
time, test scores.

python benchmarks/locality.py --data FOLDER ... [--groups 256] [--mix 1 4 16] [--rounds 5]
[--batch-size 1024] python benchmarks/locality.py --data FOLDER ... --accuracy 3

Seeds are shuffled with ``loader.LocalShuffle`` over the parts that METIS cuts the graph into,
``mix`` of them together; "all" is a random order of all seeds. The first command draws epochs of
batches (all nodes, 10 and 10 neighbours, one thread) with 100 columns of float32, in turn: input
rows of a batch, and the time of drawing it and of gathering its rows. "by part" is the graph with
its nodes numbered part by part, so that those of a part lie together in memory. The second one
trains with the settings of ``node_tasks.py``, whose ``groups`` and ``mix`` it sets; differences are
to random orders with the same seeds, in points of the test score, with their standard error.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import torch
from node_tasks import difference, settings_of, test_scores

from nodeflow import Graph, NeighborSampler, NodeFlowLoader, transform
from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.loader import LocalShuffle
from nodeflow.sampling import partition

FANOUTS = [10, 10]
WIDTH = 100


class Epochs:
    """A way to order the nodes of a graph and the seeds, and what its epochs took."""

    def __init__(
        self, title: list[object], graph: Graph, shuffle: bool | LocalShuffle, batch_size: int
    ) -> None:
        self.title = title
        graph.ndata["x"] = torch.randn(
            graph.num_nodes, WIDTH, generator=torch.Generator().manual_seed(0)
        )
        sampler = NeighborSampler(graph, FANOUTS)
        self.loader = NodeFlowLoader(sampler, "all", batch_size, shuffle=shuffle, ndata={0: ["x"]})
        self.rows = 0.0
        self.milliseconds = list[float]()

    def run(self) -> None:
        start = time.perf_counter()
        rows = 0
        for batch in self.loader:
            rows += batch.layer_sizes[0]
        self.milliseconds.append(1e3 * (time.perf_counter() - start) / len(self.loader))
        self.rows = rows / len(self.loader)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", nargs="+", default=["debian"], metavar="FOLDER", help='folders, or "debian"'
    )
    parser.add_argument("--groups", type=int, default=256, help="parts of the graph")
    parser.add_argument(
        "--mix",
        type=int,
        nargs="+",
        default=[1, 4, 16],
        help="parts whose seeds are shuffled together",
    )
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5, help="epochs of each, in turn")
    parser.add_argument(
        "--accuracy", type=int, default=0, metavar="SEEDS", help="train with so many seeds instead"
    )
    parser.add_argument(
        "--epochs", type=int, help="with --accuracy, instead of those of the settings"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"one thread, {options.groups} parts; {platform.machine()}, {os.cpu_count()} cores\n")
    heads = ["data", "mix", "test score", "difference, points"]
    speed = ["data", "nodes", "mix", "rows per batch", "of random", "ms per batch", "of random"]
    print(f"| {' | '.join(heads if options.accuracy else speed)} |")
    print("|---" * (len(heads) if options.accuracy else len(speed)) + "|")
    for name in options.data:
        dataset = debian() if name == "debian" else read_folder(name, labels=bool(options.accuracy))
        accuracy(dataset, options) if options.accuracy else speeds(dataset, options)


def speeds(dataset: Dataset, options: argparse.Namespace) -> None:
    graph = Graph(dataset.graph.indptr, dataset.graph.indices)
    graph = graph if transform.is_symmetric(graph) else transform.add_reverse_edges(graph)
    parts = partition(graph, options.groups)
    order = parts.argsort(stable=True)
    ways = []
    for place, one, of in (
        ("as given", graph, parts),
        ("by part", transform.reorder(graph, order), parts[order]),
    ):
        for mix in (0, *options.mix):
            shuffle = LocalShuffle(of, mix) if mix else True
            ways.append(
                Epochs([dataset.name, place, mix or "all"], one, shuffle, options.batch_size)
            )
    for turn in range(options.rounds + 1):
        for way in ways:
            way.run()
            if turn == 0:
                way.milliseconds.clear()  # caches, and memory that is used again
    first = ways[0]
    for way in ways:
        took, base = (statistics.median(one.milliseconds) for one in (way, first))
        cells = [
            *way.title,
            f"{way.rows:,.0f}",
            f"{way.rows / first.rows:.2f}",
            f"{took:.2f}",
            f"{took / base:.2f}",
        ]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def accuracy(dataset: Dataset, options: argparse.Namespace) -> None:
    settings = settings_of(dataset)
    if options.epochs is not None:
        settings = settings.replace(epochs=options.epochs)
    first: list[float] = []
    for mix in (0, *options.mix):
        local = settings.replace(groups=options.groups, mix=mix) if mix else settings
        scores = test_scores(dataset, local, "neighbor", options.accuracy)
        first = first or scores
        beside = difference(scores, first) if mix else ""
        print(
            f"| {dataset.name} | {mix or 'all'} | {statistics.mean(scores):.2f} | {beside} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
