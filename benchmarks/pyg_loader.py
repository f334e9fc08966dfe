"""A program of PyTorch Geometric before and after its loader is replaced by ``convert.pyg_loader``:
seconds, accuracy.

python benchmarks/pyg_loader.py [--pyg PYTHON] [--epochs 10] [--rounds 3] [--threads 2]

GraphSAGE of ``torch_geometric.nn.SAGEConv`` (128-256-58, mean), Adam, 1,024 seeds, 10 neighbours
per hop, on debian with reverse edges. Features are 128 dense columns (a truncated SVD of the 2,000
sparse ones), because ``NeighborLoader`` takes no sparse ones. The training loop is the same line by
line; only the loader differs. Every run is a process of its own, and rounds take the loaders in
turn. "batches" is an epoch of the loader alone, "epoch" one of training, both medians over epochs
after the first and over rounds. "CPU" is the processor time of such an epoch, of all threads, but
not of the worker processes of ``NeighborLoader``. On a machine that others use, judge by it.
Accuracy is that of the whole graph after the last epoch, mean and range over rounds.

PYTHON is an interpreter that has PyTorch Geometric with pyg-lib, with which ``NeighborLoader``
samples; without one its rows are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

warnings.filterwarnings("ignore")

RUNS = {
    "NeighborLoader": {"loader": "pyg", "workers": 0, "trim": False},
    "NeighborLoader, 1 worker": {"loader": "pyg", "workers": 1, "trim": False},
    "pyg_loader": {"loader": "nodeflow", "workers": 0, "trim": False},
    "pyg_loader, 1 worker": {"loader": "nodeflow", "workers": 1, "trim": False},
    "pyg_loader, 1 worker, trim_to_layer": {"loader": "nodeflow", "workers": 1, "trim": True},
}
FANOUTS = [10, 10]
BATCH = 1024
HIDDEN = 256
WIDTH = 128


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pyg", help="interpreter with torch-geometric and pyg-lib")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--nodes", type=int, default=0, help="train with so many nodes only, for a trial"
    )
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, {options.threads} threads\n")
    results: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), options.nodes)
        for seed in range(options.rounds):
            for name, run in RUNS.items():
                interpreter = options.pyg if run["loader"] == "pyg" else sys.executable
                if interpreter:
                    work = {
                        **run,
                        "folder": folder,
                        "seed": seed,
                        "epochs": options.epochs,
                        "threads": options.threads,
                    }
                    results.setdefault(name, []).append(child(interpreter, work))
    print(
        "| loader | batches (s) | epoch (s) | CPU (s) | val accuracy | test accuracy "
        "|\n|---|---|---|---|---|---|"
    )
    for name, found in results.items():
        times = [
            f"{statistics.median(t for one in found for t in one[key]):.2f}"
            for key in ("batches", "epochs", "cpu")
        ]
        scores = [[one[key] for one in found] for key in ("val", "test")]
        words = [f"{statistics.mean(s):.4f} ({min(s):.4f} to {max(s):.4f})" for s in scores]
        print(f"| {name} | {' | '.join(times + words)} |")


def child(interpreter: str, work: dict[str, Any]) -> dict[str, Any]:
    """Run one training in a process of its own."""
    done = subprocess.run(
        [interpreter, __file__, "--work", json.dumps(work)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def write_data(folder: Path, num_train: int) -> None:
    """Write debian as arrays, with dense features, for processes that have no nodeflow."""
    import scipy.sparse.linalg

    from nodeflow import datasets, transform

    data = datasets.debian()
    words = data.graph.ndata["feat"]
    matrix = scipy.sparse.csr_array(
        (words.values(), words.col_indices(), words.crow_indices()), shape=words.shape
    )
    left, sizes, _ = scipy.sparse.linalg.svds(matrix, k=WIDTH, rng=np.random.default_rng(0))
    features = (left * sizes).astype(np.float32)
    arrays = {"x": features / features.std(), "y": data.graph.ndata["label"].numpy()}
    graph = transform.add_reverse_edges(data.graph)
    train = data.train[: num_train or None]
    parts = {"train": train.numpy(), "val": data.val.numpy(), "test": data.test.numpy()}
    arrays |= parts | {"edge_index": torch.stack(graph.edges()).numpy()}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


# ----------------------------------------------------------------------------- the program of a
# PyTorch Geometric user


def train(work: dict[str, Any]) -> dict[str, Any]:
    from torch_geometric.data import Data
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import trim_to_layer

    torch.set_num_threads(work["threads"])
    torch.manual_seed(work["seed"])
    arrays = {
        path.stem: torch.from_numpy(np.load(path)) for path in Path(work["folder"]).glob("*.npy")
    }
    data = Data(x=arrays["x"], y=arrays["y"], edge_index=arrays["edge_index"])
    train_nodes = arrays["train"]
    # these two lines are the difference
    if work["loader"] == "pyg":
        loader = before(data, train_nodes, work)
    else:
        loader = after(data, train_nodes, work)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [WIDTH, HIDDEN, int(data.y.max()) + 1]
            self.convs = torch.nn.ModuleList([SAGEConv(widths[i], widths[i + 1]) for i in range(2)])

        def forward(
            self, x: torch.Tensor, edge_index: torch.Tensor, batch: Any = None
        ) -> torch.Tensor:
            for i, conv in enumerate(self.convs):
                if batch is not None and work["trim"]:
                    counts = batch.num_sampled_nodes, batch.num_sampled_edges
                    x, edge_index, _ = trim_to_layer(i, *counts, x, edge_index)
                x = conv(x, edge_index)
                if i == 0:
                    x = torch.nn.functional.dropout(x.relu(), 0.5, self.training)
            return x

    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    result: dict[str, Any] = {"batches": [], "epochs": [], "cpu": []}
    for epoch in range(work["epochs"] + 1):
        start = time.perf_counter()
        processor = time.process_time()
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, batch)[: batch.batch_size]
            torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
            optimizer.step()
        if epoch:  # the first also compiles and reads what is cached later
            result["epochs"].append(time.perf_counter() - start)
            result["cpu"].append(time.process_time() - processor)
    for _ in range(3):
        start = time.perf_counter()
        for _batch in loader:
            pass
        result["batches"].append(time.perf_counter() - start)
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1) == data.y
    return result | {part: float(right[arrays[part]].float().mean()) for part in ("val", "test")}


def before(data: Any, nodes: torch.Tensor, work: dict[str, Any]) -> Iterator[Any]:
    import pyg_lib  # noqa: F401  (without it NeighborLoader would sample with another library)
    from torch_geometric.loader import NeighborLoader

    options = {"num_workers": work["workers"], "persistent_workers": work["workers"] > 0}
    return NeighborLoader(
        data, FANOUTS, input_nodes=nodes, batch_size=BATCH, shuffle=True, **options
    )


def after(data: Any, nodes: torch.Tensor, work: dict[str, Any]) -> Any:
    from nodeflow import NeighborSampler, NodeFlowLoader
    from nodeflow.convert import from_pyg, pyg_loader

    sampler = NeighborSampler(from_pyg(data), FANOUTS[::-1], reuse=True, seed=work["seed"])
    options: dict[str, Any] = {
        "shuffle": True,
        "num_workers": work["workers"],
        "seed": work["seed"],
    }
    return pyg_loader(NodeFlowLoader(sampler, nodes, BATCH, ndata={0: ["x"], -1: ["y"]}, **options))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        print(json.dumps(train(json.loads(sys.argv[2]))))
    else:
        main()
