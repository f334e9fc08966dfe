"""What a call costs beside the work it does: flow_compute on a small flow, and mailboxes on a large
one.

python benchmarks/calls.py [--rounds 9] [--scale 20]

- flow_compute with built-in functions, beside the same ``aggregate`` and update called without it:
  64 destinations.
- A reduce function of the user's own (largest plus mean over the mailbox), forward and backward,
  beside a loop in torch that groups destinations by degree: the flow of ``aggregate.py``, width 64.

Everything runs in turn in one process with one thread; medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from aggregate import flow_folder
from rmat import ensure
from torch import Tensor

from nodeflow import Graph, NeighborSampler, create_node_flow, flow_from_csr, fn

HERE = Path(__file__).resolve().parent


def in_turn(jobs: dict[str, Callable[[], object]], rounds: int, times: int) -> dict[str, float]:
    """Median seconds of one call of each job."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            for _ in range(times):
                job()
            if number:  # the first is compilation and caches
                found[name].append((time.perf_counter() - start) / times)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def small(rounds: int) -> None:
    ends = np.random.default_rng(0).integers(0, 5000, (2, 50_000))
    batch = NeighborSampler(Graph.from_edges(*ends, num_nodes=5000), [5])(range(64))
    flow = batch.flows[0]
    h = torch.randn(batch.layers[0].num_nodes, 32)
    batch.ldata[0]["h"] = h
    message = fn.copy_u("h", "m")
    reduce = fn.mean("m", "mean")

    def update(nodes: object) -> dict[str, Tensor]:
        return {"h": nodes.data["mean"].relu()}  # type: ignore[attr-defined]

    jobs = {
        "flow_compute": lambda: batch.flow_compute(0, message, reduce),
        "aggregate": lambda: flow.aggregate(h, "mean"),
        "flow_compute with an update": lambda: batch.flow_compute(0, message, reduce, update),
        "aggregate and the update": lambda: flow.aggregate(h, "mean").relu(),
    }
    found = in_turn(jobs, rounds, 300)
    names = list(found)
    print("| small flow | us | over the bare operation |\n|---|---|---|")
    for name, bare in zip(names[::2], names[1::2], strict=True):
        print(f"| {name} | {1e6 * found[name]:.1f} | {1e6 * (found[name] - found[bare]):.1f} |")
        print(f"| {bare} | {1e6 * found[bare]:.1f} | |")


def mailboxes(folder: Path, rounds: int) -> None:
    indptr, indices = (
        torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("indptr", "indices")
    )
    h = torch.randn(int(np.load(folder / "num_src.npy")), 64, requires_grad=True)
    g = torch.randn(len(indptr) - 1, 64)

    def reduced(box: Tensor) -> Tensor:
        return box.amax(1) + box.mean(1)

    def ours() -> Tensor:
        # a new flow each time: the groups of destinations are made once per flow
        batch = create_node_flow([flow_from_csr(indptr, indices, num_src=len(h))])
        batch.ldata[0]["h"] = h
        batch.flow_compute(0, fn.copy_u("h", "m"), lambda nodes: {"h": reduced(nodes.mailbox["m"])})
        return batch.ldata[1]["h"]

    def by_hand() -> Tensor:
        degrees = indptr.diff()
        order = torch.argsort(degrees, stable=True)
        sizes, counts = torch.unique_consecutive(degrees[order], return_counts=True)
        rows = [
            (size, part)
            for size, part in zip(sizes.tolist(), order.split(counts.tolist()), strict=True)
            if size
        ]
        parts = [
            reduced(h[indices[indptr[part, None] + torch.arange(size)]]) for size, part in rows
        ]
        out = torch.zeros(len(degrees), 64)
        return out.index_copy(0, torch.cat([part for _, part in rows]), torch.cat(parts))

    torch.testing.assert_close(ours(), by_hand())

    def step(run: Callable[[], Tensor]) -> None:
        h.grad = None
        run().backward(g)

    found = in_turn({"mailboxes": lambda: step(ours), "by hand": lambda: step(by_hand)}, rounds, 1)
    print("\n| reduce function | ms | over the loop by hand |\n|---|---|---|")
    for name, seconds in found.items():
        print(f"| {name} | {1e3 * seconds:.1f} | {seconds / found['by hand']:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    small(options.rounds)
    mailboxes(flow_folder(ensure(options.data, options.scale, options.edge_factor)), options.rounds)


if __name__ == "__main__":
    main()
