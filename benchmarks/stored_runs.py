"""Stored runs of ``make bench`` and of scripts like it: the documentation has its figures from
these (``figures.py``).

python benchmarks/stored_runs.py            # prints the table of every stored run
python benchmarks/stored_runs.py FILE ...   # of these
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results"
PEERS = {"graphbolt": "GraphBolt", "pyg": "PyTorch Geometric", "dgl": "DGL", "pykeen": "PyKEEN"}


def four_digits(figure: float) -> str:
    """Return a figure with four digits that count, and nothing for 0, which stands for no
    figure.
    """
    return f"{float(f'{figure:.4g}'):,g}" if figure else ""


@dataclass(frozen=True)
class Beside:
    """A peer in a row: milliseconds of a batch (0: not stored), and how many times as fast nodeflow
    is.
    """

    ms: float
    times: float


@dataclass(frozen=True)
class Row:
    """A line of a run: nodeflow's milliseconds of a batch, its peers', and those of its bound (0:
    not measured).
    """

    work: str
    threads: int
    ms: float
    peers: dict[str, Beside]
    bound: float

    def cells(self, peers: Sequence[str]) -> list[str]:
        """Return the cells of the table, the peers in this order; a cell is empty where nothing was
        measured.
        """
        cells = [self.work, str(self.threads), four_digits(self.ms)]
        for name in peers:
            beside = self.peers.get(name, Beside(0, 0))
            cells += [four_digits(beside.ms), f"{beside.times:.1f}" if beside.times else ""]
        over_its_bound = f"{self.ms / self.bound:.2f}" if self.bound else ""
        return [*cells, four_digits(self.bound), over_its_bound]


@dataclass(frozen=True)
class Run:
    """One run on one machine; ``peers`` has the version of each peer that took part.

    ``edge_ns`` has the nanoseconds of a drawn edge by the number of nodes of the graph. A
    ``remark`` is what else a reader must know, say that the figures were copied from a page.
    """

    date: str
    machine: str
    nodeflow: str
    torch: str
    peers: dict[str, str]
    rounds: int
    rows: tuple[Row, ...]
    command: str = "make bench"
    remark: str = ""
    edge_ns: dict[str, float] = field(default_factory=dict)

    def table(self) -> str:
        """Return the table of the run, in Markdown, without the columns that no row has a figure
        for.
        """
        heads = ["work", "threads", "ms"]
        for name in self.peers:
            heads += [f"{PEERS[name]}, ms", f"times as fast as {PEERS[name]}"]
        heads += ["bound, ms", "over its bound"]
        rows = [row.cells(list(self.peers)) for row in self.rows]
        columns = [column for column in zip(heads, *rows, strict=True) if any(column[1:])]
        lines = [f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True)]
        return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])

    def origin(self, machine_page: str = "#the-machine") -> str:
        """Return the line under the table: date, versions, machine, peers and command."""
        facts = [
            f"Figures of {self.date}",
            f"nodeflow {self.nodeflow}",
            f"torch {self.torch}",
            *self.peers.values(),
        ]
        command = f"`{self.command}`, {self.rounds} rounds"
        remark = f"; {self.remark}" if self.remark else ""
        return (
            f"*{', '.join(facts)}, {self.machine}, else as the [machine]({machine_page}): "
            f"{command}{remark}.*"
        )

    def growth(self) -> str:
        """Return in words what an edge costs, by the size of the graph."""
        return ", ".join(
            f"{ns:.1f} ns in a graph of {int(nodes):,} nodes" for nodes, ns in self.edge_ns.items()
        )

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
    runs = [read_run(path) for path in sorted(FOLDER.glob("*.json"))]
    return sorted(runs, key=lambda run: run.date, reverse=True)


if __name__ == "__main__":
    for run in map(read_run, map(Path, sys.argv[1:])) if len(sys.argv) > 1 else stored_runs():
        print(f"{run.table()}\n\n{run.origin()}\n")
