"""Memory, descriptors, threads and objects over many batches: flat, or something is kept that is no
longer needed.

    python trials/soak.py [--batches 20000] [--only LOOP]

Each loop trains on batches of a small graph and is sampled every 500 batches. It is flat if the
median of the last quarter of the samples is above that of the second quarter by at most 1 %, and
memory by at most 2 MB too. Exits 1 otherwise.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nodeflow import (
    ControlVariateSampler,
    Graph,
    History,
    NeighborSampler,
    NodeFlowLoader,
    Updater,
    nn,
    storage,
)
from nodeflow.storage import EmbeddingTable

NODES = 1000
WIDTH = 8
CLASSES = 3
QUANTITIES = ("memory, MB", "descriptors", "threads", "tensors", "objects")
MOST = 2.0  # MB


def graph() -> Graph:
    random = np.random.default_rng(0)
    result = Graph.from_edges(*random.integers(0, NODES, (2, 6 * NODES)), num_nodes=NODES)
    result.edata["p"] = torch.full((6 * NODES,), 1 / 6)
    result.ndata["x"] = torch.from_numpy(random.random((NODES, WIDTH), np.float32))
    result.ndata["label"] = torch.from_numpy(random.integers(0, CLASSES, NODES))
    return result


def batches(parent: Graph, history: History | None = None, **options: Any) -> Iterator[Any]:
    """Yield batches without an end."""
    fanouts = [3, 3]
    sampler = (
        NeighborSampler(parent, fanouts)
        if history is None
        else ControlVariateSampler(history, fanouts)
    )
    loader = NodeFlowLoader(
        sampler, np.arange(NODES), 16, True, ndata={0: ["x"], -1: ["label"]}, **options
    )
    while True:
        yield from loader


def trained(
    model: Any, step: Callable[[Any], torch.Tensor], source: Iterator[Any]
) -> Iterator[None]:
    """Train on batches, and yield after each."""
    optimizer = torch.optim.Adam(model.parameters())
    for batch in source:
        loss = torch.nn.functional.cross_entropy(step(batch), batch.layers[-1].data["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def plain(folder: Path, **options: Any) -> Iterator[None]:
    model = nn.GraphSAGE(WIDTH, 8, CLASSES, 2)
    return trained(
        model, lambda batch: model(batch, batch.layers[0].data["x"]), batches(graph(), **options)
    )


def control_variates(folder: Path) -> Iterator[None]:
    """Batches of control variates; the history is renewed by an Updater after every 200."""
    parent = graph()
    model = nn.VRGCN(WIDTH, 8, CLASSES, num_layers=2)
    history = History(parent.view(weight="p"), model.history_widths, inputs=parent.ndata["x"])
    updater = Updater(model, history, parent.ndata["x"], every=200)

    def step(batch: Any) -> torch.Tensor:
        rows = model(batch, batch.layers[0].data["x"])
        history.commit(batch)
        updater.step()
        return rows

    return trained(model, step, batches(parent, history))


def files(folder: Path) -> Iterator[None]:
    """Features from a file through a cache, and learned rows in files."""
    parent = graph()
    np.save(folder / "x.npy", parent.ndata["x"].numpy())
    parent.ndata["x"] = storage.Cached(
        storage.open(folder / "x.npy"), np.arange(NODES), memory=NODES // 10 * WIDTH * 4
    )
    table = EmbeddingTable(NODES, WIDTH, lr=0.1, folder=folder / "table")
    model = nn.GraphSAGE(WIDTH, 8, CLASSES, 2)

    def step(batch: Any) -> torch.Tensor:
        return model(batch, batch.layers[0].data["x"] + table.pull(batch.layers[0].parent_nid))

    def stepped() -> Iterator[None]:
        for _ in trained(model, step, batches(parent)):
            table.step()
            yield
        table.close()

    return stepped()


LOOPS: dict[str, Callable[[Path], Iterator[None]]] = {
    "loader": plain,
    "loader, one worker": lambda folder: plain(folder, num_workers=1),
    "control variates": control_variates,
    "files": files,
}


def sample() -> tuple[float, ...]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    objects = gc.get_objects()
    tensors = sum(issubclass(type(each), torch.Tensor) for each in objects)
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return memory, len(os.listdir("/proc/self/fd")), threading.active_count(), tensors, len(objects)


def run(loop: str, count: int, every: int) -> bool:
    """Run a loop and print its row; return whether it is flat."""
    torch.set_num_threads(1)
    samples = []
    since = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        steps = LOOPS[loop](Path(folder))
        for number in range(1, count + 1):
            next(steps)
            if number % every == 0:
                samples.append(sample())
        steps.close()  # type: ignore[attr-defined]
    seconds = time.perf_counter() - since
    quarter = len(samples) // 4
    second = samples[quarter : 2 * quarter] or samples
    last = samples[-quarter:]
    cells = []
    flat = True
    for at, name in enumerate(QUANTITIES):
        before, after = (statistics.median(each[at] for each in part) for part in (second, last))
        flat &= after <= before * 1.01 and (name != "memory, MB" or after - before <= MOST)
        cells.append(
            f"{before:,.1f} → {after:,.1f}"
            if isinstance(after, float) and at == 0
            else f"{before:g} → {after:g}"
        )
    print(
        f"| {loop} | {count:,} | {seconds:.0f} | {' | '.join(cells)} | "
        f"{'yes' if flat else '**no**'} |",
        flush=True,
    )
    return flat


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument(
        "--every", type=int, default=500, help="batches from one sample to the next"
    )
    parser.add_argument("--only", choices=LOOPS)
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        return int(not run(options.only, options.batches, options.every))
    print(
        f"| loop | batches | seconds | {' | '.join(QUANTITIES)} | flat "
        f"|\n|---|---|---|{'---|' * 6}",
        flush=True,
    )
    # each in a process of its own: what one keeps is not measured in the next
    common = ["--row", "--batches", str(options.batches), "--every", str(options.every)]
    loops = [options.only] if options.only else list(LOOPS)
    codes = [subprocess.call([sys.executable, __file__, "--only", loop, *common]) for loop in loops]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
