"""Several processes that hold one graph together on this machine: what they send, how fast they
are, what they learn.

python benchmarks/distributed.py [--data debian FOLDER ...] [--tables communication cut time accuracy check]
python benchmarks/distributed.py --check

``--data``: "debian", or folders as ``nodeflow.datasets.read_folder`` reads them; the reverse of
every edge is added, and features are multiplied by a random matrix to ``--width`` columns. The
graph is cut into a temporary folder. Processes are connected over loopback (gloo), with one thread
of torch each. The batch of a process is ``--batch-size`` over the number of processes, so that a
step has the same seeds with any number; in the table of times it is ``--batch-size``, as for a
loader.

- communication: an epoch of sampling with features, per step and process, by the method of the cut,
  the shares of the seeds, and the share of the rows that every process keeps a copy of (those of
  the largest degree).
- cut: sums over all edges (``Propagation``), by place of edges: partners, mirrors, and bytes of one
  pass.
- time: epochs of sampling alone and of training steps (GraphSAGE), in rounds in turn; medians. The
  base is one process with the whole graph that may use one core. Several processes have a core each
  where there are as many. "in exchanges" has the seconds that the slowest process spends in
  exchanges of draws and rows, also where it waits for others; with a thread that draws ahead they
  overlap with the rest. "in gradients": likewise, the means of gradients, which are taken after the
  backward pass here.
- accuracy: losses of the same training with 1, 2 and 4 processes, and the accuracy of full passes
  over the test nodes.
- check: one hash over the hashes of all batches of an epoch, shares put together.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranks import Data, Ranks

METHODS = ("metis", "random", "ranges", "hash")
TABLES = ("communication", "cut", "time", "accuracy", "check")


def show(titles: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    titles = list(titles)
    print(f"\n| {' | '.join(map(str, titles))} |\n{'|---' * len(titles)}|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


class Bench:
    """A data set, groups of processes, and the settings that all jobs share."""

    def __init__(self, options: argparse.Namespace, data: Data, groups: dict[int, Ranks]) -> None:
        self.options = options
        self.data = data
        self.groups = groups

    def common(self, size: int, **more: Any) -> dict[str, Any]:
        """The settings of a loader of one of ``size`` processes, which share the seeds of a
        step.
        """
        options = self.options
        return {
            "seeds": self.data.file("train"), "batch_size": max(options.batch_size // size, 1), "share": "even",
            "fanouts": options.fanouts, "hidden": options.hidden, "classes": self.data.classes, "steps": options.steps,
        } | more  # fmt: skip

    def communication(self) -> None:
        titles = (
            "processes", "method", "share", "hot rows", "rows fetched", "rows that "
                                                                        "travelled", "%", "KB sent",
            "messages", "exchanges", "most seeds over mean", "KB of the rank that sends most",
            "that receives most",
        )  # fmt: skip
        show(titles, self._communication())
        print(
            "\nper step and process; KB and messages are those that a process sends, draws and "
            "rows together"
        )
        print("(beside them, every exchange sends a head of 48 bytes to each other process, and "
              "empty room after a small parcel: 512 bytes, and a quarter of the largest "
              "parcel)")  # fmt: skip

    def _communication(self) -> Iterable[Iterable[object]]:
        for size, group in self.groups.items():
            if size == 1:
                continue
            for method in self.options.methods:
                for share in ("even", "owned"):
                    for hot in (0.0, self.options.hot):
                        folder = self.data.parts(size, method)
                        found = group.ask(
                            "communication",
                            **self.common(size, folder=folder, share=share, hot=hot),
                        )
                        yield size, method, share, f"{100 * hot:g} %", *self._means(found)

    def _means(self, found: list[dict[str, Any]]) -> tuple[str, ...]:
        count = len(found) * found[0]["steps"]
        total = {
            name: sum(answer[name] for answer in found) for name in found[0] if name != "seeds"
        }
        # the seeds of each process
        steps = list(zip(*(answer["seeds"] for answer in found), strict=True))
        seeds = statistics.mean(max(step) * len(step) / sum(step) for step in steps)
        return (
            f"{total['fetched'] / count:,.0f}", f"{total['travelled'] / count:,.0f}",
            f"{100 * total['travelled'] / total['fetched']:.1f}", f"{total['bytes_sent'] / count / 1e3:,.1f}",
            f"{total['messages'] / count:.1f}", f"{total['exchanges'] / count:.1f}", f"{seeds:.2f}",
            *(f"{max(answer[way] for answer in found) / found[0]['steps'] / 1e3:,.1f}"
              for way in ("bytes_sent", "bytes_received")),
        )  # fmt: skip

    def cut(self) -> None:
        size = max(self.groups)
        titles = (
            "method",
            "edges",
            "partners",
            "mirrors",
            "MB sent",
            "messages",
            "MB of the busiest process",
        )
        rows = []
        for method in self.options.methods[:2]:
            for edges in ("in", "out"):
                folder = self.data.parts(size, method, edges)
                found = self.groups[size].ask("full_pass", folder=folder, width=self.options.width)
                sent = [answer["bytes_sent"] for answer in found]
                rows.append((
                    method, edges, max(answer["partners"] for answer in found),
                    f"{sum(answer['mirrors'] for answer in found):,}", f"{sum(sent) / 1e6:.1f}",
                    sum(answer["messages"] for answer in found), f"{max(sent) / 1e6:.1f}",
                ))  # fmt: skip
        show(titles, rows)
        print(
            f"\n{size} processes, sums of rows of {self.options.width} float32, all processes "
            "together"
        )

    def time(self) -> None:
        cases = list(self._cases())
        for number in range(self.options.rounds + 1):  # the first is for caches and compilation
            for case in cases:
                case.run(number)
        bases = {
            train: max(c.rate for c in cases if c.base and c.train == train)
            for train in (False, True)
        }
        titles = (
            "processes", "graph", "drawn ahead", "sampling, seeds/s", "times one core", "in exchanges, %",
            "steps, seeds/s", "times one core", "in exchanges, %", "in gradients, %",
        )  # fmt: skip
        rows = []
        for sampling, training in zip(cases[::2], cases[1::2], strict=True):
            row = [
                sampling.options["group"],
                sampling.name,
                "yes" if sampling.options["workers"] else "no",
            ]
            for case in (sampling, training):
                row += [
                    f"{case.rate:,.0f}",
                    f"{case.rate / bases[case.train]:.2f}",
                    case.percent("exchanges"),
                ]
            rows.append([*row, training.percent("gradients")])
        show(titles, rows)
        print(f"\n{self.options.batch_size} seeds per step and process; medians of "
              f"{self.options.rounds} rounds of 20 epochs of sampling, 2 of training; times the "
              "faster of the two rows of one core")  # fmt: skip

    def _cases(self) -> Iterable[Case]:
        owned = {"share": "owned", "hot": self.options.hot}
        cores = os.cpu_count() or 1
        for size, group in self.groups.items():
            bound = {"batch_size": self.options.batch_size, "bind": 1 < size <= cores}
            graphs: list[tuple[str, str, dict[str, Any]]] = [
                ("whole in each", self.data.whole(), {})
            ]
            if size == 1:
                graphs.insert(0, ("whole, one core", self.data.whole(), {"core": 0}))
                graphs.append(("one part", self.data.parts(1, "ranges"), {}))
            else:
                graphs.append(
                    (
                        f"metis, owned, {100 * self.options.hot:g} % hot",
                        self.data.parts(size),
                        owned,
                    )
                )
                graphs.append(("random, even, none hot", self.data.parts(size, "random"), {}))
            for name, folder, more in graphs:
                for workers in (0, 1):
                    for train in (False, True):
                        options = self.common(
                            size, folder=folder, workers=workers, train=train, columns=train
                        )
                        options |= bound | more
                        yield Case(group, name, options | {"group": size})

    def accuracy(self) -> None:
        titles = (
            "processes",
            "graph",
            "largest difference of losses, first 10 steps",
            "of all steps",
            "last loss",
            "test accuracy",
        )
        rows = []
        first = None
        for size, group in self.groups.items():
            for name, folder in (
                ("whole in each", self.data.whole()),
                ("parts", self.data.parts(size)),
            ):
                share = "owned" if name == "parts" else "even"
                options = self.common(
                    size, folder=folder, share=share, epochs=self.options.epochs, steps=None
                )
                found = group.ask("training", test=self.data.file("test"), **options)[0]
                losses = found["losses"]
                first = losses if first is None else first
                apart = [abs(loss - other) for loss, other in zip(losses, first, strict=True)]
                rows.append((
                    size, name, f"{max(apart[:10]):.1e}", f"{max(apart):.1e}", f"{losses[-1]:.4f}",
                    f"{found['accuracy']:.4f}",
                ))  # fmt: skip
        show(titles, rows)
        print(
            f"\n{self.options.epochs} epochs, {len(first or [])} steps; differences from the first "
            "row"
        )

    def check(self) -> None:
        rows = []
        for size, group in self.groups.items():
            folders = {method: self.data.parts(size, method) for method in self.options.methods[:2]}
            for name, folder in ({"whole": self.data.whole()} if size == 1 else folders).items():
                for share in ("even", "owned") if size > 1 else ("even",):
                    hashes = group.ask("check", **self.common(size, folder=folder, share=share))[0][
                        "hashes"
                    ]
                    whole = hashlib.blake2b("".join(hashes).encode(), digest_size=16).hexdigest()
                    rows.append((size, name, share, len(hashes), whole))
        show(("processes", "graph", "share", "batches", "hash"), rows)
        print("\nall equal" if len({row[-1] for row in rows}) == 1 else "\nDIFFERENT")


@dataclass
class Case:
    """A way to run epochs, and its answers: a list per round, with one answer of each process."""

    group: Ranks
    name: str
    options: dict[str, Any]
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)

    def run(self, number: int) -> None:
        """Run some epochs, so many that a round takes about a second; do not count those of round
        0.
        """
        asked = {name: value for name, value in self.options.items() if name != "group"}
        epochs = 2 if self.train else 20
        found = self.group.ask(
            "timed", epochs=[epochs * number + k for k in range(epochs)], **asked
        )
        if number:
            self.rounds.append(found)

    @property
    def train(self) -> bool:
        return bool(self.options["train"])

    @property
    def base(self) -> bool:
        return "core" in self.options

    @property
    def rate(self) -> float:
        """Seeds per second of all processes together."""
        return statistics.median(
            sum(answer["seeds"] for answer in found) / max(answer["seconds"] for answer in found)
            for found in self.rounds
        )

    def percent(self, what: str) -> str:
        """Share of the time of the process that spends most in it."""
        shares = [
            max(answer[what] / answer["seconds"] for answer in found) for found in self.rounds
        ]
        return f"{100 * statistics.median(shares):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", nargs="+", default=["debian"], metavar="FOLDER", help='folders, or "debian"'
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--check", action="store_true", help="only the table of hashes")
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument(
        "--methods", nargs="+", default=METHODS, help="of the cut; cut and check take the first two"
    )
    parser.add_argument(
        "--hot", type=float, default=0.1, help="share of the rows that every process keeps"
    )
    parser.add_argument("--fanouts", nargs="+", type=int, default=[10, 10])
    parser.add_argument(
        "--batch-size", type=int, default=1024, help="seeds of a step; for times, of each process"
    )
    parser.add_argument("--width", type=int, default=128, help="columns of features")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=5, help="of the training for accuracy")
    parser.add_argument("--rounds", type=int, default=7, help="of epochs that are timed")
    parser.add_argument("--steps", type=int, help="of every other epoch, at most")
    parser.add_argument(
        "--folder", type=Path, help="where the temporary folder of the parts is made"
    )
    options = parser.parse_args()
    if "time" in options.tables and 1 not in options.processes and not options.check:
        parser.error("--tables time compares with one process: --processes must have 1")
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        groups = {size: Ranks(size, Path(place)) for size in sorted(options.processes)}
        try:
            for name in options.data:
                data = Data(name, options.width, Path(place))
                print(f"\n{data.dataset.name}: {data.graph.num_nodes:,} nodes, "
                      f"{data.graph.num_edges:,} edges, rows of {options.width} float32, fanouts "
                      f"{options.fanouts}, {options.batch_size} seeds; {platform.machine()}, "
                      f"{os.cpu_count()} cores", flush=True)  # fmt: skip
                bench = Bench(options, data, groups)
                for table in ["check"] if options.check else options.tables:
                    getattr(bench, table)()
        finally:
            for group in groups.values():
                group.close()


if __name__ == "__main__":
    main()
