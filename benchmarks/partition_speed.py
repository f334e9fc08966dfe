"""Seconds of an epoch of node classification in memory and on a partition buffer, in turn, and
print medians.

python benchmarks/partition_speed.py the bundled graph python benchmarks/partition_speed.py --data
FOLDER a data set, see datasets.read_folder; only its edges are read

Features and labels are random. Both runs are those of the ``Trainer``, with the same settings:
GraphSAGE, the neighbour sampler, half of the nodes for training. The first epoch of each is not
counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nodeflow import Graph
from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.partitions import PartitionBuffer, write_partitions
from nodeflow.random import Random
from nodeflow.training import Settings, Trainer

CLASSES = 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--width", type=int, default=100, help="of features")
    parser.add_argument("--rounds", type=int, default=3, help="counted epochs of each")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--orders", nargs="+", default=["comet"])
    parser.add_argument(
        "--method", default="random", choices=("random", "metis"), help="how nodes are cut"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = made_up(
        (debian() if options.data is None else read_folder(options.data, labels=False)).graph,
        options.width,
    )
    rounds = options.rounds + 1
    print(f"{data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} edges, {options.width} "
          f"features; {rounds - 1} "
          f"epochs; {options.partitions} partitions ({options.method}), {options.slots} slots; "
          f"{options.threads} "
          f"thread(s); {platform.machine()}, {os.cpu_count()} cores\n")  # fmt: skip
    usual: dict[str, Any] = {"fanouts": (5, 5), "hidden": 128, "direction": "in"}
    settings = {"memory": Settings(**usual, epochs=rounds + 1, validate_every=rounds + 1)}
    with tempfile.TemporaryDirectory() as folder:
        write_partitions(
            data.graph, Path(folder) / "parts", options.partitions, method=options.method, train=data.train,
            progress=False,
        )  # fmt: skip
        for order in options.orders:
            buffered = {
                "storage": "partitions",
                "partitions": f"{folder}/parts",
                "slots": options.slots,
            }
            settings[order] = Settings(
                **usual, epochs=rounds + 1, validate_every=rounds + 1, **buffered, order=order
            )  # fmt: skip
        trainers = {name: Trainer(data, one) for name, one in settings.items()}
        seconds: dict[str, list[float]] = {name: [] for name in trainers}
        for _ in range(rounds):
            for name, trainer in trainers.items():
                seconds[name].append(trainer.train_epoch().seconds)
        print(
            "| rows | seconds | least | most | held, MB | read, MB | hidden "
            "|\n|---|---|---|---|---|---|---|"
        )
        for name, trainer in trainers.items():
            counted = seconds[name][1:]
            columns = f"{np.median(counted):.3g} | {min(counted):.3g} | {max(counted):.3g}"
            print(f"| {name} | {columns} | {storage_columns(trainer, rounds)} |")


def made_up(graph: Graph, width: int) -> Dataset:
    """Return a data set with random features and labels, and every second node for training."""
    ids = torch.arange(graph.num_nodes)
    feat = Random(1).uniform(torch.arange(graph.num_nodes * width)).float().view(-1, width)
    label = (Random(2).uniform(ids) * CLASSES).long()
    indptr, indices, edge_ids = graph.csc()
    bare = Graph(
        indptr, indices, edge_ids=edge_ids, ndata={"feat": feat, "label": label}, copy=False
    )
    return Dataset("made up", bare, ids[::2], ids[1::4], ids[3::4], CLASSES)


def storage_columns(trainer: Trainer, epochs: int) -> str:
    buffer: PartitionBuffer | None = getattr(trainer.batches, "buffer", None)
    if buffer is None:
        indptr, indices, _ = trainer.task.graph.csc()
        held = trainer.task.graph.ndata["feat"].nbytes + indptr.nbytes + indices.nbytes
        return f"{held / 1e6:.0f} | 0 | "
    counters = buffer.counters
    read = (counters.bytes_read + counters.edge_bytes_read) / epochs
    return f"{buffer.held_bytes / 1e6:.0f} | {read / 1e6:.0f} | {counters.hidden:.0%}"


if __name__ == "__main__":
    main()
