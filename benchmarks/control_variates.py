"""Control variates on real graphs: accuracy of training, and variance of gradients.

python benchmarks/control_variates.py accuracy  --data FOLDER [--graphs cora ...] [--seeds 10] [--plot FILE.png]
python benchmarks/control_variates.py gradients --data FOLDER [--graphs cora ...] [--plot FILE.png]
python benchmarks/control_variates.py time      --data FOLDER --graphs coauthor_physics debian [--seeds 3]

FOLDER holds a folder per graph, with adjacency.npz, features.npz, labels.npy and, where there is a
customary split, train.npy, val.npy and test.npy (else half, a quarter and a quarter of the nodes,
at random); "debian" is the bundled data set. The model is a GCN of two layers; NS-k, CV-k and CVD-k
draw k neighbours per node, "full" all; +PP has the first propagation precomputed. ("time": until CV
and the others have the accuracy that NS-10 ends with.)
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.stats
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
from nodeflow._core.rows.csr import from_scipy
from nodeflow._core.rows.rows import fetch_rows
from nodeflow.propagation import Propagation


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
    rate: float = 0.01  # of learning
    falling: bool = False  # linearly, to 0


class Way(NamedTuple):
    """How a model is trained: estimator, neighbours drawn per node (-1 = all), and whether PX is
    made beforehand.
    """

    estimator: str
    fanout: int
    precomputed: bool = False

    def __str__(self) -> str:
        name = "full" if self.fanout < 0 else f"{self.estimator.upper()}-{self.fanout}"
        return name + "+PP" * self.precomputed


WAYS = [
    *(Way("ns", fanout) for fanout in (-1, 10, 2, 1)),
    *(Way(estimator, fanout) for estimator in ("cv", "cvd") for fanout in (2, 1)),
    Way("ns", -1, True),
    *(Way(estimator, fanout, True) for estimator in ("ns", "cv", "cvd") for fanout in (2, 1)),
]
KINDS = [Way("ns", 2), Way("cv", 2), Way("ns", 1), Way("cv", 1)]
WITH_DROPOUT = [Way("ns", -1), Way("ns", 2), Way("cv", 2), Way("cvd", 2)]
SMALL = ("cora", "citeseer")


def read(folder: Path, name: str) -> Data:
    if name == "debian":
        data = datasets.debian()
        graph = transform.add_reverse_edges(data.graph)
        x = data.graph.ndata["feat"]
        y = data.graph.ndata["label"]
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
                part: torch.from_numpy(np.load(folder / name / f"{part}.npy")).long()
                for part in ("train", "test")
            }
        else:
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
            order = order[y[order] >= 0]
            half = len(order) // 2
            split = {"train": order[:half], "test": order[half + half // 2 :]}
    graph = transform.add_self_loops(
        Graph(*graph.csc()[:2]) if graph.csc()[2] is None else plain(graph)
    )
    graph.edata["p"] = transform.edge_norm(graph)
    sums = Propagation(graph.view(weight="p"))(x)
    return Data(
        name,
        graph,
        x,
        sums,
        y,
        split["train"],
        split["test"],
        **settings(name, len(split["train"])),
    )


def settings(name: str, seeds: int) -> dict[str, Any]:
    """How a graph is trained on."""
    if name in SMALL:
        return {"hidden": 32, "batch_size": seeds, "epochs": 200, "decay": 5e-4}
    if name == "nell":  # 186 classes, and few seeds: many steps
        return {
            "hidden": 128,
            "batch_size": 512,
            "epochs": 150,
            "decay": 0.0,
            "rate": 0.03,
            "falling": True,
        }
    epochs = 6 if name == "coauthor_physics" else 10
    return {"hidden": 128, "batch_size": 512, "epochs": epochs, "decay": 0.0}


def plain(graph: Graph) -> Graph:
    """The graph without columns."""
    return Graph.from_edges(*graph.edges(), num_nodes=graph.num_nodes)


def sampler_of(
    graph: Graph, way: Way, fanouts: list[int], history: History, seed: int
) -> NeighborSampler:
    if way.estimator == "ns":
        return NeighborSampler(graph.view(weight="p"), fanouts, seed=seed)
    first = 0 if history.has_inputs else fanouts[0]
    return ControlVariateSampler(history, [first, *fanouts[1:]], seed=seed)


class Run:
    """A model in training."""

    def __init__(self, data: Data, way: Way, seed: int) -> None:
        torch.manual_seed(seed)
        self.data = data
        self.way = way
        classes = int(data.y.max()) + 1
        options: dict[str, Any] = {
            "estimator": way.estimator,
            "dropout": 0.5,
            "precomputed": way.precomputed,
        }
        self.model = nn.VRGCN(data.x.shape[1], data.hidden, classes, 2, **options)
        self.x = data.px if way.precomputed else data.x
        inputs = None if way.precomputed or way.estimator == "ns" else self.x
        self.history = History(
            data.graph.view(weight="p"), self.model.history_widths, inputs=inputs
        )
        fanouts = [way.fanout] * len(self.model.convs)
        self.sampler = sampler_of(data.graph, way, fanouts, self.history, seed)
        self.loader = NodeFlowLoader(
            self.sampler, data.train, data.batch_size, shuffle=True, seed=seed
        )
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=data.rate, weight_decay=data.decay
        )
        rest = 0.0 if data.falling else 1.0
        self.schedule = torch.optim.lr_scheduler.LinearLR(
            self.optimizer, 1.0, rest, data.epochs * len(self.loader)
        )

    def loss(self, batch: NodeFlow) -> Tensor:
        read = batch.flow_sizes[0] > 0 or self.way.precomputed  # else there are sums of all inputs
        out = self.model(batch, fetch_rows(self.x, batch.front.parent_nid) if read else None)
        return cross_entropy(out, self.data.y[batch.seeds])

    def epoch(self, steps: int | None = None) -> None:
        """Train on all batches, or on so many."""
        self.train(islice(self.loader, steps))

    def train(self, batches: Iterable[NodeFlow]) -> None:
        self.model.train()
        for batch in batches:
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            if self.way.estimator != "ns":
                self.history.push(batch)
                self.history.commit()

    def accuracy(self) -> float:
        out = self.model.inference(self.data.graph.view(weight="p"), self.x).argmax(1)
        return 100 * float((out == self.data.y)[self.data.test].double().mean())


def accuracy(options: argparse.Namespace) -> None:
    found: dict[str, dict[str, list[float]]] = {}
    for name in options.graphs:
        data = read(options.data, name)
        print(
            f"\n{name}: {data.graph.num_nodes:,} nodes, {len(data.train):,} for training, "
            f"{options.seeds} seeds\n"
        )
        print("| | test accuracy % | minus full |\n|---|---|---|")
        found[name] = {}
        for way in (way for way in WAYS if str(way) in options.ways):
            values = []
            for seed in range(options.seeds):
                run = Run(data, way, seed)
                for _ in range(options.epochs or data.epochs):
                    run.epoch()
                values.append(run.accuracy())
            found[name][str(way)] = values
            full = found[name].get("full", values)  # of the same seeds, so differences are paired
            least = [value - other for value, other in zip(values, full, strict=True)]
            print(f"| {way} | {interval(values)} | {interval(least)} |", flush=True)
    if options.plot:
        plot_accuracy(found, options.plot)


def interval(values: list[float]) -> str:
    """The mean, and half the width of its confidence interval of 95 % (Student)."""
    return f"{statistics.mean(values):.2f} +- {half_width(values):.2f}"


def half_width(values: list[float]) -> float:
    if len(values) < 2:
        return float("nan")
    return (
        float(scipy.stats.t.ppf(0.975, len(values) - 1))
        * statistics.stdev(values)
        / len(values) ** 0.5
    )


def gradients(options: argparse.Namespace) -> None:
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name in options.graphs:
        data = read(options.data, name)
        print(
            f"\n{name}: squared deviation of the gradient of one batch, over the squared norm of "
            "the exact one\n"
        )
        columns = [(way, False) for way in KINDS] + [(way, True) for way in WITH_DROPOUT]
        names = [str(way) + ", dropout" * dropout for way, dropout in columns]
        print("| epochs | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
        run = Run(data, Way("cv", 2), 0)
        found[name] = {title: [] for title in names}
        last = options.epochs or data.epochs
        for epochs in range(last + 1):
            if epochs in (0, 1, 2, 5, 10, 20, 50, 100, last):
                values = [deviation(run, way, dropout) for way, dropout in columns]
                print(
                    f"| {epochs} | " + " | ".join(f"{value:.3g}" for value in values) + " |",
                    flush=True,
                )
                for title, value in zip(names, values, strict=True):
                    found[name][title].append((epochs, value))
            run.epoch()
    if options.plot:
        plot_gradients(found, options.plot)


def deviation(run: Run, way: Way, dropout: bool, draws: int = 30) -> float:
    """Over draws of neighbours; with dropout about their own mean, which is then not known
    exactly.
    """
    data = run.data
    seeds = run.data.train[: run.data.batch_size]
    generator = torch.get_rng_state()

    def gradient(way: Way, epoch: int) -> Tensor:
        run.model.estimator = way.estimator
        fanouts = [way.fanout] * len(run.model.convs)
        sampler = sampler_of(data.graph, way, fanouts, run.history, seed=10**6)
        run.model.zero_grad()
        run.loss(sampler(seeds, epoch=epoch)).backward()
        return torch.cat([p.grad.flatten() for p in run.model.parameters() if p.grad is not None])

    run.model.eval()
    exact = gradient(Way("ns", -1), 0)
    run.model.train(dropout)
    each = torch.stack([gradient(way, epoch) for epoch in range(draws)])
    middle = each.mean(0) if dropout else exact
    total = ((each - middle) ** 2).sum(1).sum() / (draws - dropout)
    run.model.estimator = run.way.estimator
    run.model.zero_grad()
    torch.set_rng_state(generator)  # so that the run is the one it would be without looking
    return float(total / (exact**2).sum())


def speed(options: argparse.Namespace) -> None:
    """Seconds of training until the test accuracy that NS-10 has at its end."""
    for name in options.graphs:
        data = read(options.data, name)
        ways = [
            Way("ns", 10),
            Way("ns", -1),
            Way("ns", 2),
            Way("cv", 2),
            Way("cv", 1),
            Way("cv", 2, True),
        ]
        ends: list[float] = []
        reached: dict[str, list[float]] = {str(way): [] for way in ways}
        for seed in range(options.seeds):
            curves = {
                str(way): curve(data, way, seed, options.epochs or data.epochs) for way in ways
            }
            # over the last epoch
            goal = statistics.mean(value for _, value in curves["NS-10"][-5:])
            ends.append(goal)
            for way, points in curves.items():
                reached[way].append(next((t for t, value in points if value >= goal), float("inf")))
        print(
            f"\n{name}: seconds of training until the accuracy of NS-10 at the end, "
            f"{interval(ends)} %\n"
        )
        print("| | median of the seeds | min to max | over NS-10 |\n|---|---|---|---|")
        first = statistics.median(reached["NS-10"])
        for way, times in reached.items():
            middle, least, most = (
                said(t) for t in (statistics.median(times), min(times), max(times))
            )
            ratio = said(statistics.median(times) / first, 2)
            print(f"| {way} | {middle} | {least} to {most} | {ratio} |", flush=True)


def said(seconds: float, digits: int = 1) -> str:
    return "never" if seconds == float("inf") else f"{seconds:.{digits}f}"


def curve(data: Data, way: Way, seed: int, epochs: int) -> list[tuple[float, float]]:
    """Seconds of training, and the accuracy then, five times an epoch."""
    run = Run(data, way, seed)
    points = []
    seconds = 0.0
    step = -(-len(run.loader) // 5)
    for _ in range(epochs):
        left = iter(run.loader)
        for _ in range(5):
            start = time.perf_counter()
            run.train(islice(left, step))
            seconds += time.perf_counter() - start
            points.append((seconds, run.accuracy()))
    return points


def plot_accuracy(found: dict[str, dict[str, list[float]]], file: Path) -> None:
    figure, axes = panels(len(found))
    for axis, (name, ways) in zip(axes, found.items(), strict=True):
        full = statistics.mean(ways.get("full", [float("nan")]))
        axis.axhspan(full - 0.5, full + 0.5, color="0.9", label="full, +- 0.5")
        for place, (way, values) in enumerate(ways.items()):
            color = (
                "tab:blue"
                if way.startswith("NS")
                else "black"
                if way.startswith("full")
                else "tab:orange"
            )
            axis.errorbar(
                place, statistics.mean(values), half_width(values), fmt="o", color=color, capsize=3
            )
        axis.set_xticks(range(len(ways)), list(ways), rotation=90, fontsize=8)
        axis.set(title=name)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set(ylabel="test accuracy %, mean and 95 %")
    save(figure, file)


def plot_gradients(found: dict[str, dict[str, list[tuple[int, float]]]], file: Path) -> None:
    figure, axes = panels(len(found))
    for axis, (name, lines) in zip(axes, found.items(), strict=True):
        for title, points in lines.items():
            color = (
                "tab:blue"
                if title.startswith("NS")
                else "black"
                if title.startswith("full")
                else "tab:orange"
            )
            color = "tab:green" if title.startswith("CVD") else color
            style = "--" if "dropout" in title else "-"
            marker = "." if "1" in title else "o"
            axis.plot(
                *zip(*points, strict=True),
                style,
                marker=marker,
                color=color,
                label=title,
                alpha=0.8,
            )
        axis.set(title=name, xlabel="epochs", yscale="log", xscale="symlog", xlim=(-0.2, None))
        last = max(epochs for points in lines.values() for epochs, _ in points)
        ticks = [*(epochs for epochs in (0, 1, 10, 100) if 3 * epochs < last), last]
        axis.set_xticks(ticks, ticks)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="squared deviation / squared norm")
    axes[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, file)


def panels(number: int) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        1, number, figsize=(2.6 * number + 1.2, 3.4), layout="constrained", squeeze=False
    )
    return figure, list(axes[0])


def save(figure: Any, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=["accuracy", "gradients", "time"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--graphs", nargs="+", default=["cora", "citeseer", "nell", "coauthor_physics", "debian"]
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--plot", type=Path, help="where to write a picture")
    parser.add_argument(
        "--ways", nargs="+", default=list(map(str, WAYS)), choices=list(map(str, WAYS))
    )
    options = parser.parse_args()
    {"accuracy": accuracy, "gradients": gradients, "time": speed}[options.job](options)


if __name__ == "__main__":
    main()
