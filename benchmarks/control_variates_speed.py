"""What control variates cost: a training step, sums over all neighbours, and a full pass that makes
a history.

python benchmarks/control_variates_speed.py --data FOLDER [--graphs coauthor_physics rmat] [--rounds 7] [--threads 1]

FOLDER as for ``control_variates.py``; "rmat" is the RMAT graph of the other benchmarks with 100
random features. All that is compared runs in turn in one process, and medians are printed.

- Step: sampling, features, history, forward, backward and optimiser of a GCN of two layers, hidden
  width 128.
- Sums: the aggregated history of the seeds of a batch, straight from the graph; and by a flow of
  all neighbours.
- Pass: an ``Updater`` that stores history and sums, in edges times width per second; and a bare
  product of the sparse matrix and rows of that width, by scipy and by torch, the faster of which
  counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from control_variates import Data, Run, Way, read
from rmat import ensure

from nodeflow import FullSampler, Graph, History, Updater, nn, transform
from nodeflow.propagation import Propagation

WIDTH = 128
STEPS = 8
WAYS = [Way("ns", 10), Way("ns", 2), Way("cv", 2), Way("cv", 1), Way("cv", 2, True), Way("cvd", 2)]


def rmat(folder: Path, scale: int) -> Data:
    graph = Graph(
        *(np.load(ensure(folder, scale, 16) / f"{name}.npy") for name in ("indptr", "indices"))
    )
    graph.edata["p"] = transform.edge_norm(graph)
    x = torch.randn(graph.num_nodes, 100, generator=torch.Generator().manual_seed(0))
    y = torch.arange(graph.num_nodes) % 47
    train = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[
        : 1024 * STEPS
    ]
    px = Propagation(graph.view(weight="p"))(x)
    return Data(
        "rmat", graph, x, px, y, train, train, hidden=WIDTH, batch_size=1024, epochs=1, decay=0.0
    )


def in_turn(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each job."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number:  # the first is compilation and caches
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def steps(data: Data, rounds: int) -> None:
    runs = {str(way): Run(data, way, 0) for way in WAYS}
    found = in_turn({name: lambda run=run: run.epoch(STEPS) for name, run in runs.items()}, rounds)  # type: ignore[misc]
    print("| step | ms | over NS-10 |\n|---|---|---|")
    for name, seconds in found.items():
        print(
            f"| {name} | {1e3 * seconds / STEPS:.1f} | {seconds / found['NS-10']:.2f} |", flush=True
        )


def sums(data: Data, rounds: int) -> None:
    print(f"\n| sums of {data.batch_size} nodes | ms | times faster |\n|---|---|---|")
    nodes = torch.randperm(data.graph.num_nodes, generator=torch.Generator().manual_seed(1))[
        : data.batch_size
    ]
    sampler = FullSampler(data.graph.view(weight="p"), 1)
    for width, dtype in (
        (w, kind) for w in (WIDTH, 16) for kind in (torch.float32, torch.bfloat16)
    ):
        history = History(data.graph.view(weight="p"), {1: width}, dtype=dtype)
        history.write(1, range(data.graph.num_nodes), torch.randn(data.graph.num_nodes, width))
        history.commit()
        stored = History(data.graph.view(weight="p"), {1: width}, aggregated="stored", dtype=dtype)

        def as_flow(history: History = history) -> torch.Tensor:
            batch = sampler(nodes)
            flow = batch.flows[0]
            # sums are float32, of narrow rows too
            rows = history.rows(1, batch.front.parent_nid).float()
            return flow.aggregate(rows, "sum", weight=flow.weight)

        def on_demand(history: History = history) -> torch.Tensor:
            return history.aggregated_rows(1, nodes)

        def from_store(history: History = stored) -> torch.Tensor:
            return history.aggregated_rows(1, nodes)

        torch.testing.assert_close(as_flow(), on_demand(), rtol=1e-4, atol=1e-4)
        jobs = {
            "by a flow of all neighbours": as_flow,
            "on demand": on_demand,
            "stored": from_store,
        }
        found = in_turn(jobs, rounds)
        kind = str(dtype).removeprefix("torch.")
        first = found["by a flow of all neighbours"]
        for name, seconds in found.items():
            print(
                f"| {name}, width {width}, {kind} | {1e3 * seconds:.2f} | {first / seconds:.1f} |",
                flush=True,
            )


def full_pass(data: Data, rounds: int) -> None:
    model = nn.VRGCN(data.x.shape[1], WIDTH, WIDTH, 2)
    history = History(data.graph.view(weight="p"), model.history_widths, aggregated="stored")
    updater = Updater(model, history, data.x)
    h = torch.randn(data.graph.num_nodes, WIDTH)
    indptr, near, _ = data.graph.csc()
    weights = Propagation(data.graph.view(weight="p")).weights
    matrix = scipy.sparse.csr_array(
        (weights.astype(np.float32), near, indptr), shape=2 * (data.graph.num_nodes,)
    )
    parts = (torch.from_numpy(np.array(part, np.int64)) for part in (indptr, near))
    sparse = torch.sparse_csr_tensor(
        *parts, torch.from_numpy(matrix.data), matrix.shape, check_invariants=False
    )
    rows = h.numpy()
    jobs = {"Updater": updater.run, "scipy": lambda: matrix @ rows, "torch": lambda: sparse @ h}
    found = in_turn(jobs, rounds)
    products = {"Updater": 2, "scipy": 1, "torch": 1}  # the rows of layer 1, and their sums
    rates = {name: products[name] * len(near) * WIDTH / seconds for name, seconds in found.items()}
    best = max(rates["scipy"], rates["torch"])
    print("\n| full pass | s | edges x width per s | over the bare product |\n|---|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {found[name]:.3f} | {rate:.3g} | {rate / best:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--graphs", nargs="+", default=["coauthor_physics", "rmat"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scale", type=int, default=20, help="of the RMAT graph")
    parser.add_argument(
        "--rmat",
        type=Path,
        default=Path(__file__).resolve().parent / "data",
        help="where that is kept",
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.graphs:
        data = rmat(options.rmat, options.scale) if name == "rmat" else read(options.data, name)
        print(
            f"\n{name}: {data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} edges, "
            f"{options.threads} thread(s)\n"
        )
        steps(data, options.rounds)
        sums(data, options.rounds)
        full_pass(data, options.rounds)


if __name__ == "__main__":
    main()
