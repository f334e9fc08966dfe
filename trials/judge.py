"""Judge the samplers of other libraries, and nodeflow's own beside them, with
``nodeflow.testing.check_sampler``.

python trials/judge.py --pyg PYTHON --graphbolt PYTHON

PYTHON is the interpreter of an environment that has the library (see
``benchmarks/workers/*_worker.py`` for what to install; PyTorch Geometric with pyg-lib); a library
without one is left out. Each draws in a process of its own, and ``as_sampler`` makes samplers of
its answers. Checks of what the adapter does for it are left out: structure, order, calls without
seeds or with repeated ones, threads, pickles, global state. So are filters, which the adapter has
not.

It prints a table, and every failure with three lines that show it again (after ``import judge`` in
this folder). It ends with status 1 if a sampler of nodeflow fails, or if what a library does not
promise is kept after all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from foreign import as_sampler

import nodeflow
from nodeflow import Graph, LaborSampler, NeighborSampler, Sampler, TemporalNeighborSampler
from nodeflow.testing import CheckError, Outcome, Report, check_sampler

WORKERS = Path(__file__).resolve().parent / "workers"
CHECKS = [
    "edges", "fanouts", "repeats", "isolated seeds", "future", "reproducible", "epochs", "marginals", "pairs", "hubs",
]  # fmt: skip
NAMES = {"pyg": "PyTorch Geometric", "graphbolt": "DGL GraphBolt", "nodeflow": "nodeflow"}
FANOUTS = [2, 3]  # in flow order; others count from the seeds
TWO = [2, 2]  # where probabilities are known for two draws


@dataclass
class Entry:
    """A sampler of a library: what its worker is told, what it is for ``as_sampler``, and how it is
    checked.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    check: dict[str, Any] = field(default_factory=dict)
    make: Callable[[Graph], Sampler] | None = None
    checks: list[str] = field(default_factory=lambda: CHECKS)


UNIFORM: dict[str, Any] = {"pairs": "uniform"}
ONCE = (
    "of parallel edges, which share the random number of their source, the later ones are drawn "
    "too rarely; the "
)
ONCE += "paper has neighbours, not edges"
NO_SUM = [name for name in CHECKS if name not in ("marginals", "pairs", "hubs")]


def pyg(
    name: str, *, weighted: bool = False, check: dict[str, Any] = UNIFORM, **settings: Any
) -> Entry:
    fanouts = TWO if weighted else FANOUTS
    options = {"fanouts": fanouts, "reuse": True, "replace": settings.get("replace", False)}
    options["trees"] = settings.get("disjoint", False)
    if "time_attr" in settings:
        options["time"] = settings["time_attr"]
    return Entry(name, {"num_neighbors": fanouts[::-1], **settings}, options, weighted, check)


def graphbolt(
    name: str, *, weighted: bool = False, check: dict[str, Any] = UNIFORM, **settings: Any
) -> Entry:
    fanouts = TWO if weighted else FANOUTS
    replace = settings.get("replace", False)
    settings = {"kind": "sample_neighbor", "fanouts": fanouts, "replace": replace, **settings}
    return Entry(name, settings, {"fanouts": fanouts, "replace": replace}, weighted, check)


def past(replace: bool) -> Entry:
    entry = graphbolt(f"temporal_sample_neighbors{', replace' * replace}", replace=replace)
    entry.options |= {"time": "time", "strict": True}
    return entry


