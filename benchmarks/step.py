"""Time a whole training step of nodeflow and its peers, in turn, with width, batch and depth
varied; table and picture.

python benchmarks/step.py --threads 2 --graphbolt PYTHON --pyg PYTHON [--rounds 3] [--plot FILE.png]

The step is that of ``compare.py``: sampling, features, forward, backward, Adam step of a
GraphSAGE-mean model on the RMAT graph. Beside it stands the floor of nodeflow's step: its dense
products, and the gather of its features, alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from dataclasses import replace
from pathlib import Path

from compare import BATCHES, HERE, Contestant, Work, Worker
from rmat import ensure

BASE = Work("step")
VARIED: dict[str, dict[object, Work]] = {
    "hidden width": {
        hidden: replace(BASE, hidden=hidden) for hidden in (16, 32, 64, 128, 256, 512)
    },
    "batch size": {size: replace(BASE, batch_size=size) for size in (128, 256, 512, 1024, 2048)},
    "depth": {
        len(fanouts): replace(BASE, fanouts_from_seeds=fanouts)
        for fanouts in [(15,), (15, 10), (15, 10, 5)]
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphbolt", metavar="PYTHON", help="interpreter with dgl 2.1")
    parser.add_argument(
        "--pyg", metavar="PYTHON", help="interpreter with torch-geometric and pyg-lib"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--rounds", type=int, default=3, help=f"rounds of {BATCHES} batches for every setting"
    )
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--varied", nargs="+", default=list(VARIED), choices=list(VARIED))
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    options = parser.parse_args()
    folder = ensure(options.data, options.scale, options.edge_factor)
    arguments = [str(folder), str(options.threads)]
    workers = {"nodeflow": Worker(sys.executable, "nodeflow", arguments, options.threads)}
    workers["floor"] = Worker(sys.executable, "nodeflow", arguments, options.threads)
    for name in ("graphbolt", "pyg"):
        if getattr(options, name):
            workers[name] = Worker(getattr(options, name), name, arguments, options.threads)
    print(f"{options.threads} thread(s), RMAT scale {options.scale}, {options.rounds} rounds in "
          f"turn of {BATCHES} "
          f"batches; ms per step; {platform.machine()}, {os.cpu_count()} cores\n")  # fmt: skip
    print(
        f"| varied | | {' | '.join(workers)} |"
        + "".join(f" nodeflow / {name} |" for name in list(workers)[1:])
    )
    print("|---|---|" + "---|" * (2 * len(workers) - 1))
    done: dict[Work, dict[str, float]] = {}
    for name in options.varied:
        for value, work in VARIED[name].items():
            if work not in done:
                done[work] = measured(workers, work, options.rounds)
            times = done[work]
            ratios = [f"{times['nodeflow'] / times[other]:.2f}" for other in list(times)[1:]]
            print(
                f"| {name} | {value} | "
                + " | ".join([f"{ms:.1f}" for ms in times.values()] + ratios)
                + " |"
            )
            sys.stdout.flush()
    if options.plot:
        plot(
            {
                name: {value: done[work] for value, work in VARIED[name].items()}
                for name in options.varied
            },
            options.plot,
        )


def measured(workers: dict[str, Worker], work: Work, rounds: int) -> dict[str, float]:
    """Median time per step of every worker, in ms."""
    contestants = {
        name: Contestant(worker, replace(work, job="floor") if name == "floor" else work)
        for name, worker in workers.items()
    }
    for _ in range(rounds):
        for contestant in contestants.values():
            contestant.run()
    return {
        name: 1e3 * statistics.median(contestant.seconds)
        for name, contestant in contestants.items()
    }


def plot(found: dict[str, dict[object, dict[str, float]]], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(found), figsize=(4.2 * len(found), 3.6), squeeze=False, sharey=True
    )
    styles = {
        "nodeflow": ("C0", "o-"),
        "floor": ("0.5", ".:"),
        "graphbolt": ("C1", "s-"),
        "pyg": ("C2", "^-"),
    }
    for axis, (name, settings) in zip(axes[0], found.items(), strict=True):
        at = range(len(settings))
        for worker in next(iter(settings.values())):
            color, style = styles[worker]
            axis.plot(
                at, [times[worker] for times in settings.values()], style, color=color, label=worker
            )
        axis.set_xticks(at, [str(value) for value in settings])
        axis.set(xlabel=name, yscale="log")
        axis.grid(axis="y", alpha=0.3, which="both")
    axes[0][0].set_ylabel("ms per training step")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
