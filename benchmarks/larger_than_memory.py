"""Train on features in a file, read past the page cache, with each kind of cache in turn; table of
bytes and seconds.

python benchmarks/larger_than_memory.py [--scale 22] [--width 512] [--memory 10]
python benchmarks/larger_than_memory.py --pyg PYTHON --kinds lookahead --rounds 3

An RMAT graph of 2**scale nodes with ``width`` float32 features per node in a file, of which
``memory`` percent may lie in memory. An epoch goes over ``--batches`` batches of 1,024 training
nodes, with 10 and 10 neighbours and a GraphSAGE of width 128. "In all" counts all epochs and what
fills a cache before them; the other columns are medians of the epochs after the first. The first
lines say what the disk does alone.

With ``--pyg``, whole runs, from the making of a cache to the last step of all epochs, are timed in
turn with those of PyTorch Geometric, whose features are a tensor that maps the same file. PYTHON is
an interpreter that has it (see workers/mapped_pyg_worker.py). The system keeps in its page cache
what was read, which is forgotten before each of its runs. Nothing limits that cache, unless
``--pyg-cgroup`` names the folder of a memory cgroup that has a limit: then both processes run in
it. The bytes that PyTorch Geometric reads are those that the disk gave to the whole machine. The
system reads ahead around every page of a mapped file, which ``--pyg-advice random`` tells it not to
do.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import torch
from compare import Worker
from recently_used import RecentlyUsed
from rmat import ensure

from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader, storage
from nodeflow._files.disk.arrays import create_array, read_header
from nodeflow.nn import GraphSAGE

HERE = Path(__file__).resolve().parent
FANOUTS = [10, 10]
BATCH = 1024
HIDDEN = 128
CLASSES = 47


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=22, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=8, help="about twice as many edges per node"
    )
    parser.add_argument("--width", type=int, default=512, help="float32 features per node")
    parser.add_argument(
        "--memory", type=float, default=10, help="percent of the features that may lie in memory"
    )
    parser.add_argument("--batches", type=int, default=40, help="per epoch")
    parser.add_argument("--epochs", type=int, default=2, help="timed ones, after the first one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument(
        "--pyg",
        metavar="PYTHON",
        help="interpreter with torch-geometric; times whole runs beside it",
    )
    parser.add_argument(
        "--pyg-cgroup", type=Path, metavar="FOLDER", help="cgroup of both processes, with --pyg"
    )
    parser.add_argument(
        "--pyg-advice",
        choices=("normal", "random"),
        default="normal",
        help="how its file is mapped",
    )
    parser.add_argument("--rounds", type=int, default=3, help="whole runs of each, with --pyg")
    parser.add_argument(
        "--data", type=Path, default=HERE / "data", help="where graph and features are kept"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    place = ensure(options.data, options.scale, options.edge_factor)
    features = place / f"features-{options.width}.npy"
    parts = (np.load(place / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices"))
    graph = Graph(*parts, copy=True)
    if not features.exists():
        write_features(features, graph.num_nodes, options.width)
    graph.ndata["y"] = torch.randint(
        0, CLASSES, (graph.num_nodes,), generator=torch.Generator().manual_seed(0)
    )
    row = 4 * options.width
    print(f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, "
          f"{graph.num_nodes * row / 1e9:.1f} GB of features, "
          f"{options.memory:g} % of them in memory, {options.threads} thread(s); "
          f"{platform.machine()}, "
          f"{os.cpu_count()} cores\n")  # fmt: skip
    disk_alone(features, graph.num_nodes, row)
    (beside_pyg if options.pyg else by_kind)(graph, place, features, options)


def by_kind(graph: Graph, place: Path, features: Path, options: argparse.Namespace) -> None:
    """Print a row of bytes and seconds per kind of cache."""
    print(
        "| | GB read in all | of nothing | GB in an epoch | s in an epoch | of nothing | s waiting "
        "for batches |"
    )
    print("|---|---|---|---|---|---|---|")
    first = None
    for kind in options.kinds:
        found = epochs_of(kind, graph, features, options)
        whole = sum(epoch.read for epoch in found)
        seconds, read, waited = (
            statistics.median(column) for column in zip(*found[1:], strict=True)
        )
        first = first or (whole, seconds)
        cells = (
            f"{whole / 1e9:.2f} | {whole / first[0]:.2f} | {read / 1e9:.2f} | {seconds:.1f} | "
            f"{seconds / first[1]:.2f}"
        )
        print(f"| {kind} | {cells} | {waited:.1f} |", flush=True)


class Epoch(NamedTuple):
    """What an epoch took; the first one has the making of the cache too."""

    seconds: float
    read: int
    waited: float


def epochs_of(kind: str, graph: Graph, features: Path, options: argparse.Namespace) -> list[Epoch]:
    """Train with a kind of cache that is empty at first."""
    count = options.epochs + 1
    train = step_of(options.width)
    begun = time.perf_counter()
    before = 0
    graph.ndata["x"] = rows = storage.open(features, direct=True)  # type: ignore[assignment]
    room = rows.shape[1] * rows.dtype.itemsize * int(graph.num_nodes * options.memory / 100)
    loader = loader_of(graph, options.batches)
    batches = KINDS[kind](graph, loader, room, count)
    found = []
    for _ in range(count):
        for batch in batches:
            train(batch)
        now, read = time.perf_counter(), rows.bytes_read  # type: ignore[attr-defined]
        found.append(Epoch(now - begun, read - before, sum(loader.timings.waiting)))
        begun = now
        before = read
    del graph.ndata["x"]
    return found


def beside_pyg(graph: Graph, place: Path, features: Path, options: argparse.Namespace) -> None:
    """Print the seconds of whole runs, ours and those of PyTorch Geometric with and without worker
    processes.
    """
    arguments = [str(place), str(features), str(options.threads), str(options.batches)]
    worker = Worker(options.pyg, "mapped_pyg", arguments, options.threads)
    if options.pyg_cgroup is not None:  # what is allocated and cached from now on counts
        for process in (os.getpid(), worker.process.pid):
            (options.pyg_cgroup / "cgroup.procs").write_text(str(process))
    few = argparse.Namespace(**{**vars(options), "batches": 2, "epochs": 0})
    for kind in options.kinds:  # compiled loops and libraries are loaded before anything is timed
        epochs_of(kind, graph, features, few)
    worker.ask(
        json.dumps(
            {"epochs": 1, "workers": 0, "batches": few.batches, "advice": options.pyg_advice}
        )
    )
    runs: dict[str, list[tuple[list[float], int]]] = {}

    def note(name: str, run: tuple[list[float], int]) -> None:
        runs.setdefault(name, []).append(run)  # a run may take minutes: each is told when it ends
        print(f"{name}: {sum(run[0]):.1f} s, {run[1] / 1e9:.2f} GB", file=sys.stderr, flush=True)

    for _ in range(options.rounds):
        for kind in options.kinds:
            found = epochs_of(kind, graph, features, options)
            note(kind, ([epoch.seconds for epoch in found], sum(epoch.read for epoch in found)))
        for workers in (0, 2):
            before = disk_reads(features)
            asked = {"epochs": options.epochs + 1, "workers": workers, "advice": options.pyg_advice}
            answer = worker.ask(json.dumps(asked))
            if answer["cached before"] > features.stat().st_size // 100:
                raise SystemExit(f"{features} stays in the page cache: another process maps it")
            note(f"PyG, {workers} workers", (answer["seconds"], disk_reads(features) - before))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if options.pyg_cgroup is not None:
        memory = int((options.pyg_cgroup / "memory.limit_in_bytes").read_text())
    print(f"{options.rounds} rounds in turn of {options.epochs + 1} epochs of {options.batches} "
          "batches\n"
          f"PyTorch Geometric ({worker.ready['note']}) may cache pages in {memory / 1e9:.1f} "
          "GB\n")  # fmt: skip
    kinds = options.kinds
    print(
        "| | s in all | least to most | s by epoch | GB read | "
        f"{' | '.join(f'time / {kind}' for kind in kinds)} |"
    )
    print("|---" * (5 + len(kinds)) + "|")
    middle = {
        name: statistics.median(sum(seconds) for seconds, _ in found)
        for name, found in runs.items()
    }
    for name, found in runs.items():
        whole = sorted(sum(seconds) for seconds, _ in found)
        epochs = ", ".join(
            f"{statistics.median(column):.1f}"
            for column in zip(*(one for one, _ in found), strict=True)
        )
        ratios = " | ".join(f"{middle[name] / middle[kind]:.2f}" for kind in kinds)
        print(f"| {name} | {middle[name]:.1f} | {whole[0]:.1f} to {whole[-1]:.1f} | {epochs} "
              f"| {statistics.median(read for _, read in found) / 1e9:.2f} | {ratios} |")  # fmt: skip


def disk_reads(file: Path) -> int:
    """Return the bytes that the disk of a file has given so far (Linux)."""
    device = file.stat().st_dev
    for line in Path("/proc/diskstats").read_text().splitlines():
        major, minor, _, _, _, sectors, *_ = line.split()
        if (int(major), int(minor)) == (os.major(device), os.minor(device)):
            return 512 * int(sectors)
    return 0


def write_features(file: Path, num_nodes: int, width: int) -> None:
    draft = file.with_suffix(".part.npy")
    array = create_array(draft, np.float32, (num_nodes, width))
    rng = np.random.default_rng(0)
    for begin in range(0, num_nodes, 2**15):
        piece = array[begin : begin + 2**15]
        piece[...] = rng.random(piece.shape, np.float32)
    array.flush()
    draft.replace(file)


def disk_alone(features: Path, num_nodes: int, row: int) -> None:
    """Print the rate of bare reads of sorted random rows, and that of fetching the same rows."""
    ids = torch.from_numpy(np.sort(np.random.default_rng(5).permutation(num_nodes)[:100_000]))
    for threads in (1, 8):
        rows = storage.open(features, direct=True, threads=threads)
        rows.fetch(ids[:1000])
        before = rows.bytes_read
        begun = time.perf_counter()
        rows.fetch(ids)
        seconds = time.perf_counter() - begun
        read = rows.bytes_read - before
        print(f"fetch of 100,000 sorted rows, {threads} thread(s): {read / seconds / 1e6:,.0f} "
              f"MB/s of blocks, {len(ids) * row / seconds / 1e6:,.0f} MB/s of rows")  # fmt: skip
    print(
        "bare preadv of the same blocks, 8 threads: "
        f"{bare_rate(features, ids.numpy(), row) / 1e6:,.0f} MB/s\n"
    )


def bare_rate(features: Path, ids: np.ndarray, row: int) -> float:
    """Bytes per second of plain system calls for the blocks of rows, on eight threads."""
    file = os.open(features, os.O_RDONLY | os.O_DIRECT)
    block = 512
    *_, start = read_header(features)
    first = (start + ids * row) // block * block
    last = -(-(start + (ids + 1) * row) // block) * block

    def read(part: np.ndarray) -> None:
        memory = mmap.mmap(-1, 2**20)
        for k in part:
            os.preadv(file, [memoryview(memory)[: int(last[k] - first[k])]], int(first[k]))

    threads = [Thread(target=read, args=(part,)) for part in np.array_split(np.arange(len(ids)), 8)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(file)
    return float((last - first).sum()) / (time.perf_counter() - begun)


def loader_of(graph: Graph, batches: int) -> NodeFlowLoader:
    train = torch.from_numpy(
        np.random.default_rng(0).permutation(graph.num_nodes)[: BATCH * batches]
    )
    sampler = NeighborSampler(graph, FANOUTS)
    return NodeFlowLoader(
        sampler, train, BATCH, shuffle=True, ndata={0: ["x"], -1: ["y"]}, num_workers=1
    )


def step_of(width: int) -> Callable[[NodeFlow], None]:
    torch.manual_seed(0)
    model = GraphSAGE(width, HIDDEN, CLASSES, num_layers=2)
    optimizer = torch.optim.Adam(model.parameters())

    def step(batch: NodeFlow) -> None:
        loss = torch.nn.functional.cross_entropy(
            model(batch, batch.ldata[0]["x"]), batch.ldata[-1]["y"]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def cached(heat: Callable[[Graph, NodeFlowLoader], Any]) -> Callable[..., Iterable[NodeFlow]]:
    def batches(graph: Graph, loader: NodeFlowLoader, room: int, _: int) -> Iterable[NodeFlow]:
        graph.ndata["x"] = storage.Cached(graph.ndata["x"], heat(graph, loader), room)  # type: ignore[assignment]
        return loader

    return batches


def recent(graph: Graph, loader: NodeFlowLoader, room: int, _: int) -> Iterable[NodeFlow]:
    graph.ndata["x"] = RecentlyUsed(
        rows := graph.ndata["x"], room // (rows.shape[1] * rows.dtype.itemsize)
    )
    return loader


KINDS: dict[str, Callable[..., Iterable[NodeFlow]]] = {
    "nothing": lambda graph, loader, room, epochs: loader,
    "LRU": recent,
    "random": cached(lambda graph, loader: torch.rand(graph.num_nodes)),
    "degree": cached(lambda graph, loader: storage.degree_heat(graph)),
    "reach (analytic)": cached(
        lambda graph, loader: storage.reach_heat(graph, loader.seeds, FANOUTS, BATCH)
    ),
    "presample": cached(lambda graph, loader: storage.presample(loader, [0])),
    "lookahead": lambda graph, loader, room, epochs: storage.Lookahead(loader, room, epochs=epochs),
}

if __name__ == "__main__":
    main()
