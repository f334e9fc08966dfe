"""How sampling scales: time per sampled edge from small to large graphs, and time per batch with
two workers.

python benchmarks/scaling.py [--plot FILE.png]

Draws 3-hop neighbourhoods (fanouts 15, 10, 5 from 1,024 seeds) on RMAT graphs of several scales, in
turn, and prints a table of medians. Beside them stand bare reads: of the drawn neighbours alone,
whose places are known. What two workers of a loader gain over one stands beside what two processes
gain that share nothing, each with half of the batches: the machine gives no more. The graphs are
made on first use (scale 22 takes 20 seconds and 4 GB of memory, scale 24 two minutes and 14 GB).
For systems that can fork processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
from operator import attrgetter
from pathlib import Path

import numpy as np
import torch
from rmat import ensure

from nodeflow import Graph, NeighborSampler, NodeFlowLoader

HERE = Path(__file__).resolve().parent

BATCH_SIZE = 1024
BATCHES = 60
FANOUTS = [5, 10, 15]


class Case:
    """A graph, and the times of rounds on it."""

    def __init__(self, folder: Path) -> None:
        indptr, indices = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")
        )
        self.graph = Graph(np.array(indptr), indices.astype(np.int32))
        self.sampler = NeighborSampler(self.graph, FANOUTS)
        order = np.random.default_rng(0).permutation(self.graph.num_nodes)
        self.seeds = torch.from_numpy(order[: BATCH_SIZE * BATCHES])
        batches = [self.sampler(part) for part in self.seeds.split(BATCH_SIZE)[:20]]
        self.drawn = torch.cat(
            [flow.parent_eid for batch in batches for flow in batch.flows[::-1]]
        ).numpy()
        self.per_edge: list[float] = []
        self.per_read: list[float] = []
        self.per_batch: dict[int, list[float]] = {1: [], 2: []}
        self.gains: list[float] = []

    def alone(self, epoch: int) -> None:
        """Sample in this thread; time per edge in nanoseconds."""
        start = time.perf_counter()
        edges = self.sample(epoch)
        took = time.perf_counter() - start
        self.per_edge.append(1e9 * took / edges)
        self.gains.append(took / self.in_processes(epoch))

    def read(self) -> None:
        """Read the neighbours of 20 batches; time per edge in nanoseconds."""
        start = time.perf_counter()
        self.graph.indices.take(self.drawn)
        self.per_read.append(1e9 * (time.perf_counter() - start) / len(self.drawn))

    def sample(self, epoch: int, first: int = 0, step: int = 1) -> int:
        """Sample the batches from ``first`` in steps of ``step``; their edges."""
        return sum(
            sum(self.sampler(p, epoch=epoch).flow_sizes)
            for p in self.seeds.split(BATCH_SIZE)[first::step]
        )

    def in_processes(self, epoch: int) -> float:
        """Seconds until two processes have sampled half of the batches each."""
        fork = multiprocessing.get_context("fork")
        begin = fork.Barrier(3)
        ends = fork.Queue()

        def half(first: int) -> None:
            begin.wait()
            self.sample(epoch, first, 2)
            ends.put(time.perf_counter())

        processes = [fork.Process(target=half, args=(first,)) for first in range(2)]
        for process in processes:
            process.start()
        begin.wait()
        start = time.perf_counter()
        took = max(ends.get() for _ in processes) - start
        for process in processes:
            process.join()
        return took

    def with_workers(self, number: int) -> None:
        """Sample on worker threads; milliseconds per batch."""
        loader = NodeFlowLoader(self.sampler, self.seeds, BATCH_SIZE, num_workers=number)
        start = time.perf_counter()
        for _ in loader:
            pass
        self.per_batch[number].append(1e3 * (time.perf_counter() - start) / len(loader))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scales", type=int, nargs="+", default=[16, 18, 20, 22])
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--plot", type=Path, help="where to write a picture")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = {
        scale: Case(ensure(options.data, scale, options.edge_factor)) for scale in options.scales
    }
    for number in range(options.rounds + 1):
        for case in cases.values():
            case.alone(number)
            case.read()
            case.with_workers(1)
            case.with_workers(2)
    for case in cases.values():
        for times in (case.per_edge, case.per_read, case.gains, *case.per_batch.values()):
            del times[0]  # compilation and caches
    print(f"{options.rounds} rounds in turn of {BATCHES} batches, medians; {os.cpu_count()} cores")
    print("| scale | nodes | edges | ns per sampled edge | min to max | bare reads, ns | ms per "
          "batch, 1 worker | 2 workers | ratio | two processes |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for scale, case in cases.items():
        one, two = (statistics.median(case.per_batch[n]) for n in (1, 2))
        apart = statistics.median(case.gains)
        print(
            f"| {scale} | {case.graph.num_nodes:,} | {case.graph.num_edges:,} | "
            f"{statistics.median(case.per_edge):.1f} | {min(case.per_edge):.1f} to "
            f"{max(case.per_edge):.1f} | {statistics.median(case.per_read):.1f} | {one:.2f} | "
            f"{two:.2f} | {one / two:.2f} | {apart:.2f} |"
        )
    first = options.scales[0]
    last = options.scales[-1]
    sampling, reads = (
        statistics.median(of(cases[last])) / statistics.median(of(cases[first]))
        for of in (attrgetter("per_edge"), attrgetter("per_read"))
    )
    print(
        f"\ntime per edge at scale {last} over that at scale {first}: {sampling:.2f}, of bare "
        f"reads {reads:.2f}"
    )
    if options.plot:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        plot(cases, options.plot)


def plot(cases: dict[int, Case], file: Path) -> None:
    """Draw time per edge over the size of the graph."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    sizes = [case.graph.num_edges for case in cases.values()]
    middle = [statistics.median(case.per_edge) for case in cases.values()]
    spread = np.abs(
        np.array([[min(c.per_edge), max(c.per_edge)] for c in cases.values()]).T - middle
    )
    axes.errorbar(sizes, middle, spread, marker="o", capsize=3)
    for scale, size, value in zip(cases, sizes, middle, strict=True):
        axes.annotate(
            f"scale {scale}", (size, value), textcoords="offset points", xytext=(6, -12), fontsize=8
        )
    axes.set(
        xscale="log",
        xlabel="edges of the graph",
        ylabel="ns per sampled edge, one thread",
        ylim=(0, None),
    )
    axes.set_xlim(sizes[0] / 2, sizes[-1] * 4)  # room for the words beside the last one
    axes.set_title("Neighbour sampling, 1,024 seeds, fanouts 15, 10, 5 from the seeds", fontsize=10)
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
