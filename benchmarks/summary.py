"""One table of this machine: nodeflow's speed, beside peers where they are installed, and how near
it is to its bounds.

make bench [GRAPHBOLT=PYTHON] [PYG=PYTHON] [STORE=results]
python benchmarks/summary.py [--graphbolt PYTHON] [--pyg PYTHON] [--rounds 5] [--largest 22] [--store FOLDER]

PYTHON is the interpreter of an environment with the peer (see workers/*_worker.py); without one its
cells are empty. The work is that of ``compare.py``: 1,024 seeds, fanouts 15, 10, 5, on an RMAT
graph; a step trains a GraphSAGE-mean with features 100 wide. The typed rows are those of
``typed.py``. All rows of a block take turns in one run; times are medians. "times as fast" compares
edges per second where batches are drawn, else time. A bound is what no implementation can leave
out: for neighbours, reading those that are drawn, into memory that is there; for LABOR, reading all
neighbours of a layer's nodes, in the order of memory; for a step, its dense products in float32 and
the gather of its features. Below the table stands what an edge costs in a graph of 65,536 nodes and
in one of 2**LARGEST. It takes about half an hour, beside the making of the graphs, which are kept.
With --store the run is written into FOLDER too, as the documentation has its figures
(``stored_runs.py``).
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from compare import HERE, Contestant, Work, Worker
from llvmlite.binding import get_host_cpu_name
from rmat import ensure
from scaling import Case
from stored_runs import Beside, Row, Run
from typed import JOBS as TYPED_WORK_OF_PYG
from typed_work import BATCHES as TYPED_BATCHES

from nodeflow import __version__

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
TYPED = {
    "typed batch": "static, reuse",
    "typed batch, read by type": "static, reuse + views",
    "temporal typed batch": "temporal",
    "typed step": "step",
}
"""Rows on the graph of several node types, one thread, beside PyTorch Geometric: jobs of
``typed.py``.
"""
BY_RATE = (
    "neighbours",
    "LABOR-0",
    "typed batch",
    "typed batch, read by type",
    "temporal typed batch",
)
"""Rows that draw batches, of which libraries draw different numbers of edges."""


@dataclass
class TypedContestant(Contestant):
    """A worker of ``typed.py``, which is asked for a job and the number of a round."""

    job: str = ""
    batches: int = TYPED_BATCHES

    def question(self) -> dict[str, Any]:
        return {"job": self.job, "round": len(self.rounds)}


@dataclass
class Race:
    """A row of the table while it runs: nodeflow, its peers and its bound on the same work."""

    title: str
    threads: int
    ours: Contestant
    peers: dict[str, Contestant]
    bound: Contestant | None

    def contestants(self) -> list[Contestant]:
        bound = [] if self.bound is None else [self.bound]
        return [self.ours, *self.peers.values(), *bound]

    def result(self) -> Row:
        """Return the row; "times as fast" is a ratio of edges per second where batches are
        drawn.
        """
        ours = milliseconds(self.ours)
        beside = {}
        for name, peer in self.peers.items():
            times = milliseconds(peer) / ours
            if self.title in BY_RATE:
                times *= edges(self.ours) / edges(peer)
            beside[name] = Beside(round(milliseconds(peer), 2), round(times, 3))
        bound = 0.0 if self.bound is None else milliseconds(self.bound)
        return Row(self.title, self.threads, round(ours, 3), beside, round(bound, 3))


def milliseconds(contestant: Contestant) -> float:
    return 1e3 * statistics.median(contestant.seconds)


def edges(contestant: Contestant) -> float:
    return statistics.median(answer["edges"] for answer in contestant.rounds) / contestant.batches


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphbolt", metavar="PYTHON", help="interpreter with dgl 2.1")
    parser.add_argument(
        "--pyg", metavar="PYTHON", help="interpreter with torch-geometric and pyg-lib"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds of every row")
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--typed-scale",
        type=float,
        default=1.0,
        help="of the graph of several types; 0: leave it out",
    )
    parser.add_argument(
        "--largest",
        type=int,
        default=22,
        help="2**LARGEST nodes of the largest graph; 0: leave it out",
    )
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="write the run into this folder too"
    )
    parser.add_argument("--machine", default=this_machine(), help="its name in the documentation")
    options = parser.parse_args()
    pythons = {
        name: getattr(options, name) for name in ("graphbolt", "pyg") if getattr(options, name)
    }
    folder = ensure(options.data, options.scale, options.edge_factor)
    edge_ns = growth(options) if options.largest else {}
    blocks: list[Callable[[], list[Race]]] = [
        lambda threads=threads: races(threads, pythons, folder) for threads in BLOCKS
    ]
    if options.typed_scale:
        blocks.append(lambda: typed_races(pythons, options.typed_scale))
    rows = []
    versions = {}
    for make in blocks:
        block = make()
        for race in block:
            versions |= {name: peer.worker.ready["version"] for name, peer in race.peers.items()}
        rows += run(block, options.rounds)
        for row in rows[-len(block) :]:
            print(f"{row.work}: {row.ms:.2f} ms", file=sys.stderr, flush=True)
    today = datetime.date.today().isoformat()
    done = Run(
        today,
        options.machine,
        __version__,
        torch.__version__,
        versions,
        options.rounds,
        tuple(rows),
        edge_ns=edge_ns,
    )
    print(f"{done.table()}\n\n{done.origin()}")
    if edge_ns:
        print(f"\nan edge costs {done.growth()}")
    if options.store:
        name = re.sub(r"[^a-z0-9]+", "-", options.machine.lower()).strip("-")
        done.write(options.store / f"{today}-{name}.json")


def this_machine() -> str:
    return (
        f"{os.cpu_count()} cores, {get_host_cpu_name()}, {torch.backends.cpu.get_cpu_capability()}"
    )


def races(threads: int, pythons: Mapping[str, str], folder: Path) -> list[Race]:
    """Return the rows of a number of threads, with a worker for each contestant."""
    arguments = [str(folder), str(threads)]

    def contestant(python: str, name: str, work: Work) -> Contestant:
        return Contestant(Worker(python, name, arguments, threads), work)

    rows = []
    for title, (work, peers, bound) in BLOCKS[threads].items():
        plain = replace(work, variant="uniform")
        drawn = work if title in BY_RATE else plain  # the products of a bound have float32
        others = {
            name: contestant(python, name, plain)
            for name, python in pythons.items()
            if name in peers
        }
        ours = contestant(sys.executable, "nodeflow", work)
        bare = contestant(sys.executable, "nodeflow", replace(drawn, job=bound))
        rows.append(Race(title, threads, ours, others, bare))
    return rows


def typed_races(pythons: Mapping[str, str], scale: float) -> list[Race]:
    """Return the rows on the graph of several types; a library has one worker, since the graph is
    large.
    """
    workers = {"nodeflow": Worker(sys.executable, "typed_nodeflow", [str(scale)], 1)}
    if "pyg" in pythons:
        workers["pyg"] = Worker(pythons["pyg"], "typed_pyg", [str(scale)], 1)
    rows = []
    for title, job in TYPED.items():
        jobs = {"nodeflow": job, "pyg": TYPED_WORK_OF_PYG[job]}
        each = {
            name: TypedContestant(worker, STEP, job=jobs[name]) for name, worker in workers.items()
        }
        rows.append(Race(title, 1, each.pop("nodeflow"), dict(each), None))
    return rows


def run(block: list[Race], rounds: int) -> list[Row]:
    """Run rows in turn and return them after ending their workers."""
    for _ in range(rounds):
        for race in block:
            for contestant in race.contestants():
                contestant.run()
    for race in block:
        for contestant in race.contestants():
            contestant.worker.process.kill()
    return [race.result() for race in block]


def growth(options: argparse.Namespace) -> dict[str, float]:
    """Return what an edge costs in a small and in the largest graph, in ns, by the number of
    nodes.
    """
    torch.set_num_threads(1)
    smallest = min(16, options.scale)
    cases = {
        scale: Case(ensure(options.data, scale, options.edge_factor))
        for scale in (smallest, options.largest)
    }
    for number in range(options.rounds + 1):
        for case in cases.values():
            case.alone(number)
    return {
        str(2**scale): round(statistics.median(case.per_edge[1:]), 2)
        for scale, case in cases.items()
    }


if __name__ == "__main__":
    main()
