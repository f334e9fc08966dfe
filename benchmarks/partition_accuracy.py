"""Train on a partition buffer and in memory, by the same steps, and print accuracy, memory held,
bytes read, seconds.

python benchmarks/partition_accuracy.py nodes the bundled set, GraphSAGE python
benchmarks/partition_accuracy.py nodes --data FOLDER a data set, see datasets.read_folder python
benchmarks/partition_accuracy.py links --data FOLDER/edges.npz DistMult, learned rows in the buffer

Sparse features become dense columns of partitions, piece by piece. ``edges.npz`` of a knowledge
graph has src, dst, relation, split (0, 1, 2: training, validation, test), num_nodes and
num_relations. Scores are of the test set: accuracy, and the filtered mean reciprocal rank among all
nodes.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow._rows.rows import take_rows
from nodeflow.datasets import debian, read_folder
from nodeflow.metrics import rank_links
from nodeflow.nn import DistMult, GraphSAGE, softmax_loss
from nodeflow.partitions import PartitionBuffer, Partitions, write_partitions
from nodeflow.random import Random, derive_key
from nodeflow.transform import add_reverse_edges, is_symmetric

NEGATIVES = 512
BATCH = 1024
RATE = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("nodes", "links"))
    parser.add_argument(
        "--data", type=Path, metavar="PATH", help="nodes: a folder; links: edges.npz"
    )
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=1, help="runs with seeds 0, 1, ...")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument(
        "--orders", nargs="+", default=["memory", "comet", "beta"], help="memory: no buffer"
    )
    parser.add_argument(
        "--method", default="random", choices=("random", "metis"), help="how nodes are cut"
    )
    parser.add_argument("--width", type=int, default=100, help="of learned rows")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    options = parser.parse_args()
    if options.task == "links" and options.data is None:
        parser.error("links needs --data")
    torch.set_num_threads(options.threads)
    print(f"{options.epochs} epochs, {options.partitions} partitions, {options.slots} slots, "
          f"{options.seeds} seed(s); "
          f"{options.threads} thread(s); {platform.machine()}, {os.cpu_count()} cores\n")  # fmt: skip
    print(
        "| rows | score | deviation | held, MB | read, MB | seconds |\n|---|---|---|---|---|---|",
        flush=True,
    )
    job: Any = (
        Nodes(options.data) if options.task == "nodes" else Links(options.data, options.width)
    )
    for order in options.orders:
        runs = []
        for seed in range(options.seeds):
            torch.manual_seed(seed)
            begun = time.perf_counter()
            if order == "memory":
                score, held, read = job.in_memory(options.epochs, seed)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    score, held, read = job.in_buffer(options, order, Path(folder) / "parts", seed)
            runs.append((score, held / 1e6, read / 1e6, time.perf_counter() - begun))
        score, held, read, seconds = np.mean(runs, 0)
        spread = np.std([run[0] for run in runs])
        print(
            f"| {order} | {score:.4f} | {spread:.4f} | {held:.0f} | {read:.0f} | {seconds:.0f} |",
            flush=True,
        )


class Nodes:
    """The classes of nodes, by default the sections of Debian packages, with messages both ways."""

    def __init__(self, folder: Path | None) -> None:
        self.data = debian() if folder is None else read_folder(folder)
        graph = self.data.graph
        self.graph = graph if is_symmetric(graph) else add_reverse_edges(graph)
        self.features, self.labels = self.graph.ndata["feat"], self.graph.ndata["label"]

    def start(self) -> tuple[GraphSAGE, torch.optim.Optimizer]:
        model = GraphSAGE(self.features.shape[1], 128, self.data.num_classes, dropout=0.6)
        return model, torch.optim.Adam(model.parameters(), lr=0.003)

    def train(
        self,
        model: GraphSAGE,
        optimizer: torch.optim.Optimizer,
        graph: Graph,
        seeds: Tensor,
        seed: int,
    ) -> None:
        model.train()
        sampler = NeighborSampler(graph, [5, 5], seed=seed)
        columns = {0: ["feat"], -1: ["label"]}
        for batch in NodeFlowLoader(
            sampler, seeds, BATCH // 2, shuffle=True, seed=seed, ndata=columns
        ):
            out = model(batch, batch.layers[0].data["feat"])
            optimizer.zero_grad()
            F.cross_entropy(out, batch.layers[-1].data["label"]).backward()
            optimizer.step()

    def dense_rows(self, ids: Tensor) -> Tensor:
        rows = take_rows(self.features, ids)
        return rows if rows.layout == torch.strided else rows.to_dense()

    def score(self, model: GraphSAGE) -> float:
        out = model.eval().inference(self.graph, self.features, nodes=self.data.test)
        return float((out.argmax(1) == self.labels[self.data.test]).float().mean())

    def in_memory(self, epochs: int, seed: int) -> tuple[float, int, int]:
        model, optimizer = self.start()
        for epoch in range(epochs):
            self.train(model, optimizer, self.graph, self.data.train, derive_key(seed, epoch) >> 1)
        return self.score(model), self.graph.num_nodes * self.features.shape[1] * 4, 0

    def in_buffer(
        self, options: argparse.Namespace, order: str, folder: Path, seed: int
    ) -> tuple[float, int, int]:
        columns = {"feat": self.dense_rows}
        write_partitions(
            self.graph, folder, options.partitions, train=self.data.train, ndata=["label"], edata=[], columns=columns,
            method=options.method, seed=seed, progress=False,
        )  # fmt: skip
        model, optimizer = self.start()
        buffer = PartitionBuffer(folder, options.slots, order=order, seed=seed)
        for _ in range(options.epochs):
            for state in buffer:
                self.train(model, optimizer, state.graph, state.seeds, state.seed)
        return (
            self.score(model),
            buffer.held_bytes,
            buffer.counters.bytes_read + buffer.counters.edge_bytes_read,
        )


class Links:
    """Links of a knowledge graph: rows and the sums of their squared gradients (Adagrad) are
    learned.
    """

    def __init__(self, file: Path, width: int) -> None:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {
                name: torch.from_numpy(np.asarray(stored[name]).astype(np.int64))
                for name in stored.files
            }
        triples = torch.stack([arrays[name] for name in ("src", "relation", "dst")], 1)
        self.train_set, *others = (triples[arrays["split"] == part] for part in range(3))
        self.test_set = others[1]
        self.known = triples
        self.num_nodes = int(arrays["num_nodes"])
        self.num_relations = int(arrays["num_relations"])
        self.width = width

    def first_rows(self, ids: Tensor, seed: int) -> Tensor:
        flat = ids[:, None] * self.width + torch.arange(self.width)
        return ((Random(seed).uniform(flat.reshape(-1)) - 0.5) * 0.6).float().view(len(ids), -1)

    def start(self) -> tuple[DistMult, torch.optim.Optimizer]:
        decoder = DistMult(self.width, self.num_relations)
        return decoder, torch.optim.Adagrad(decoder.parameters(), lr=RATE)

    def train(
        self, decoder: DistMult, optimizer: torch.optim.Optimizer, tables: tuple[Tensor, Tensor], triples: Tensor,
        real: Tensor, seed: int,
    ) -> None:  # fmt: skip
        """Train on triples of rows of the tables; negatives are shared by a batch, of the rows
        ``real``.
        """
        rows, squares = tables
        random = Random(seed)
        order = random.permutation(len(triples))
        for k, batch in enumerate(order.split(BATCH)):
            src, relation, dst = triples[batch].T
            negatives = real[random.integers(range(NEGATIVES), len(real), draw=k)]
            leaf = rows.detach().requires_grad_()
            positive = decoder(leaf[src], leaf[dst], relation)
            loss = torch.zeros(())
            for given, side in ((src, "destination"), (dst, "source")):
                scores = decoder.score_all(leaf[given], relation, leaf[negatives], side)
                loss = loss + softmax_loss(positive, scores)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert leaf.grad is not None
            with torch.no_grad():
                squares.addcmul_(leaf.grad, leaf.grad)
                rows.addcdiv_(leaf.grad, squares.sqrt() + 1e-10, value=-RATE)

    def score(self, decoder: DistMult, rows: Tensor) -> float:
        return float(rank_links(decoder, rows, self.test_set, known=[self.known]).mrr)

    def in_memory(self, epochs: int, seed: int) -> tuple[float, int, int]:
        decoder, optimizer = self.start()
        nodes = torch.arange(self.num_nodes)
        tables = self.first_rows(nodes, seed), torch.zeros(self.num_nodes, self.width)
        for epoch in range(epochs):
            self.train(
                decoder, optimizer, tables, self.train_set, nodes, derive_key(seed, epoch) >> 1
            )
        return self.score(decoder, tables[0]), 2 * tables[0].nbytes, 0

    def in_buffer(
        self, options: argparse.Namespace, order: str, folder: Path, seed: int
    ) -> tuple[float, int, int]:
        src, relation, dst = self.train_set.T
        graph = Graph.from_edges(src, dst, num_nodes=self.num_nodes, edata={"relation": relation})
        columns = {
            "rows": lambda ids: self.first_rows(ids, seed), "squares": lambda ids: torch.zeros(len(ids), self.width)
        }  # fmt: skip
        write_partitions(
            graph,
            folder,
            options.partitions,
            columns=columns,
            method=options.method,
            seed=seed,
            progress=False,
        )
        decoder, optimizer = self.start()
        with PartitionBuffer(
            folder, options.slots, order=order, seed=seed, writable=["rows", "squares"]
        ) as buffer:
            for _ in range(options.epochs):
                for state in buffer:
                    tables = state.graph.ndata["rows"], state.graph.ndata["squares"]
                    real = (state.nodes >= 0).nonzero().flatten()
                    self.train(decoder, optimizer, tables, self.triples_of(state), real, state.seed)
        rows = Partitions.open(folder).column("rows").fetch(torch.arange(self.num_nodes))
        return self.score(decoder, rows), buffer.held_bytes, buffer.counters.bytes_read

    def triples_of(self, state: Any) -> Tensor:
        """The edges to train on in a state, in local ids."""
        src, dst = state.graph.find_edges(state.edges)
        return torch.stack([src, state.graph.edata["relation"][state.edges], dst], 1)


if __name__ == "__main__":
    main()
