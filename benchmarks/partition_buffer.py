"""Print what epochs over a partition buffer read, and how much of the reading is hidden behind
training.

python benchmarks/partition_buffer.py --data FOLDER [--scale 19] [--width 256] [--partitions 16]
[--slots 4]

The graph is RMAT (``rmat.py``), made on first use in FOLDER, with random float32 features of
``width`` numbers a node. It is written as partitions into FOLDER. Every epoch trains a GraphSAGE
model on random training nodes, with files read from the disk each time, not from the system's
memory. ``--no-prefetch`` reads between the states, for comparison.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np
import rmat
import torch
from torch import Tensor
from torch.nn import functional as F

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow.nn import GraphSAGE
from nodeflow.partitions import PartitionBuffer, Partitions, write_partitions
from nodeflow.random import Random

CLASSES = 16
HIDDEN = 128


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--scale", type=int, default=19)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--width", type=int, default=256, help="features of a node")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--train", type=float, default=0.1, help="share of the nodes to train on")
    parser.add_argument("--orders", nargs="+", default=["comet", "beta", "dispersed"])
    parser.add_argument("--no-prefetch", action="store_true")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parts = written(options)
    print(
        f"{parts}; {options.threads} thread(s); {platform.machine()}, {os.cpu_count()} cores; "
        f"{disk(parts):.2f} GB/s\n"
    )
    titles = (
        "order", "swaps", "states", "rows read, GB", "edges read, GB", "filling, s", "reading, s", "waited, s",
        "hidden", "epoch, s", "held, GB", "visible edges",
    )  # fmt: skip
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    for order in options.orders:
        row = epoch(parts, options.slots, order, prefetch=not options.no_prefetch)
        print(f"| {' | '.join(row)} |", flush=True)


def written(options: argparse.Namespace) -> Partitions:
    """Return the folder of partitions, written on first use."""
    size = f"{options.scale}-{options.edge_factor}-{options.width}-{options.partitions}-{options.train}"
    folder = options.data / f"partitions-{size}"
    if folder.exists():
        return Partitions.open(folder)
    place = rmat.ensure(options.data, options.scale, options.edge_factor)
    indptr, indices = (
        np.load(place / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")
    )
    graph = Graph(indptr, indices, copy=False)
    random = Random(1)

    def features(ids: Tensor) -> Tensor:
        flat = ids[:, None] * options.width + torch.arange(options.width)
        return random.uniform(flat.reshape(-1)).float().view(len(ids), -1)

    def label(ids: Tensor) -> Tensor:
        return random.integers(ids, CLASSES, draw=1)

    train = np.flatnonzero(random.uniform(range(graph.num_nodes), draw=2).numpy() < options.train)
    columns = {"feat": features, "label": label}
    begun = time.perf_counter()
    parts = write_partitions(graph, folder, options.partitions, train=train, columns=columns)
    print(f"written in {time.perf_counter() - begun:.1f} s")
    return parts


def disk(parts: Partitions) -> float:
    """GB/s of reading all files of features one after the other, past the memory of the system."""
    total = 0
    begun = time.perf_counter()
    memory = bytearray(2**24)
    for k in range(parts.num_parts):
        with (parts.folder / parts.node_array("feat", k).file).open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while size := file.readinto(memory):
                total += size
    return total / (time.perf_counter() - begun) / 1e9


def epoch(parts: Partitions, slots: int, order: str, *, prefetch: bool) -> list[str]:
    """Train for an epoch; return the cells of its row."""
    width = parts.node_array("feat", 0).shape[1]
    model = GraphSAGE(width, HIDDEN, CLASSES)
    optimizer = torch.optim.Adam(model.parameters())
    buffer = PartitionBuffer(parts.folder, slots, order=order, prefetch=prefetch, page_cache=False)
    begun = time.perf_counter()
    for state in buffer:
        sampler = NeighborSampler(state.graph, [10, 10], seed=state.seed)
        columns = {0: ["feat"], -1: ["label"]}
        for batch in NodeFlowLoader(
            sampler, state.seeds, 1024, shuffle=True, seed=state.seed, ndata=columns, prefetch=0
        ):
            loss = F.cross_entropy(
                model(batch, batch.layers[0].data["feat"]), batch.layers[-1].data["label"]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seconds = time.perf_counter() - begun
    counters = buffer.counters
    visible = buffer.visible_edges(0)
    return [
        order, str(counters.swaps), str(counters.states), f"{counters.bytes_read / 1e9:.2f}",
        f"{counters.edge_bytes_read / 1e9:.2f}", f"{counters.seconds_filling:.1f}", f"{counters.seconds_reading:.1f}",
        f"{counters.seconds_waited:.1f}", f"{counters.hidden:.0%}", f"{seconds:.1f}", f"{buffer.held_bytes / 1e9:.2f}",
        f"{sum(visible) / len(visible):.0%}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
