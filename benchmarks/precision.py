"""Time training steps in float32 and with ``precision="bf16"``, in turn; tables with ratios of
medians; accuracies.

python benchmarks/precision.py [--threads 1 2] [--rounds 9] [--sets rmat debian FOLDER ...]
python benchmarks/precision.py --accuracy 5 --sets debian FOLDER

The step is that of ``nodeflow train`` with its default settings: GraphSAGE, 10 and 10 neighbours,
hidden width 256, 1,024 seeds, dropout 0.6, Adam. "rmat" is the RMAT graph with 100 dense features
and 47 classes, once more without dropout; FOLDER is one that ``datasets.read_folder`` takes. "step"
has batches that are drawn already, "epoch" draws them and fetches their features in another thread.
Where products of bfloat16 are made in float32, a third time is that with products in bfloat16;
ONEDNN_MAX_CPU_ISA=AVX512_CORE makes such a processor of another. Ratios are to float32. Times are
wall time and processor time of all threads: on a machine that others use, judge by the second.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rmat import ensure

from nodeflow import Graph, ops
from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.ops import _products
from nodeflow.training import Settings, Trainer, _task

HERE = Path(__file__).resolve().parent
PRECISIONS = ("float32", "bf16")
CHOSEN = ops.product_type()
VARIANTS = PRECISIONS if CHOSEN is torch.bfloat16 else (*PRECISIONS, "bf16 with products in bf16")
BATCHES = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", nargs="+", default=["rmat", "debian"], help="rmat, debian, or folders"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--rounds", type=int, default=9, help=f"rounds of {BATCHES} batches in turn"
    )
    parser.add_argument(
        "--accuracy", type=int, default=0, metavar="SEEDS", help="train with so many seeds instead"
    )
    parser.add_argument("--epochs", type=int, default=15, help="with --accuracy")
    parser.add_argument("--scale", type=int, default=19, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, "
        "products of bf16 in "
        f"{CHOSEN}\n"
    )
    found = {Path(name).name: dataset(name, options) for name in options.sets}
    if options.accuracy:
        accuracy(found, options)
    else:
        times(found, options)


def dataset(name: str, options: argparse.Namespace) -> Dataset:
    if name == "debian":
        return debian()
    if name != "rmat":
        data = read_folder(name)
        if len(data.train):
            return data
        labelled = np.flatnonzero(data.graph.ndata["label"].numpy() >= 0)
        # half to train, a quarter each to validate and test
        order = np.random.default_rng(0).permutation(labelled)
        cuts = len(order) // 2, len(order) * 3 // 4
        train, val, test = np.split(order, cuts)
        return Dataset(name, data.graph, train, val, test, data.num_classes)
    folder = ensure(options.data, options.scale, options.edge_factor)
    graph = Graph(
        *(torch.from_numpy(np.load(folder / f"{part}.npy")) for part in ("indptr", "indices"))
    )
    make = torch.Generator().manual_seed(0)
    graph.ndata["feat"] = torch.randn(graph.num_nodes, 100, generator=make)
    graph.ndata["label"] = torch.randint(0, 47, (graph.num_nodes,), generator=make)
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    parts = np.split(order[: BATCHES * 1024 + 200], [BATCHES * 1024, BATCHES * 1024 + 100])
    return Dataset(name, graph, *parts, 47)


def times(found: dict[str, Dataset], options: argparse.Namespace) -> None:
    kinds = " | ".join(f"{kind} | ratio" for kind in VARIANTS[1:])
    heads = [f"{what} ms, float32 | {kinds}" for what in ("wall", "processor")]
    print("| set | threads | | " + " | ".join(heads) + " |")
    print("|---" * (1 + 4 * len(VARIANTS)) + "|")
    for name, data in found.items():
        for dropout in (0.6, 0.0) if name == "rmat" else (0.6,):
            trainers = {
                kind: trainer(kind, data, Settings(dropout=dropout, direction=direction(name)))
                for kind in VARIANTS
            }
            for threads in options.threads:
                torch.set_num_threads(threads)
                rows = measured(trainers, options.rounds)
                title = name if dropout else f"{name}, no dropout"
                for what, (wall, cpu) in rows.items():
                    cells = [
                        " | ".join(
                            [f"{ms[0]:.1f}", *(f"{one:.1f} | {one / ms[0]:.2f}" for one in ms[1:])]
                        )
                        for ms in (wall, cpu)
                    ]
                    print(f"| {title} | {threads} | {what} | " + " | ".join(cells) + " |")
                sys.stdout.flush()


def choose(variant: str) -> None:
    """Let products be made in bfloat16 for the third variant, whatever the processor."""
    _products.product_type = _task.product_type = lambda *_: (
        torch.bfloat16 if "with" in variant else CHOSEN
    )


def trainer(variant: str, data: Dataset, settings: Settings) -> Trainer:
    choose(variant)
    return Trainer(data, settings.replace(precision=variant.split()[0]))


def direction(name: str) -> str:
    return "in" if name == "rmat" else "both"  # it is symmetric, which takes long to find out


def measured(trainers: dict[str, Trainer], rounds: int) -> dict[str, list[list[float]]]:
    """Medians of wall and processor time of a step, in ms, of each precision: with and without
    drawing the batch.
    """
    drawn = {}
    for precision, trainer in trainers.items():
        trainer.network.train()
        drawn[precision] = [
            batch for _, batch in zip(range(BATCHES), trainer.batches, strict=False)
        ]

    def steps(trainer: Trainer, batches: object) -> Callable[[], None]:
        def run() -> None:
            for _, batch in zip(range(BATCHES), batches, strict=False):  # type: ignore[call-overload]
                trainer.step(batch)

        return run

    table = {}
    for what in ("step", "epoch"):
        work = {p: steps(t, drawn[p] if what == "step" else t.batches) for p, t in trainers.items()}
        seconds: dict[str, list[tuple[float, float]]] = {precision: [] for precision in work}
        for turn in range(rounds + 1):
            for precision, run in work.items():
                choose(precision)
                wall = time.perf_counter()
                cpu = time.process_time()
                run()
                if turn:
                    seconds[precision].append(
                        (time.perf_counter() - wall, time.process_time() - cpu)
                    )
        table[what] = [
            [
                1e3 / BATCHES * statistics.median(pair[k] for pair in seconds[precision])
                for precision in work
            ]
            for k in (0, 1)
        ]
    return table


def accuracy(found: dict[str, Dataset], options: argparse.Namespace) -> None:
    print(
        f"Test accuracy in % after {options.epochs} epochs, weights of the best epoch by "
        "validation\n"
    )
    print("| set | seed | float32 | bf16 | difference | s per run, float32 | bf16 |")
    print("|---|---|---|---|---|---|---|")
    torch.set_num_threads(max(options.threads))
    for name, data in found.items():
        scores: list[list[float]] = []
        for seed in range(options.accuracy):
            row = []
            seconds = []
            for precision in PRECISIONS:
                start = time.perf_counter()
                settings = Settings(
                    precision=precision, seed=seed, epochs=options.epochs, direction=direction(name)
                )
                row.append(100 * Trainer(data, settings).run().scores["test"]["accuracy"])
                seconds.append(time.perf_counter() - start)
            scores.append(row)
            print(f"| {name} | {seed} | {row[0]:.2f} | {row[1]:.2f} | {row[1] - row[0]:+.2f} "
                  f"| {seconds[0]:.0f} | {seconds[1]:.0f} |", flush=True)  # fmt: skip
        means = [statistics.mean(column) for column in zip(*scores, strict=True)]
        print(
            f"| {name} | mean | {means[0]:.2f} | {means[1]:.2f} | {means[1] - means[0]:+.2f} | | |",
            flush=True,
        )


if __name__ == "__main__":
    main()
