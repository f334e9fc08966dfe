"""Stored runs of ``make bench``: the tables and the figures of the documentation are made from these.

python benchmarks/stored_runs.py            # prints the table of every stored run
python benchmarks/stored_runs.py FILE ...   # of these
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results"
PEERS = {"graphbolt": "GraphBolt", "pyg": "PyTorch Geometric"}


@dataclass(frozen=True)
class Beside:
    """A peer in a row: milliseconds of a batch, and how many times as fast nodeflow is."""

    ms: float
    times: float


@dataclass(frozen=True)
class Row:
    """A line of a run: nodeflow's milliseconds of a batch, its peers', and those of its bound (0: not measured)."""

    work: str
    threads: int
    ms: float
    peers: dict[str, Beside]
    bound: float

    def cells(self, peers: Sequence[str]) -> list[str]:
        """Return the cells of the table, the peers in this order."""
        cells = [self.work, str(self.threads), f"{self.ms:.2f}"]
        for name in peers:
            beside = self.peers.get(name)
            cells += ["", ""] if beside is None else [f"{beside.ms:.1f}", f"{beside.times:.1f}"]
        bound = [f"{self.bound:.2f}", f"{self.ms / self.bound:.2f}"] if self.bound else ["", ""]
        return [*cells, *bound]


@dataclass(frozen=True)
class Run:
    """One run of ``make bench`` on one machine; ``peers`` has the version of each peer that took part."""

    date: str
    machine: str
    nodeflow: str
    torch: str
    peers: dict[str, str]
    rounds: int
    rows: tuple[Row, ...]

    def heads(self) -> list[str]:
        """Return the two lines above the rows of the table."""
        columns = ["work", "threads", "ms"]
        for name in self.peers:
            columns += [f"{PEERS[name]}, ms", "times as fast"]
        columns += ["bound, ms", "over its bound"]
        return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]

    def line(self, row: Row) -> str:
        """Return the line of a row of the table."""
        return f"| {' | '.join(row.cells(list(self.peers)))} |"

    def table(self) -> str:
        """Return the table of the run, in Markdown."""
        return "\n".join([*self.heads(), *map(self.line, self.rows)])

    def origin(self) -> str:
        """Return the line under the table: date, version, machine, peers and command."""
        peers = ", ".join(self.peers.values())
        facts = f"nodeflow {self.nodeflow}, torch {self.torch}, {self.machine}; {peers}"
        return f"*Figures of {self.date}, {facts}: `make bench`, {self.rounds} rounds.*"

    def row(self, work: str) -> Row:
        """Return the row of some work; raises KeyError where the run has none."""
        for row in self.rows:
            if row.work == work:
                return row
        raise KeyError(f"the run of {self.date} has no row {work!r}")

    def write(self, path: Path) -> None:
        """Store the run."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read_run(path: Path) -> Run:
    """Return the run that ``Run.write`` stored."""
    facts = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for row in facts.pop("rows"):
        beside = {name: Beside(**figures) for name, figures in row.pop("peers").items()}
        rows.append(Row(peers=beside, **row))
    return Run(rows=tuple(rows), **facts)


def stored_runs() -> list[Run]:
    """Return all stored runs, the latest first."""
    runs = [read_run(path) for path in FOLDER.glob("*.json")]
    return sorted(runs, key=lambda run: run.date, reverse=True)


if __name__ == "__main__":
    for run in map(read_run, map(Path, sys.argv[1:])) if len(sys.argv) > 1 else stored_runs():
        print(f"{run.table()}\n\n{run.origin()}\n")
