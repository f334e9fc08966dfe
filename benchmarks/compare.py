"""Time nodeflow and its peers on the same work, in turn, in one run; print a table with ratios of
medians.

python benchmarks/compare.py sample --graphbolt PYTHON --pyg PYTHON
python benchmarks/compare.py labor --graphbolt PYTHON
python benchmarks/compare.py step --threads 2 --graphbolt PYTHON --pyg PYTHON
python benchmarks/compare.py sample --device cuda --graphbolt PYTHON

PYTHON is the interpreter of an environment that has the peer (see workers/*_worker.py for what to
install); a peer without one is left out. "sample" draws 3-hop neighbourhoods (fanouts 15, 10, 5
from the seeds, 1,024 seeds, without replacement) on an RMAT graph; "labor" likewise with
layer-neighbour sampling; "step" is a whole training step of a 3-layer GraphSAGE on them: sampling,
features (100 wide), forward, backward, optimiser; in float32, under autocast to bfloat16, and with
features kept in bfloat16 too. With --device nodeflow and GraphBolt draw on that device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rmat import ensure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "workers"))

from work import BATCHES, Work  # noqa: E402

VARIANTS = {
    "sample": ["uniform", "reuse", "replace", "weighted", "weighted, replace", "Bernoulli"],
    "labor": ["LABOR-0", "LABOR-0, sequential", "LABOR-1"],
    "step": ["uniform", "bf16", "bf16, also features"],
}
"""Samplers of nodeflow, or types of a step, that take part in a job; ratios refer to the first."""
ON_DEVICE = {
    "sample": ["uniform", "reuse", "replace", "weighted, replace"],
    "labor": ["LABOR-0", "LABOR-0, sequential"],
}
"""The same where batches are drawn on a device."""


class Worker:
    """A process that runs one round of the work whenever it is asked to."""

    def __init__(
        self, python: str, name: str, arguments: list[str], threads: int, root: Path = HERE.parent
    ) -> None:
        command = [python, str(root / "benchmarks" / "workers" / f"{name}_worker.py"), *arguments]
        path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=environment
        )
        self.ready = self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()


@dataclass
class Contestant:
    """A worker, what it is asked to do, and its answers, one per round."""

    worker: Worker
    work: Work
    rounds: list[dict[str, Any]] = field(default_factory=list)
    batches: int = BATCHES

    def question(self) -> dict[str, Any]:
        usual = asdict(Work())  # the worker of another version need not know what is as always
        asked = {name: value for name, value in asdict(self.work).items() if value != usual[name]}
        return {**asked, "fanouts_from_seeds": self.work.fanouts_from_seeds}

    def run(self) -> None:
        self.rounds.append(self.worker.ask(json.dumps(self.question())))

    @property
    def seconds(self) -> list[float]:
        return [answer["seconds"] / self.batches for answer in self.rounds]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=list(VARIANTS))
    parser.add_argument(
        "--before", type=Path, metavar="FOLDER", help="a checkout of another version, measured too"
    )
    parser.add_argument("--graphbolt", metavar="PYTHON", help="interpreter with dgl 2.1")
    parser.add_argument(
        "--pyg", metavar="PYTHON", help="interpreter with torch-geometric and pyg-lib"
    )
    parser.add_argument(
        "--device", default=Work.device, help="where to draw (sample, labor); devices.py has steps"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=Work.hidden, help="of the model of a step")
    parser.add_argument("--dropout", type=float, default=Work.dropout, help="likewise")
    parser.add_argument(
        "--fanouts", type=int, nargs="+", default=Work.fanouts_from_seeds, help="from the seeds"
    )
    parser.add_argument("--rounds", type=int, default=9, help=f"rounds of {BATCHES} batches")
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    options = parser.parse_args()
    variants = (ON_DEVICE if options.device else VARIANTS).get(options.job)
    if variants is None:
        parser.error("--device goes with sample and labor")
    folder = ensure(options.data, options.scale, options.edge_factor)
    arguments = [str(folder), str(options.threads)]
    contestants = {}
    base = Work(
        options.job,
        hidden=options.hidden,
        dropout=options.dropout,
        fanouts_from_seeds=tuple(options.fanouts),
    )
    base = replace(base, device=options.device)
    for variant in variants:
        name = f"nodeflow, {variant}" if contestants else "nodeflow"
        worker = Worker(sys.executable, "nodeflow", arguments, options.threads)
        contestants[name] = Contestant(worker, replace(base, variant=variant))
        if options.before:
            worker = Worker(
                sys.executable, "nodeflow", arguments, options.threads, options.before.resolve()
            )
            contestants[f"before: {variant}"] = Contestant(worker, replace(base, variant=variant))
    for name in ("graphbolt", "pyg"):
        # PyTorch Geometric has no LABOR, and draws on the processor
        if getattr(options, name) and (
            name != "pyg" or (options.job != "labor" and not options.device)
        ):
            worker = Worker(getattr(options, name), name, arguments, options.threads)
            contestants[name] = Contestant(worker, base)
    for _ in range(options.rounds):
        for contestant in contestants.values():
            contestant.run()
    report(contestants, options)


def report(contestants: dict[str, Contestant], options: argparse.Namespace) -> None:
    where = f" on {options.device}" if options.device else ""
    print(f"{options.job}{where}, {options.threads} thread(s), RMAT scale {options.scale}, "
          f"{options.rounds} rounds in turn of {BATCHES} batches; {platform.machine()}, "
          f"{os.cpu_count()} cores")  # fmt: skip
    if options.job == "step":
        print(
            f"hidden width {options.hidden}, dropout {options.dropout:g}, fanouts "
            f"{list(options.fanouts)}\n"
        )
    print(
        "| | ms per batch (median) | min to max | edges per batch | M edges/s | time ratio | edge "
        "rate ratio |"
    )
    print("|---|---|---|---|---|---|---|")
    ours = statistics.median(contestants["nodeflow"].seconds)
    our_rate = contestants["nodeflow"].rounds[0]["edges"] / BATCHES / ours
    for name, contestant in contestants.items():
        median = statistics.median(contestant.seconds)
        edges = contestant.rounds[0]["edges"] / BATCHES
        note = contestant.rounds[0].get("note")
        low = 1e3 * min(contestant.seconds)
        high = 1e3 * max(contestant.seconds)
        ratios = (
            "| | |"
            if name == "nodeflow"
            else f"| {median / ours:.2f} | {our_rate / (edges / median):.2f} |"
        )
        print(f"| {name}{f' ({note})' if note else ''} | {1e3 * median:.2f} | {low:.2f} to "
              f"{high:.2f} | {edges:,.0f} | {edges / median / 1e6:.1f} {ratios}")  # fmt: skip
    print(
        "\ntime ratio: the row's median over nodeflow's; edge rate ratio: nodeflow's edges per "
        "second over the row's."
    )


if __name__ == "__main__":
    main()
