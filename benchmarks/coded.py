"""Time training steps on features as float32, as int8 rows, and as coded int8 rows, in turn; a
table with ratios.

python benchmarks/coded.py [--widths 16 32 64 100 128 256] [--models sage gcn gat] [--rounds 9]
[--threads 1]

The step is that of ``compare.py``: sampling, features, forward, backward and Adam, of a model with
three layers of width 128 and 47 outputs on the RMAT graph, 1,024 seeds, 15, 10 and 5 neighbours.
"int8" is ``storage.narrow`` of the features, "coded" is ``storage.CodedRows`` of these. "input" is
what the input layer takes alone, of batches that are drawn: the rows, and their means beside a
node's own. Times are processor time, medians in ms per batch; ratios are int8 over coded.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rmat import ensure

from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader, nn, storage

HERE = Path(__file__).resolve().parent
COLUMNS = ("float32", "int8", "coded")
MODELS = {"sage": nn.GraphSAGE, "gcn": nn.GCN, "gat": nn.GAT}
BATCHES = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--widths", type=int, nargs="+", default=[16, 32, 64, 100, 128, 256], help="numbers per row"
    )
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["sage"])
    parser.add_argument(
        "--fanouts", type=int, nargs="+", default=[5, 10, 15], help="in flow order, the seeds' last"
    )
    parser.add_argument(
        "--rounds", type=int, default=9, help=f"rounds of {BATCHES} batches in turn"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scale", type=int, default=19, help="2**scale nodes")
    parser.add_argument(
        "--edge-factor", type=int, default=16, help="about twice as many edges per node"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where graphs are kept")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = ensure(options.data, options.scale, options.edge_factor)
    graph = Graph(
        *(torch.from_numpy(np.load(folder / f"{part}.npy")) for part in ("indptr", "indices"))
    )
    make = torch.Generator().manual_seed(0)
    graph.ndata["label"] = torch.randint(0, 47, (graph.num_nodes,), generator=make)
    print(
        f"{options.threads} thread(s), RMAT scale {options.scale}, fanouts {options.fanouts}, "
        f"{options.rounds} rounds "
        f"of {BATCHES} batches; {platform.machine()}, {os.cpu_count()} cores, "
        f"{torch.backends.cpu.get_cpu_capability()}\n"
    )
    print(
        "| width | model | step: "
        + " | ".join(COLUMNS)
        + " | ratio | input: "
        + " | ".join(COLUMNS)
        + " | ratio |"
    )
    print("|---" * 10 + "|")
    for width in options.widths:
        x = torch.randn(graph.num_nodes, width, generator=make)
        narrow = storage.narrow(x)
        graph.ndata.update(dict(zip(COLUMNS, (x, narrow, storage.CodedRows(narrow)), strict=True)))
        for model in options.models:
            cells = []
            for job in (steps, inputs):
                work = {name: job(graph, name, MODELS[model], options.fanouts) for name in COLUMNS}
                times: dict[str, list[float]] = {name: [] for name in work}
                for turn in range(options.rounds + 1):
                    for name, run in work.items():
                        start = time.process_time()
                        run()
                        if turn:
                            times[name].append(time.process_time() - start)
                median = {name: 1e3 / BATCHES * statistics.median(of) for name, of in times.items()}
                cells += [f"{ms:.1f}" for ms in median.values()] + [
                    f"{median['int8'] / median['coded']:.2f}"
                ]
            print(f"| {width} | {model} | " + " | ".join(cells) + " |", flush=True)


def steps(
    graph: Graph, column: str, model: Callable[..., nn.FlowModel], fanouts: list[int]
) -> Callable[[], None]:
    """Training steps of a round, on batches that are drawn in it."""
    torch.manual_seed(0)
    network = model(graph.ndata[column].shape[1], 128, 47, len(fanouts))
    optimizer = torch.optim.Adam(network.parameters())
    columns = {0: [column], -1: ["label"]}
    loader = NodeFlowLoader(NeighborSampler(graph, fanouts), seeds(graph), 1024, ndata=columns)

    def run() -> None:
        for batch in loader:
            out = network(batch, batch.inputs[column])
            loss = torch.nn.functional.cross_entropy(out, batch.outputs["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def inputs(graph: Graph, column: str, _: object, fanouts: list[int]) -> Callable[[], None]:
    """The rows of the input layer of a round, and their means beside a node's own, of batches that
    are drawn.
    """
    sampler = NeighborSampler(graph, fanouts)
    batches: list[NodeFlow] = [
        sampler(part, batch_number=i) for i, part in enumerate(seeds(graph).split(1024))
    ]

    def run() -> None:
        for batch in batches:
            batch.copy_from_parent({0: [column]}, None)
            batch.flows[0].aggregate_beside_own(batch.inputs[column], "mean")
            del batch.inputs[column]

    return run


def seeds(graph: Graph) -> torch.Tensor:
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    return torch.from_numpy(order[: 1024 * BATCHES])


if __name__ == "__main__":
    main()
