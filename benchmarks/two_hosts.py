"""The same training on one host and on two, joined by links of stated rates: losses, times and
bytes of a step.

python benchmarks/two_hosts.py [--data debian] [--gbits 10 1] [--rounds 3] [--epochs 5] [--width
128]

The hosts are network namespaces of this machine (``namespaces.py``; Linux, as root), so their
processes share its cores: process k is bound to core k in every row. "one host" has both processes
in one namespace, connected over loopback. Each is started by torchrun, GraphSAGE trains with
``DistributedDataParallel``, and the first epoch is not timed. "whole": each process has the whole
graph; "parts": a part, cut by METIS, and the seeds that it owns.

Seconds are medians over epochs and rounds; the rows of a round run in turn. On a busy machine the
fastest epoch says more. Bytes are those that the link carries in both directions, by the counters
of the device, with all headers; "draws and rows" are those that ``peers.counters`` counts,
gradients are most of the rest. Losses are those of whole steps.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributed import show
from namespaces import DEVICE, Hosts
from ranks import HERE, Data

WORKER = str(HERE / "workers" / "host_worker.py")
Answers = dict[tuple[str, str], list[dict[str, Any]]]


def trained(gbits: float | None, options: dict[str, Any], place: Path) -> dict[str, Any]:
    """Train on two hosts joined by a link, or with None on one; return what ``host_worker.py``
    wrote.
    """
    device = "lo" if gbits is None else DEVICE
    output = place / "answer.json"
    words = WORKER, json.dumps({**options, "device": device, "output": str(output)})
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    more = {"env": {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}, **streams}
    with Hosts(gbits) as hosts:
        if gbits is None:
            running = [hosts.alone(*words, **more)]
        else:
            running = [hosts.torchrun(host, *words, **more) for host in range(2)]
        for process in running:
            _, errors = process.communicate(timeout=600)
            if process.returncode:
                raise SystemExit(errors)
    answer: dict[str, Any] = json.loads(output.read_text())
    if gbits is None:  # loopback counts a byte where it leaves and where it arrives
        answer["bytes"] = [count // 2 for count in answer["bytes"]]
    return answer


def rows(answers: Answers) -> Iterator[tuple[str, ...]]:
    for (graph, link), found in answers.items():
        base = answers[graph, "one host"]
        seconds, of_base = (
            statistics.median(s for one in of for s in one["seconds"][1:]) for of in (found, base)
        )
        fastest = min(s for one in found for s in one["seconds"][1:])
        moved, told = (
            statistics.median(b for one in found for b in one[name][1:])
            for name in ("bytes", "told")
        )
        apart = max(abs(a - b) for a, b in zip(found[0]["losses"], base[0]["losses"], strict=True))
        yield (
            graph, link, f"{seconds * 1e3:.1f}", f"{seconds / of_base:.2f}", f"{fastest * 1e3:.1f}",
            f"{moved / 1e6:.2f}", f"{told / 1e6:.2f}",
            f"{found[0]['losses'][-1]:.4f}", f"{apart:.1e}",
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="debian", metavar="FOLDER", help='a folder, or "debian"')
    parser.add_argument(
        "--graphs", nargs="+", choices=["whole", "parts"], default=["whole", "parts"]
    )
    parser.add_argument(
        "--gbits", nargs="+", type=float, default=[10.0, 1.0], help="rates of the link"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--fanouts", nargs="+", type=int, default=[10, 10])
    parser.add_argument("--batch-size", type=int, default=1024, help="seeds of a process")
    parser.add_argument("--width", type=int, default=128, help="columns of features")
    parser.add_argument("--hidden", type=int, default=128)
    options = parser.parse_args()
    # the end of a block removes its hosts
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    answers: Answers = {}
    with tempfile.TemporaryDirectory() as place:
        data = Data(options.data, options.width, Path(place))
        print(f"{data.dataset.name}: {data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} "
              f"edges, rows of {options.width} float32, fanouts {options.fanouts}, "
              f"{options.batch_size} seeds per process; {platform.machine()}, {os.cpu_count()} "
              "cores", flush=True)  # fmt: skip
        every = {"whole": (data.whole(), "even"), "parts": (data.parts(2), "owned")}
        graphs = {name: every[name] for name in options.graphs}
        links = {"one host": None, **{f"{gbits:g} Gbit/s": gbits for gbits in options.gbits}}
        for _ in range(options.rounds):
            for graph, (folder, share) in graphs.items():
                common = {
                    "folder": folder, "share": share, "seeds": data.file("train"), "batch_size": options.batch_size,
                    "fanouts": options.fanouts, "hidden": options.hidden, "classes": data.classes,
                    "epochs": options.epochs,
                }  # fmt: skip
                for link, gbits in links.items():
                    answers.setdefault((graph, link), []).append(
                        trained(gbits, common, Path(place))
                    )
    titles = (
        "graph", "link", "step, ms", "times one host", "in the fastest epoch, ms", "MB per step",
        "of them draws and rows", "last loss",
        "largest difference of losses",
    )  # fmt: skip
    show(titles, rows(answers))
    print(
        f"\nmedians of {options.rounds} rounds of {options.epochs - 1} epochs; both processes on "
        "this machine"
    )


if __name__ == "__main__":
    main()
