"""Control variates on real graphs: accuracy of training, and variance of gradients.

python benchmarks/control_variates.py accuracy  --data FOLDER [--graphs cora ...] [--seeds 10]
python benchmarks/control_variates.py gradients --data FOLDER [--graphs cora ...]

FOLDER holds a folder per graph, with adjacency.npz, features.npz, labels.npy and, where there is a customary split,
train.npy, val.npy and test.npy (else half, a quarter and a quarter of the nodes, at random); "debian" is the bundled
data set. The model is a GCN of two layers; NS-k and CV-k draw k neighbours per node, "full" all; +PP has the first
propagation precomputed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from nodeflow import (
    ControlVariateSampler,
    Graph,
    History,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    datasets,
    nn,
    transform,
)
from nodeflow.control_variates import Propagation
from nodeflow.features import from_scipy, take_rows


class Data(NamedTuple):
    """A graph with propagation weights "p", features, propagated features, labels and a split."""

    name: str
    graph: Graph
    x: Tensor
    px: Tensor
    y: Tensor
    train: Tensor
    test: Tensor
    hidden: int
    batch_size: int
    epochs: int
    decay: float


class Way(NamedTuple):
    """How a model is trained: estimator, neighbours drawn per node (-1 = all), and whether PX is made beforehand."""

    estimator: str
    fanout: int
    precomputed: bool = False

    def __str__(self) -> str:
        name = "full" if self.fanout < 0 else f"{self.estimator.upper()}-{self.fanout}"
        return name + "+PP" * self.precomputed


WAYS = [
    Way("ns", -1), Way("ns", 10), Way("ns", 2), Way("ns", 1), Way("cv", 2), Way("cv", 1), Way("cvd", 2), Way("cvd", 1),
    Way("ns", 2, True), Way("ns", 1, True), Way("cv", 2, True), Way("cv", 1, True), Way("cvd", 2, True),
    Way("cvd", 1, True),
]  # fmt: skip
SMALL = ("cora", "citeseer")


def read(folder: Path, name: str) -> Data:
    if name == "debian":
        data = datasets.debian()
        graph, x, y = transform.add_reverse_edges(data.graph), data.graph.ndata["feat"], data.graph.ndata["label"]
        split = {"train": data.train, "test": data.test}
    else:
        adjacency = scipy.sparse.load_npz(folder / name / "adjacency.npz").tocoo()
        graph = Graph.from_edges(adjacency.row, adjacency.col, num_nodes=adjacency.shape[0])
        rows = scipy.sparse.load_npz(folder / name / "features.npz").tocsr().astype(np.float32)
        total = np.maximum(np.asarray(np.abs(rows).sum(1)).ravel(), 1e-9)
        x = from_scipy(scipy.sparse.diags_array(np.float32(1) / total.astype(np.float32)) @ rows)
        y = torch.from_numpy(np.load(folder / name / "labels.npy"))
        if (folder / name / "train.npy").exists():
            split = {
                part: torch.from_numpy(np.load(folder / name / f"{part}.npy")).long() for part in ("train", "test")
            }
        else:
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
            order = order[y[order] >= 0]
            half = len(order) // 2
            split = {"train": order[:half], "test": order[half + half // 2 :]}
    graph = transform.add_self_loops(Graph(*graph.csc()[:2]) if graph.csc()[2] is None else plain(graph))
    graph.edata["p"] = transform.edge_norm(graph)
    few = len(split["train"]) < 5000
    return Data(
        name, graph, x, Propagation(graph, weight="p")(x), y, split["train"], split["test"],
        hidden=32 if name in SMALL else 128, batch_size=len(split["train"]) if name in SMALL else 512,
        epochs=200 if name in SMALL else 60 if few else 10, decay=5e-4 if name in SMALL else 0.0,
    )  # fmt: skip


def plain(graph: Graph) -> Graph:
    """The graph without columns."""
    return Graph.from_edges(*graph.edges(), num_nodes=graph.num_nodes)


def sampler_of(graph: Graph, way: Way, fanouts: list[int], history: History, seed: int) -> NeighborSampler:
    if way.estimator == "ns":
        return NeighborSampler(graph, fanouts, weight="p", seed=seed)
    return ControlVariateSampler(graph, fanouts, history, seed=seed)


class Run:
    """A model in training."""

    def __init__(self, data: Data, way: Way, seed: int) -> None:
        torch.manual_seed(seed)
        self.data, self.way = data, way
        classes = int(data.y.max()) + 1
        options: dict[str, Any] = {"estimator": way.estimator, "dropout": 0.5, "precomputed": way.precomputed}
        self.model = nn.VRGCN(data.x.shape[1], data.hidden, classes, 2, **options)
        self.x = data.px if way.precomputed else data.x
        inputs = None if way.precomputed or way.estimator == "ns" else self.x
        self.history = History(data.graph, self.model.history_widths, weight="p", inputs=inputs)
        fanouts = [way.fanout] * len(self.model.convs)
        self.sampler = sampler_of(data.graph, way, fanouts, self.history, seed)
        self.loader = NodeFlowLoader(self.sampler, data.train, data.batch_size, shuffle=True, seed=seed)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01, weight_decay=data.decay)

    def loss(self, batch: NodeFlow) -> Tensor:
        out = self.model(batch, take_rows(self.x, batch.front.parent_nid))
        return cross_entropy(out, self.data.y[batch.seeds])

    def epoch(self, steps: int | None = None) -> None:
        """Train on all batches, or on so many."""
        self.model.train()
        for batch in islice(self.loader, steps):
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.way.estimator != "ns":
                self.history.push(batch)
                self.history.commit()

    def accuracy(self) -> float:
        out = self.model.inference(self.data.graph, self.x, weight="p").argmax(1)
        return 100 * float((out == self.data.y)[self.data.test].double().mean())


def accuracy(options: argparse.Namespace) -> None:
    for name in options.graphs:
        data = read(options.data, name)
        print(f"\n{name}: {data.graph.num_nodes:,} nodes, {len(data.train):,} for training, {options.seeds} seeds\n")
        print("| | test accuracy % | +- (95 %) | seconds of training |\n|---|---|---|---|")
        for way in WAYS:
            found, seconds = [], []
            for seed in range(options.seeds):
                run = Run(data, way, seed)
                start = time.perf_counter()
                for _ in range(options.epochs or data.epochs):
                    run.epoch()
                seconds.append(time.perf_counter() - start)
                found.append(run.accuracy())
            spread = 2.26 * statistics.stdev(found) / len(found) ** 0.5 if len(found) > 1 else float("nan")
            print(
                f"| {way} | {statistics.mean(found):.2f} | {spread:.2f} | {statistics.median(seconds):.1f} |",
                flush=True,
            )


def gradients(options: argparse.Namespace) -> None:
    for name in options.graphs:
        data = read(options.data, name)
        print(f"\n{name}: variance of the gradient, relative to the squared norm of the exact one\n")
        kinds = [Way("ns", 2), Way("cv", 2), Way("ns", 1), Way("cv", 1)]
        print("| epochs | " + " | ".join(map(str, kinds)) + " |\n|" + "---|" * (len(kinds) + 1))
        run = Run(data, Way("cv", 2), 0)
        for epochs in range((options.epochs or data.epochs) + 1):
            if epochs in (0, 1, 2, 5, 10, 20, 50, 100, 200):
                print(
                    f"| {epochs} | " + " | ".join(f"{value:.3g}" for value in variances(run, kinds)) + " |", flush=True
                )
            run.epoch()


def variances(run: Run, kinds: list[Way], draws: int = 20) -> Iterator[float]:
    """Of one batch, over draws of neighbours, without dropout."""
    data, seeds = run.data, run.data.train[: run.data.batch_size]
    run.model.eval()

    def gradient(way: Way, epoch: int) -> Tensor:
        run.model.estimator = way.estimator
        fanouts = [way.fanout] * len(run.model.convs)
        sampler = sampler_of(data.graph, way, fanouts, run.history, seed=10**6)
        run.model.zero_grad()
        run.loss(sampler(seeds, epoch=epoch)).backward()
        return torch.cat([p.grad.flatten() for p in run.model.parameters() if p.grad is not None])

    exact = gradient(Way("ns", -1), 0)
    for way in kinds:
        found = torch.stack([gradient(way, epoch) for epoch in range(draws)])
        yield float(((found - exact) ** 2).sum(1).mean() / (exact**2).sum())
    run.model.estimator = run.way.estimator
    run.model.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=["accuracy", "gradients"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "nell", "coauthor_physics", "debian"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    {"accuracy": accuracy, "gradients": gradients}[options.job](options)


if __name__ == "__main__":
    main()
