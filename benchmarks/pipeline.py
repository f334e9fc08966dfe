"""Link prediction with rows learned in a folder: seconds, loss and ranks over the batches that may
be under way.

python benchmarks/pipeline.py [--data FOLDER] [--staleness 1 2 4 8] [--epochs 5] [--width 128]
[--threads 1]

A DistMult model: the table of nodes lies in files, that of relations in memory, both learned by
Adagrad, with negatives shared by a batch. FOLDER is as ``nodeflow.datasets.read_folder`` reads it;
"debian" is the bundled graph, of which 5 % of the edges are kept for the test. ``--delay`` adds
seconds to the fetching of every batch, as a slow disk would. The epochs of all settings take turns,
and the medians of their seconds are printed. Ranks are filtered, of test edges.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nodeflow.datasets import debian, read_folder
from nodeflow.learned import EmbeddingTable, Pipeline
from nodeflow.metrics import rank_links
from nodeflow.random import Random, derive_key


def triples_and_split(data: str) -> tuple[Tensor, Tensor, int]:
    """Triples ``[n, 3]``, which of them are for the test, and the number of nodes."""
    graph = (debian() if data == "debian" else read_folder(data, labels=False)).graph
    src, dst = graph.edges()
    columns = graph.edata
    relation = columns["relation"].long() if "relation" in columns else torch.zeros_like(src)
    test = (
        columns["split"] == 2 if "split" in columns else Random(0).uniform(range(len(src))) < 0.05
    )
    kept = (columns["split"] != 1) if "split" in columns else torch.ones(len(src), dtype=torch.bool)
    return torch.stack([src, relation, dst], 1)[kept], test[kept], graph.num_nodes


def score_all(rows: Tensor, relation: Tensor, table: Tensor, *, side: str) -> Tensor:
    return (rows * relation) @ table.T


class Run:
    """A model of its own with ``staleness`` batches under way."""

    def __init__(
        self,
        options: argparse.Namespace,
        staleness: int,
        folder: Path,
        data: tuple[Tensor, Tensor, int],
    ):
        self.options = options
        self.staleness = staleness
        triples, test, self.num_nodes = data
        self.train = triples[~test]
        self.test = triples[test]
        self.known = triples
        shared: dict[str, Any] = {"lr": options.lr, "init": "uniform"}
        self.nodes = EmbeddingTable(
            self.num_nodes, options.width, folder=folder / str(staleness), **shared
        )
        self.relations = EmbeddingTable(
            int(triples[:, 1].max()) + 1, options.width, seed=1, **shared
        )
        self.epoch = 0
        self.seconds = list[float]()
        self.loss = 0.0

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = Random(derive_key(1, self.epoch)).permutation(len(self.train))
        for number, part in enumerate(order.split(self.options.batch_size)):
            ids = range(self.options.negatives)
            yield (
                self.train[part],
                Random(derive_key(2, self.epoch, number)).integers(ids, self.num_nodes),
            )

    def compute(self, batch: tuple[Tensor, Tensor], rows: dict[str, Tensor]) -> float:
        count = len(batch[0])
        src, dst, others = rows["nodes"].split([count, count, len(batch[1])])
        query = src * rows["relations"]
        right = torch.nn.functional.logsigmoid((query * dst).sum(1)).sum()
        wrong = torch.nn.functional.logsigmoid(-(query @ others.T)).mean(1).sum()
        loss = -(right + wrong)
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.item()) / count

    def ids(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        time.sleep(self.options.delay)
        return torch.cat([batch[0][:, 0], batch[0][:, 2], batch[1]])

    def train_epoch(self) -> None:
        pulls: dict[str, Any] = {
            "nodes": (self.nodes, self.ids),
            "relations": (self.relations, lambda b: b[0][:, 1]),
        }
        begun = time.perf_counter()
        losses = list(Pipeline(self.batches(), pulls, self.compute, staleness=self.staleness))
        self.seconds.append(time.perf_counter() - begun)
        self.loss = statistics.mean(losses)
        self.epoch += 1

    def mrr(self) -> float:
        relations = self.relations.fetch(range(self.relations.shape[0]))

        def scorer(rows: Tensor, relation: Tensor, table: Tensor, *, side: str) -> Tensor:
            return score_all(rows, relations[relation], table, side=side)

        table = self.nodes.fetch(range(self.num_nodes))
        triples = self.test[Random(3).permutation(len(self.test))[: self.options.ranked]]
        return float((1 / rank_links(scorer, table, triples, known=self.known).ranks).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="debian", metavar="FOLDER", help='a folder, or "debian"')
    parser.add_argument("--staleness", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--negatives", type=int, default=512)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument(
        "--ranked", type=int, default=3000, help="test edges that are ranked, at most"
    )
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds that are added to every fetch"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument(
        "--folder", type=Path, help="where the tables lie; None: a temporary folder"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = triples_and_split(options.data)
    print(
        f"{options.data}: {data[2]:,} nodes, {int((~data[1]).sum()):,} edges, width "
        f"{options.width}, {options.epochs} "
        f"epochs, {options.threads} thread(s); {platform.machine()}, {os.cpu_count()} cores\n"
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        runs = [Run(options, staleness, Path(folder), data) for staleness in options.staleness]
        for _ in range(options.epochs):
            for run in runs:
                run.train_epoch()
        print(
            "| batches under way | seconds per epoch | times faster | loss | test MRR "
            "|\n|---|---|---|---|---|"
        )
        first = statistics.median(runs[0].seconds)
        for run in runs:
            seconds = statistics.median(run.seconds)
            cells = (
                run.staleness,
                f"{seconds:.2f}",
                f"{first / seconds:.2f}",
                f"{run.loss:.4f}",
                f"{run.mrr():.4f}",
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            run.nodes.close()


if __name__ == "__main__":
    main()