LABOR = {"kind": "sample_layer_neighbor"}
SIMPLE: dict[str, Any] = {"parallel_edges": False}
SAMPLERS: dict[str, list[Entry]] = {
    "pyg": [
        pyg("NeighborLoader"),
        pyg("NeighborLoader, replace", replace=True),
        pyg("NeighborLoader, disjoint", disjoint=True),
        pyg("NeighborLoader, weight_attr", weighted=True, check={}, weight_attr="w"),
        pyg(
            "NeighborLoader, weight_attr, replace",
            weighted=True,
            check={},
            weight_attr="w",
            replace=True,
        ),
        pyg("NeighborLoader, time_attr", time_attr="time"),
        pyg(
            "NeighborLoader, time_attr, last", check={}, time_attr="time", temporal_strategy="last"
        ),
    ],
    "graphbolt": [
        graphbolt("sample_neighbor"),
        graphbolt("sample_neighbor, replace", replace=True),
        graphbolt("sample_neighbor, prob_name", weighted=True, check={}, prob_name="w"),
        graphbolt(
            "sample_neighbor, prob_name, replace",
            weighted=True,
            check={},
            prob_name="w",
            replace=True,
        ),
        graphbolt("sample_layer_neighbor", check={**UNIFORM, **SIMPLE}, **LABOR),
        graphbolt(
            "sample_layer_neighbor, parallel edges",
            check={"expect_fail": {"marginals": ONCE}},
            **LABOR,
        ),
        past(False),
        past(True),
    ],
    "nodeflow": [
        Entry("NeighborSampler", make=lambda graph: NeighborSampler(graph, FANOUTS)),
        Entry(
            "NeighborSampler, replace",
            make=lambda graph: NeighborSampler(graph, FANOUTS, replace=True),
        ),
        Entry(
            "NeighborSampler, disjoint",
            make=lambda graph: NeighborSampler(graph, FANOUTS, disjoint=True),
        ),
        Entry("NeighborSampler, prob", make=lambda graph: NeighborSampler(graph, TWO, prob="w")),
        Entry(
            "NeighborSampler, prob, replace",
            make=lambda g: NeighborSampler(g, TWO, prob="w", replace=True),
        ),
        Entry("LaborSampler", make=lambda graph: LaborSampler(graph, FANOUTS)),
        Entry(
            "LaborSampler, sequential",
            make=lambda graph: LaborSampler(graph, FANOUTS, method="sequential"),
        ),
        Entry(
            "TemporalNeighborSampler", make=lambda graph: TemporalNeighborSampler(graph, FANOUTS)
        ),
    ],
}
SAMPLERS["pyg"][-1].checks = NO_SUM
SAMPLERS["graphbolt"][5].checks = ["marginals"]


class Worker:
    """A process that draws in the environment of a library, one call at a time."""

    def __init__(self, python: str, name: str) -> None:
        command = [python, str(WORKERS / f"{name}_worker.py")]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.lock = threading.Lock()
        self.graph = None
        self.version: str = self._answer()["version"]

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(question)}\n")
        self.process.stdin.flush()
        return self._answer()

    def draw(self, graph: Graph, question: dict[str, Any]) -> Any:
        """Return the flows that the library draws."""
        with self.lock:
            if self.graph is not graph:
                src, dst = graph.edges()
                edata = {name: column.tolist() for name, column in graph.edata.items()}
                self._ask(
                    {
                        "src": src.tolist(),
                        "dst": dst.tolist(),
                        "num_nodes": graph.num_nodes,
                        "edata": edata,
                    }
                )
                self.graph = graph
            answer = self._ask(question)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["flows"]


def maker(entry: Entry, worker: Worker | None) -> Callable[[Graph], Sampler]:
    """Return the function of a graph that makes the sampler of an entry."""
    if worker is None:
        assert entry.make is not None
        return entry.make

    def make(graph: Graph) -> Sampler:
        rates = inclusion(graph, entry.options["replace"]) if entry.weighted else None

        def draw(
            seeds: torch.Tensor, seed: int, times: torch.Tensor | None = None
        ) -> list[list[Any]]:
            if not len(seeds):
                return [[[]] * 5] * len(FANOUTS)
            question = {"sampler": entry.settings, "seeds": seeds.tolist(), "seed": seed}
            flows = worker.draw(
                graph, question | {"times": None if times is None else times.tolist()}
            )
            weight = [None if rates is None else 1 / rates[eid] for _, _, eid, *_ in flows]
            return [
                [src, dst, eid, w, *tree]
                for (src, dst, eid, *tree), w in zip(flows, weight, strict=True)
            ]

        return as_sampler(draw, graph, len(FANOUTS), **entry.options)

    return make


