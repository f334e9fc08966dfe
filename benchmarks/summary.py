"""One table of this machine: nodeflow's speed, beside peers where they are installed, and how near it is to its bounds.

make bench [GRAPHBOLT=PYTHON] [PYG=PYTHON]
python benchmarks/summary.py [--graphbolt PYTHON] [--pyg PYTHON] [--rounds 5] [--largest 22]

PYTHON is the interpreter of an environment with the peer (see workers/*_worker.py); without one its cells are empty.
The work is that of ``compare.py``: 1,024 seeds, fanouts 15, 10, 5, on an RMAT graph; a step trains a GraphSAGE-mean
with features 100 wide. All rows of a block take turns in one run; times are medians. "times as fast" compares edges per
second where batches are drawn, else time. A bound is what no implementation can leave out: for neighbours, reading
those that are drawn, into memory that is there; for LABOR, reading all neighbours of a layer's nodes, in the order of
memory; for a step, its dense products in float32 and the gather of its features. Below the table stands what an edge
costs in a graph of 65,536 nodes and in one of 2**LARGEST. It takes under 20 minutes, beside the making of the graphs,
which are kept.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from compare import BATCHES, HERE, Contestant, Work, Worker
from llvmlite.binding import get_host_cpu_name
from rmat import ensure
from scaling import Case

STEP = Work("step")
BLOCKS = {
    1: {
        "neighbours": (Work("sample"), ("graphbolt", "pyg"), "gather"),
        "LABOR-0": (Work("labor", variant="LABOR-0"), ("graphbolt",), "stream"),
    },
    2: {
        "step, width 128": (STEP, ("graphbolt", "pyg"), "floor"),
        "step, int8 features": (replace(STEP, variant="int8"), ("graphbolt",), "floor"),
        "step, bf16": (replace(STEP, variant="bf16, also features"), ("graphbolt",), "floor"),
        "step, width 16": (replace(STEP, hidden=16), ("graphbolt",), "floor"),
    },
}
"""By number of threads: what a row does, with which peers, and the job that is its bound."""
BY_RATE = ("sample", "labor")


@dataclass
class Row:
    """A line of the table: nodeflow, its peers and its bound on the same work."""

    title: str
    ours: Contestant
    peers: dict[str, Contestant]
    bound: Contestant

    def run(self) -> None:
        for contestant in (self.ours, *self.peers.values(), self.bound):
            contestant.run()

    def cells(self, peers: Sequence[str]) -> list[str]:
        """Return the cells: milliseconds a batch, the peers' and how many times as fast, the bound and the distance."""
        ours, bound = milliseconds(self.ours), milliseconds(self.bound)
        cells = [self.title, f"{ours:.2f}"]
        for name in peers:
            if name in self.peers:
                ratio = milliseconds(self.peers[name]) / ours
                if self.ours.work.job in BY_RATE:
                    ratio *= edges(self.ours) / edges(self.peers[name])
                cells += [f"{milliseconds(self.peers[name]):.1f}", f"{ratio:.1f}"]
            else:
                cells += ["", ""]
        return [*cells, f"{bound:.2f}", f"{ours / bound:.2f}"]


def milliseconds(contestant: Contestant) -> float:
    return 1e3 * statistics.median(contestant.seconds)


def edges(contestant: Contestant) -> float:
    return float(contestant.rounds[0]["edges"]) / BATCHES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphbolt", metavar="PYTHON", help="interpreter with dgl 2.1")
    parser.add_argument("--pyg", metavar="PYTHON", help="interpreter with torch-geometric")
    parser.add_argument("--threads", type=int, nargs="+", default=list(BLOCKS), choices=list(BLOCKS))
    parser.add_argument("--rounds", type=int, default=5, help=f"rounds of {BATCHES} batches of every row")
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--largest", type=int, default=22, help="2**LARGEST nodes of the largest graph; 0: leave it out"
    )
    parser.add_argument("--edge-factor", type=int, default=16, help="about twice as many edges per node")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    options = parser.parse_args()
    peers = {name: getattr(options, name) for name in ("graphbolt", "pyg") if getattr(options, name)}
    folder = ensure(options.data, options.scale, options.edge_factor)
    machine = f"{get_host_cpu_name()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}"
    print(f"{machine}, torch {torch.__version__}; RMAT scale {options.scale}, {options.rounds} rounds in turn of "
          f"{BATCHES} batches\n")  # fmt: skip
    names = {"graphbolt": "GraphBolt", "pyg": "PyTorch Geometric"}
    heads = [f"{names[name]}, ms | times as fast" for name in peers]
    print(f"| work | threads | ms | {' | '.join([*heads, 'bound, ms | over its bound'])} |")
    print("|---" * (5 + 2 * len(peers)) + "|")
    for threads in options.threads:
        for cells in block(threads, peers, folder, options.rounds):
            print(f"| {' | '.join([cells[0], str(threads), *cells[1:]])} |", flush=True)
    if options.largest:
        growth(options)


def block(threads: int, peers: dict[str, str], folder: Path, rounds: int) -> list[list[str]]:
    """Run the rows of a number of threads in turn, and return their cells."""
    arguments = [str(folder), str(threads)]

    def contestant(python: str, name: str, work: Work) -> Contestant:
        return Contestant(Worker(python, name, arguments, threads), work)

    rows = []
    for title, (work, several, bound) in BLOCKS[threads].items():
        plain = replace(work, variant="uniform")
        others = {name: contestant(python, name, plain) for name, python in peers.items() if name in several}
        drawn = work if work.job in BY_RATE else plain  # the products of a bound have float32
        own = [contestant(sys.executable, "nodeflow", one) for one in (work, replace(drawn, job=bound))]
        rows.append(Row(title, own[0], others, own[1]))
    for _ in range(rounds):
        for row in rows:
            row.run()
    for row in rows:
        for one in (row.ours, *row.peers.values(), row.bound):
            one.worker.process.kill()
    return [row.cells(list(peers)) for row in rows]


def growth(options: argparse.Namespace) -> None:
    """Print what an edge costs in a small and in the largest graph."""
    torch.set_num_threads(1)
    smallest = min(16, options.scale)
    cases = {scale: Case(ensure(options.data, scale, options.edge_factor)) for scale in (smallest, options.largest)}
    for number in range(options.rounds + 1):
        for case in cases.values():
            case.alone(number)
    costs = {scale: statistics.median(case.per_edge[1:]) for scale, case in cases.items()}
    small, large = costs.values()
    print(f"\nan edge costs {small:.1f} ns with 2**{smallest} nodes, {large:.1f} ns with 2**{options.largest} "
          f"({large / small:.2f} times)")  # fmt: skip


if __name__ == "__main__":
    main()
