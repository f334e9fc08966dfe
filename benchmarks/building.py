"""Memory and time to build a graph folder from a list of edges, and partitions and parts from the
folder (Linux only).

python benchmarks/building.py [--scale 22] [--edge-factor 8] [--memory "100 MB" "1 GB"]

The edges of an RMAT graph are written as a ``.npy`` file, in random order. Each job runs in a
process of its own. "peak" is the most private memory that it held beyond what it held before: the
pages of mapped files are not private, the system keeps them as far as it has room. Partitions, and
parts for processes with their edges "in" and "out", have a column of 64 float32 numbers per node,
which is mapped too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from child import figures_of
from rmat import ensure

from nodeflow import Graph
from nodeflow.datasets import build_graph
from nodeflow.distributed import partition_graph, write_partitions
from nodeflow.storage import create

HERE = Path(__file__).resolve().parent
WIDTH = 64
PARTS = ("in", "out")


def write_edges(source: Path, folder: Path) -> tuple[int, int]:
    """Write the edges of an RMAT graph in random order; return the numbers of nodes and edges."""
    indptr, indices = (np.load(source / f"{name}.npy") for name in ("indptr", "indices"))
    order = np.random.default_rng(0).permutation(len(indices))
    dst = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    np.save(folder / "edges.npy", np.stack([indices[order], dst[order]], 1))
    return len(indptr) - 1, len(indices)


def private() -> int:
    """Return the bytes of private memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


def job(name: str, folder: Path, nodes: int, memory: str) -> None:
    """Do a job in this process, after a small one that loads its loops; print its figures as
    JSON.
    """
    with tempfile.TemporaryDirectory() as small:
        graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
        np.save(f"{small}/e.npy", np.zeros((3, 2), np.int64))
        build_graph(f"{small}/e.npy", f"{small}/g", progress=False)
        columns = {"x": torch.zeros(3, WIDTH)}
        write_partitions(graph, f"{small}/p", 2, columns=columns, progress=False)
        partition_graph(graph, f"{small}/q", 2, method="random", columns=columns, progress=False)
    before = private()
    peak = [0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            peak[0] = max(peak[0], private() - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    begun = time.perf_counter()
    if name == "build":
        files = folder / "edges.npy"
        build_graph(
            files, folder / "graph", num_nodes=nodes, memory=memory, overwrite=True, progress=False
        )
    else:
        graph = Graph.open(folder / "graph")
        (folder / "x.npy").unlink(missing_ok=True)
        columns = {"x": create(folder / "x.npy", (nodes, WIDTH))}
        common: dict[str, Any] = {
            "method": "random",
            "columns": columns,
            "overwrite": True,
            "progress": False,
        }
        if name == "partitions":
            write_partitions(graph, folder / "parts", 16, **common)
        else:
            partition_graph(graph, folder / "parts", 16, edges=name, **common)
    seconds = time.perf_counter() - begun
    over.set()
    watcher.join()
    print(json.dumps({"peak": peak[0], "seconds": seconds}))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        job(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=22, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=8, help="about twice as many edges per node"
    )
    parser.add_argument("--memory", nargs="+", default=["100 MB", "1 GB"], help="of building")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    options = parser.parse_args()
    source = ensure(options.data, options.scale, options.edge_factor)
    with tempfile.TemporaryDirectory(dir=options.data) as place:
        folder = Path(place)
        nodes, edges = write_edges(source, folder)
        print(f"{nodes:,} nodes, {edges:,} edges: {16 * edges / 1e6:,.0f} MB of edges, "
              f"{4 * WIDTH * nodes / 1e6:,.0f} MB of features\n")  # fmt: skip
        print("| job | memory | peak, MB | seconds |\n|---|---|---|---|")
        for memory in options.memory:
            found = figures_of(__file__, "build", folder, nodes, memory)
            print(
                f"| build_graph | {memory} | {found['peak'] / 1e6:,.0f} | {found['seconds']:.1f} |",
                flush=True,
            )
        jobs = {
            "partitions": "write_partitions",
            **{name: f"partition_graph, {name}" for name in PARTS},
        }
        for name, title in jobs.items():
            found = figures_of(__file__, name, folder, nodes, "")
            print(
                f"| {title} | | {found['peak'] / 1e6:,.0f} | {found['seconds']:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