def inclusion(graph: Graph, replace: bool) -> np.ndarray[Any, Any]:
    """The mean number of times that two draws in proportion to "w" take every edge,
    ``[num_edges]``.

    Without replacement the second draw is among those that are left (successive sampling); all are
    taken where there are at most two.
    """
    dst = graph.edges()[1].numpy()
    w = graph.edata["w"].double().numpy()
    size = graph.num_nodes
    sums = np.bincount(dst, w, graph.num_nodes)
    p = w / sums[dst]
    if replace:
        return 2 * p
    few = np.bincount(dst, minlength=size)[dst] <= 2
    odds = p / np.where(few, 1, 1 - p)
    return np.where(few, 1, p * (1 + np.bincount(dst, odds, size)[dst] - odds))


def graph() -> Graph:
    """A graph without parallel edges: 60 nodes, 400 edges, weights from 0.5 to 2, and times."""
    random = np.random.default_rng(5)
    src, dst = np.divmod(random.permutation(58 * 58)[:400], 58)
    edata = {
        "w": random.uniform(0.5, 2, 400).astype(np.float32),
        "time": random.integers(0, 20, 400),
    }
    return Graph.from_edges(src, dst, num_nodes=60, edata=edata)


def make(library: str, name: str, python: str = "") -> Callable[[Graph], Sampler]:
    """Return the function of a graph that makes a sampler of the table, as lines of a failure name
    it.
    """
    entry = next(entry for entry in SAMPLERS[library] if entry.name == name)
    return maker(entry, None if library == "nodeflow" else Worker(python, library))


def judged(entry: Entry, worker: Worker | None, checks: list[str] | None) -> Report:
    selected = [name for name in entry.checks if checks is None or name in checks]
    try:
        return check_sampler(maker(entry, worker), graph=graph(), checks=selected, **entry.check)
    except CheckError as error:
        return error.report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pyg", metavar="PYTHON", help="interpreter with torch-geometric and pyg-lib"
    )
    parser.add_argument("--graphbolt", metavar="PYTHON", help="interpreter with dgl 2.1")
    parser.add_argument(
        "--checks", nargs="+", metavar="CHECK", choices=CHECKS, help="some of the checks"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="SAMPLER", help="names of samplers, all if left out"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    left_out = [name for name in ("pyg", "graphbolt") if not getattr(options, name)]
    for name in left_out:
        print(f"{NAMES[name]} is left out: no --{name} PYTHON\n")
    print("| library | sampler | passed | failed | not promised | does not apply |")
    print("|---|---|---|---|---|---|")
    wrong = False
    failures = []
    for library, entries in SAMPLERS.items():
        if library in left_out:
            continue
        worker = None if library == "nodeflow" else Worker(getattr(options, library), library)
        version = nodeflow.__version__ if worker is None else worker.version
        for entry in (entry for entry in entries if entry.name in (options.only or [entry.name])):
            report = judged(entry, worker, options.checks)
            by = {
                status: [o for o in report.outcomes if o.status == status]
                for status in ("expected", "skipped")
            }
            cells = [
                ", ".join(o.name for o in by["expected"]),
                "; ".join(map(reason, by["skipped"])),
            ]
            print(f"| {NAMES[library]} {version} | {entry.name} | {len(report.passed)} | "
                  f"{', '.join(report.failed)} | {' | '.join(cells)} |", flush=True)  # fmt: skip
            failed = [outcome for outcome in report.outcomes if outcome.status == "failed"]
            wrong |= any(worker is None or "expected to fail" in outcome.note for outcome in failed)
            made = f"judge.make({library!r}, {entry.name!r}, {getattr(options, library, '')!r})"
            failures += [
                (library, entry, outcome.name, again(outcome.note, made)) for outcome in failed
            ]
            failures += [
                (library, entry, f"{o.name} (not promised)", o.note) for o in by["expected"]
            ]
    for library, entry, name, text in failures:
        print(f"\n{NAMES[library]}, {entry.name}: {name}: {text}")
    sys.exit(int(wrong))


def reason(outcome: Outcome) -> str:
    """The name of a check that was skipped, and why."""
    return f"{outcome.name}: {outcome.note.partition(';')[0]}"


def again(note: str, made: str) -> str:
    """The message of a failure, with lines that name the sampler as this script makes it."""
    lines = [
        line.split("  # ")[0].replace("graph = ...", "graph = judge.graph()")
        for line in note.splitlines()
    ]
    return "\n".join(lines).replace("sampler = make", f"sampler = {made}")


if __name__ == "__main__":
    main()
