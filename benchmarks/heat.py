"""Count how many feature rows are found in a cache, for every way to choose the cached rows; table
and picture.

python benchmarks/heat.py [--scale 18] [--shares 5 10 20] [--plot FILE.png]

Two workloads on graphs of 2**scale nodes in 64 communities, whose degrees follow a power law:
training nodes spread evenly over all nodes, and training nodes in one community. Batches of 1,024
seeds, 10 and 10 neighbours, two epochs. No features are read: rows are counted. "afterwards" is the
best that a fixed choice of rows can be, found by counting the very epochs; "lookahead" keeps those
rows whose next use is nearest, which is the least that any rule can read.
"""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import numpy as np
import torch
from recently_used import RecentlyUsed

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow.storage import degree_heat, hottest, presample, reach_heat
from nodeflow.storage._plan import Plan

FANOUTS = [10, 10]
BATCH = 1024
EPOCHS = 2
COMMUNITIES = 64
MEASURED = (1, 2)


def graph_of(scale: int, degree: int, seed: int = 0) -> Graph:
    """Return a graph in which nine of ten edges stay within a community, drawn in proportion to
    Zipf weights.
    """
    rng = np.random.default_rng(seed)
    size = 1 << scale
    inside = size // COMMUNITIES
    odds = np.cumsum(1 / np.arange(1, inside + 1) ** 0.8)
    rank = np.searchsorted(odds / odds[-1], rng.random(size * degree))
    dst = np.repeat(np.arange(size), degree)
    home = dst // inside
    home = np.where(rng.random(len(dst)) < 0.9, home, rng.integers(0, COMMUNITIES, len(dst)))
    names = rng.permutation(inside)
    return Graph.from_edges(home * inside + names[rank], dst, num_nodes=size)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=18, help="2**scale nodes")
    parser.add_argument("--degree", type=int, default=16, help="in-edges per node")
    parser.add_argument(
        "--shares", type=int, nargs="+", default=[5, 10, 20], help="cached rows, percent of all"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    options = parser.parse_args()
    graph = graph_of(options.scale, options.degree)
    rng = np.random.default_rng(1)
    inside = graph.num_nodes // COMMUNITIES
    workloads = {
        "spread evenly": rng.permutation(graph.num_nodes)[: graph.num_nodes // 20],
        "in one community": rng.permutation(inside),
    }
    print(f"{graph}, {FANOUTS} neighbours, batches of {BATCH}, {EPOCHS} epochs; "
          f"{platform.machine()}, "
          f"{os.cpu_count()} cores\n")  # fmt: skip
    print(
        f"| training nodes | cached rows | {' | '.join(f'{share} %' for share in options.shares)} |"
    )
    print("|---|---|" + "---|" * len(options.shares))
    found = {}
    for name, train in workloads.items():
        found[name] = rates(graph, torch.from_numpy(train), options.shares)
        for kind, row in found[name].items():
            print(
                f"| {name} | {kind} | {' | '.join(f'{100 * rate:.1f}' for rate in row)} |",
                flush=True,
            )
    print(
        "\nshare of the rows of all batches that were in the cache, in percent; reads that fill it "
        "count as misses"
    )
    if options.plot:
        plot(found, options.shares, options.plot)


def rates(graph: Graph, train: torch.Tensor, shares: list[int]) -> dict[str, list[float]]:
    """Hit rates of every kind of cache, by share of the rows."""
    loader = NodeFlowLoader(
        NeighborSampler(graph, FANOUTS), train, min(BATCH, len(train) // 4), shuffle=True
    )
    batches = [
        batch.layers[0].parent_nid.numpy() for epoch in MEASURED for batch in loader.draws(epoch)
    ]
    asked = sum(map(len, batches))
    heats = {
        "random": torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(0)),
        "degree": degree_heat(graph),
        "reach (analytic)": reach_heat(graph, train, FANOUTS, loader.batch_size),
        "presample (another epoch)": presample(loader, [0]),
        "afterwards": presample(loader, MEASURED),
    }
    rooms = [graph.num_nodes * share // 100 for share in shares]
    found = {}
    for kind, heat in heats.items():
        order = hottest(heat).numpy()
        row = []
        for room in rooms:
            kept = np.zeros(graph.num_nodes, bool)
            kept[order[:room]] = True
            used = np.unique(np.concatenate(batches))
            row.append(
                (sum(int(kept[ids].sum()) for ids in batches) - int(kept[used].sum())) / asked
            )
        found[kind] = row
    found["LRU"] = [hits_of_lru(graph.num_nodes, room, batches) / asked for room in rooms]
    found["lookahead"] = [
        hits_of_lookahead(graph.num_nodes, room, batches) / asked for room in rooms
    ]
    return found


def hits_of_lookahead(num_nodes: int, room: int, batches: list[np.ndarray]) -> int:
    plan = Plan(num_nodes, room, len(batches), None)
    coming = iter(batches)
    hits = 0
    while (step := plan.advance(lambda: next(coming, None))) is not None:
        hits += int((step[1] >= 0).sum())
    return hits


def hits_of_lru(num_nodes: int, room: int, batches: list[np.ndarray]) -> int:
    rows = RecentlyUsed(torch.zeros(num_nodes, 1, dtype=torch.uint8), room)
    for ids in batches:
        rows.fetch(torch.from_numpy(ids))
    return rows.hits


def plot(found: dict[str, dict[str, list[float]]], shares: list[int], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(found), figsize=(5.2 * len(found), 3.8), squeeze=False, sharey=True
    )
    for axis, (name, kinds) in zip(axes[0], found.items(), strict=True):
        for kind, row in kinds.items():
            style = {"lookahead": "k-", "afterwards": "k--"}.get(kind, "o-")
            axis.plot(shares, [100 * rate for rate in row], style, label=kind)
        axis.set(title=f"training nodes {name}", xlabel="cached rows, % of all")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("rows found in the cache, %")
    axes[0][0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
