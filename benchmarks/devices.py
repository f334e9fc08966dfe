"""Draws, rows and steps on a device beside those of the processor, in turn; a table with ratios and
memory.

python benchmarks/devices.py [--device cuda] [--rounds 5] [--threads 1]

"draw": batches by the compiled loops, with their move to the device, and by operations of torch
there; they are the same. Memory is the most that the second takes on the device, over 16 bytes for
each drawn edge (its position and its source). Samplers of layers draw four nodes per seed for each.
"rows": the features of the input layers, from columns in the memory of the host and of the device.
"step": a step of training, GraphSAGE with three layers of width 128, on batches drawn in either
way; features lie on the device.

Times are medians in ms per batch of a clock that waits for the device. On the processor both forms
run there, and memory is that of the process (Linux with glibc).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from child import figures_of
from rmat import ensure

from nodeflow import (
    FastGCNSampler,
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
    TemporalNeighborSampler,
)
from nodeflow.nn import GraphSAGE

HERE = Path(__file__).resolve().parent
BATCHES = 8
DRAWN_PER_SEED = 4
"""Nodes that samplers of layers draw for each layer, per seed of the batch."""
SAMPLERS: dict[str, Callable[[Graph, list[int], int], Any]] = {
    "uniform": lambda graph, fanouts, _: NeighborSampler(graph, fanouts),
    "replace": lambda graph, fanouts, _: NeighborSampler(graph, fanouts, replace=True),
    "reuse": lambda graph, fanouts, _: NeighborSampler(graph, fanouts, reuse=True),
    "disjoint": lambda graph, fanouts, _: NeighborSampler(graph, fanouts, disjoint=True),
    "full, 1 flow": lambda graph, *_: FullSampler(graph, 1),
    "temporal": lambda graph, fanouts, _: TemporalNeighborSampler(graph, fanouts),
    "LABOR-0": lambda graph, fanouts, _: LaborSampler(graph, fanouts),
    "LABOR-0, sequential": lambda graph, fanouts, _: LaborSampler(
        graph, fanouts, method="sequential"
    ),
    "layer-wise": lambda graph, fanouts, size: LayerSampler(graph, [size] * len(fanouts)),
    "LADIES": lambda graph, fanouts, size: LadiesSampler(graph, [size] * len(fanouts)),
    "FastGCN": lambda graph, fanouts, size: FastGCNSampler(graph, [size] * len(fanouts)),
}


class Device:
    """A device, its clock, and the memory that a call takes there."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def ms(self, call: Callable[[], object]) -> float:
        self._wait()
        start = time.perf_counter()
        call()
        self._wait()
        return 1e3 * (time.perf_counter() - start)

    def memory(self, call: Callable[[], object]) -> int | None:
        """The most bytes that a call takes beyond those before it; None where that can't be
        told.
        """
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            before = torch.cuda.memory_allocated(self.device)
            call()
            return torch.cuda.max_memory_allocated(self.device) - before
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
            before = _of_process("VmRSS")
            call()
            return _of_process("VmHWM") - before
        return None

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _of_process(field: str) -> int:
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--fanouts", type=int, nargs="+", default=[5, 10, 15], help="in flow order, the seeds' last"
    )
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument(
        "--largest", type=int, default=65_536, help="seeds of the batch whose memory is measured"
    )
    parser.add_argument("--width", type=int, default=100, help="numbers per row of features")
    parser.add_argument("--samplers", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS))
    parser.add_argument(
        "--rounds", type=int, default=5, help=f"rounds of {BATCHES} batches in turn"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scale", type=int, default=20, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    parser.add_argument("--child", choices=list(SAMPLERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = Device(torch.device(options.device))
    folder = ensure(options.data, options.scale, options.edge_factor)
    graph = Graph(
        *(torch.from_numpy(np.load(folder / f"{part}.npy")) for part in ("indptr", "indices"))
    )
    make = torch.Generator().manual_seed(0)
    graph.edata["time"] = torch.randint(0, 1000, (graph.num_edges,), generator=make)
    graph.ndata["label"] = torch.randint(0, 47, (graph.num_nodes,), generator=make)
    graph.ndata["feat"] = torch.randn(graph.num_nodes, options.width, generator=make)
    order = torch.from_numpy(np.random.default_rng(0).permutation(graph.num_nodes))
    if options.child:
        memory = memory_of(options.child, graph, device, order[: options.largest], options.fanouts)
        print(json.dumps({"memory": memory}))
        return
    where = (
        torch.cuda.get_device_name(device.device)
        if device.device.type == "cuda"
        else "the processor"
    )
    print(
        f"{where}; {platform.machine()}, {os.cpu_count()} cores, {options.threads} thread(s), "
        "torch "
        f"{torch.__version__}; RMAT scale {options.scale}, fanouts {options.fanouts}, "
        f"{options.batch_size} seeds, "
        f"{options.rounds} rounds of {BATCHES} batches\n"
    )
    print(
        "| work | from the processor, ms | on the device, ms | ratio | memory, times 16 bytes per "
        "edge |"
    )
    print("|---|---|---|---|---|")
    for row in rows(graph, device, order, options):
        print("| " + " | ".join(row) + " |", flush=True)


def rows(
    graph: Graph, device: Device, order: torch.Tensor, options: argparse.Namespace
) -> Iterator[tuple[str, ...]]:
    parts = order[: options.batch_size * BATCHES].split(options.batch_size)
    for name in options.samplers:
        compiled = SAMPLERS[name](graph, options.fanouts, DRAWN_PER_SEED * options.batch_size)
        there = compiled.in_torch(device.device)
        draws = {
            "cpu": partial(draw_all, compiled, parts, device),
            "there": partial(draw_all, there, parts, device),
        }
        times = in_turn(device, draws, options.rounds)
        # by a process of its own, which gives memory back when it is freed: that would slow down
        # this one
        memory = figures_of(__file__, name, *sys.argv[1:], MALLOC_MMAP_THRESHOLD_="65536")["memory"]
        yield row_of(f"draw, {name}", times, memory and f"{memory:.1f}")
    sampler = NeighborSampler(graph, options.fanouts)
    nodes = [sampler(seeds, batch_number=i).layers[0].parent_nid for i, seeds in enumerate(parts)]
    held = graph.ndata["feat"].to(device.device)
    ids = [each.to(device.device) for each in nodes]
    gather = {
        "cpu": lambda: [
            graph.ndata["feat"].index_select(0, each).to(device.device) for each in nodes
        ],
        "there": lambda: [held.index_select(0, each) for each in ids],
    }
    yield row_of("rows", in_turn(device, gather, options.rounds))
    steps = {"cpu": training(graph, sampler, order, held, device, options)}
    steps["there"] = training(graph, sampler.in_torch(device.device), order, held, device, options)
    yield row_of("step", in_turn(device, steps, options.rounds))


def memory_of(
    name: str, graph: Graph, device: Device, seeds: torch.Tensor, fanouts: Sequence[int]
) -> float | None:
    """The most memory that a batch of these seeds takes on the device, over 16 bytes for each of
    its edges.
    """
    sampler = SAMPLERS[name](graph, list(fanouts), DRAWN_PER_SEED * len(seeds)).in_torch(
        device.device
    )
    edges = sum(draw(sampler, seeds, 0).flow_sizes)
    most = device.memory(partial(draw, sampler, seeds, 0))
    return most and most / (16 * edges)


def draw(sampler: Any, seeds: torch.Tensor, number: int) -> NodeFlow:
    more = {"times": torch.arange(len(seeds)) % 1000} if sampler.takes_times else {}
    return sampler(seeds, batch_number=number, **more)


def draw_all(sampler: Any, parts: Sequence[torch.Tensor], device: Device) -> None:
    for i, seeds in enumerate(parts):
        draw(sampler, seeds, i).to(device.device)


def in_turn(
    device: Device, calls: dict[str, Callable[[], object]], rounds: int
) -> dict[str, float]:
    """Medians in ms per batch; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            times[name].append(device.ms(call) / BATCHES)
    return {name: statistics.median(of[1:]) for name, of in times.items()}


def row_of(work: str, ms: dict[str, float], memory: str | None = None) -> tuple[str, ...]:
    return (
        work,
        f"{ms['cpu']:.2f}",
        f"{ms['there']:.2f}",
        f"{ms['there'] / ms['cpu']:.2f}",
        memory or "",
    )


def training(
    graph: Graph,
    sampler: Any,
    order: torch.Tensor,
    held: torch.Tensor,
    device: Device,
    options: argparse.Namespace,
) -> Callable[[], None]:
    """Training steps of a round, on batches of a sampler, with features that lie on the device."""
    torch.manual_seed(0)
    model = GraphSAGE(options.width, 128, 47, num_layers=len(options.fanouts)).to(device.device)
    optimizer = torch.optim.Adam(model.parameters())
    seeds = order[: options.batch_size * BATCHES]
    loader = NodeFlowLoader(
        sampler, seeds, options.batch_size, ndata={-1: ["label"]}, device=device.device
    )

    def run() -> None:
        for batch in loader:
            out = model(batch, held.index_select(0, batch.layers[0].parent_nid))
            loss = torch.nn.functional.cross_entropy(out, batch.outputs["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


if __name__ == "__main__":
    main()
