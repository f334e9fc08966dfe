"""Time message passing on one flow, forward and backward, in nodeflow and its peers, in turn, in
one run.

python benchmarks/aggregate.py --dgl PYTHON --pyg PYTHON [--threads 1] [--ops sum max] [--widths 64]
    [--dtype float16] [--before FOLDER] [--plot FILE]

PYTHON is the interpreter of an environment that has the peer (see workers/aggregate_*_worker.py for
what to install); a peer without one is left out. The flow is the first one of a batch of 1,024
seeds with fanouts 15, 10, 5 from the seeds on an RMAT graph. "sum", "mean", "max": of the rows of
the sources; "weighted": the sum of rows times a weight, with gradients of both; "gat": the softmax
of scores ``[edges, 8]``, and the sum of 8 heads of rows times it (the width is that of all heads
together). Every pass gets a flow that nothing was derived from yet.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
from compare import Worker
from rmat import ensure

HERE = Path(__file__).resolve().parent
OPS = ["sum", "mean", "weighted", "max", "gat"]
WIDTHS = [16, 32, 64, 128, 256, 512]
TOLERANCES = {"float32": 1e-3, "float64": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
"""Of the sums of squares by which peers are compared, by type: some peers add narrow numbers in
their own type.
"""
Times = dict[tuple[str, int], dict[str, list[float]]]


def flow_folder(folder: Path) -> Path:
    """Return the folder that holds the flow of a graph, made on first use."""
    place = folder / "flow"
    if not (place / "num_src.npy").exists():
        from nodeflow import Graph, NeighborSampler

        graph = Graph(*(np.load(folder / f"{name}.npy") for name in ("indptr", "indices")))
        seeds = np.random.default_rng(0).permutation(graph.num_nodes)[:1024]
        flow = NeighborSampler(graph, [5, 10, 15])(seeds).flows[0]
        place.mkdir(exist_ok=True)
        for name in ("indptr", "indices", "num_src"):  # the number last: it says that all is there
            np.save(place / f"{name}.npy", np.asarray(getattr(flow, name)))
    return place


def measure(workers: dict[str, Worker], options: argparse.Namespace) -> Times:
    """Seconds of every pass; raises ValueError where a peer computes something else."""
    found: Times = {}
    for op in options.ops:
        for width in options.widths:
            times: dict[str, list[float]] = {name: [] for name in workers}
            facts: dict[str, Any] = {}
            for number in range(options.rounds + 1):
                for name, worker in workers.items():
                    answer = worker.ask(f"{op} {width} {options.times} {options.dtype}")
                    facts[name] = answer["facts"]
                    if number:  # the first is compilation, caches and memory
                        times[name] += answer["seconds"]
            for name, got in facts.items():
                if not np.allclose(got, facts["nodeflow"], rtol=TOLERANCES[options.dtype]):
                    raise ValueError(
                        f"{name} computes another {op} of width {width}: {got}, not "
                        f"{facts['nodeflow']}"
                    )
            found[op, width] = times
            print(row(op, width, times), flush=True)
    return found


def row(op: str, width: int, times: dict[str, list[float]]) -> str:
    """A row of the table: medians, least and most, and ratios of medians."""
    ours, *peers = times.values()
    cells = [
        op,
        str(width),
        f"{1e3 * statistics.median(ours):.2f}",
        f"{1e3 * min(ours):.2f} to {1e3 * max(ours):.2f}",
    ]
    cells += [f"{1e3 * statistics.median(peer):.2f}" for peer in peers]
    cells += [f"{statistics.median(peer) / statistics.median(ours):.2f}" for peer in peers]
    return f"| {' | '.join(cells)} |"


def draw(found: Times, options: argparse.Namespace) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        1, len(options.ops), figsize=(2.6 * len(options.ops), 3), layout="constrained"
    )
    for op, place in zip(options.ops, np.atleast_1d(axes), strict=True):
        for name in next(iter(found.values())):
            middle = [1e3 * statistics.median(found[op, width][name]) for width in options.widths]
            place.plot(options.widths, middle, marker="o", markersize=3, label=name)
        place.set(title=op, xscale="log", yscale="log", xlabel="width")
        place.set_xticks(options.widths, [str(width) for width in options.widths], fontsize=7)
        place.minorticks_off()
        place.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set(ylabel=f"ms, forward and backward, {options.threads} thread(s)")
    np.atleast_1d(axes)[0].legend(fontsize=8)
    figure.savefig(options.plot, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dgl", metavar="PYTHON", help="interpreter with dgl 2.1")
    parser.add_argument("--pyg", metavar="PYTHON", help="interpreter with torch-geometric")
    parser.add_argument(
        "--before",
        type=Path,
        metavar="FOLDER",
        help="another version of nodeflow, checked out there",
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ops", nargs="+", choices=OPS, default=OPS)
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS)
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds after the first, which does not count"
    )
    parser.add_argument("--times", type=int, default=3, help="passes per round")
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    parser.add_argument(
        "--dtype", choices=list(TOLERANCES), default="float32", help="type of rows and weights"
    )
    parser.add_argument("--plot", type=Path, help="picture to draw")
    options = parser.parse_args()
    folder = flow_folder(ensure(options.data, options.scale, options.edge_factor))
    arguments = [str(folder), str(options.threads)]
    workers = {"nodeflow": Worker(sys.executable, "aggregate_nodeflow", arguments, options.threads)}
    if options.before:
        root = options.before.resolve()
        workers["before"] = Worker(
            sys.executable, "aggregate_nodeflow", arguments, options.threads, root
        )
    for name in ("dgl", "pyg"):
        if getattr(options, name):
            workers[name] = Worker(
                getattr(options, name), f"aggregate_{name}", arguments, options.threads
            )
    peers = [name for name in workers if name != "nodeflow"]
    for name in peers:
        print(f"{name}: {workers[name].ready['note']}")
    indptr = np.load(folder / "indptr.npy")
    print(f"{options.dtype}, {options.threads} thread(s), flow of "
          f"{int(np.load(folder / 'num_src.npy')):,} sources, "
          f"{len(indptr) - 1:,} destinations, {indptr[-1]:,} edges; {options.rounds} rounds in "
          "turn of "
          f"{options.times} passes; {platform.machine()}, {os.cpu_count()} cores\n")  # fmt: skip
    cells = [
        "op",
        "width",
        "nodeflow ms",
        "least to most",
        *(f"{n} ms" for n in peers),
        *(f"{n} ratio" for n in peers),
    ]
    print(f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}")
    found = measure(workers, options)
    print("\nms: medians, forward and backward; ratio: the peer's median over nodeflow's.")
    if options.plot:
        draw(found, options)


if __name__ == "__main__":
    main()
