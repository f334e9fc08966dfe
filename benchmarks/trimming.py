"""What it saves that a batch computes only the rows that later layers need.

python benchmarks/trimming.py [--data FOLDER] [--graph coauthor_physics] [--depths 1 2 3 4 5]
[--rounds 5] [--rmat 20]

A batch of seeds is drawn with fanout 10 in every flow, every node once (``reuse=True``), so that it
is also one graph: the union of its layers, as PyTorch Geometric hands out. A GraphSAGE-mean model
(100-64-...-64-47) runs on the NodeFlow, whose layers shrink towards the seeds, and, with the same
weights, on as many layers of the whole union, where every node is computed in every layer (as there
without ``trim_to_layer``). The outputs of the seeds are the same, which is checked. Prints rows,
edges, floating-point operations and times of forward and backward pass, taken in turn.

FOLDER has a folder per graph with a scipy matrix ``adjacency.npz``, entry (i, j) for the edge i ->
j.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import scipy.sparse
import torch
from rmat import ensure

sys.path.insert(0, str(Path(__file__).resolve().parent / "workers"))
from work import load

from nodeflow import Graph, NeighborSampler, NodeFlow, create_node_flow, flow_from_csr
from nodeflow.convert import from_scipy
from nodeflow.nn import GraphSAGE, flop_counter

FANOUT = 10
WIDTH = 100
HIDDEN = 64
CLASSES = 47


def untrimmed(batch: NodeFlow) -> NodeFlow:
    """All nodes of the batch in every layer, with all its edges: those that its first flow has."""
    flow = batch.flows[0]
    nodes = batch.layers[0].parent_nid
    indptr = torch.cat([flow.indptr, flow.indptr[-1:].expand(flow.num_src - flow.num_dst)])
    same = flow_from_csr(indptr, flow.indices, num_src=flow.num_src)
    return create_node_flow([same] * batch.num_flows, [nodes] * batch.num_layers)


def timed(
    model: GraphSAGE, batch: NodeFlow, h: torch.Tensor, seeds: int
) -> tuple[float, torch.Tensor]:
    start = time.perf_counter()
    out = model(batch, h)[:seeds]
    out.sum().backward()
    seconds = time.perf_counter() - start
    model.zero_grad()
    return seconds, out.detach()


def row(graph: Graph, depth: int, size: int, rounds: int) -> str:
    generator = torch.Generator().manual_seed(0)
    seeds = torch.randperm(graph.num_nodes, generator=generator)[:size]
    batch = NeighborSampler(graph, [FANOUT] * depth, reuse=True)(seeds)
    model = GraphSAGE(WIDTH, HIDDEN, CLASSES, depth)
    h = torch.randn(batch.layer_sizes[0], WIDTH, generator=generator)
    batches = [batch, untrimmed(batch)]
    flops = []
    times = [[], []]
    for which in batches:
        with flop_counter(display=False) as counter:
            timed(model, which, h, size)
        flops.append(counter.get_total_flops())
    for _ in range(rounds + 1):
        outs = []
        for found, which in zip(times, batches, strict=True):
            seconds, out = timed(model, which, h, size)
            found.append(seconds)
            outs.append(out)
        torch.testing.assert_close(*outs, rtol=1e-3, atol=1e-3)
    milliseconds = [1e3 * statistics.median(found[1:]) for found in times]
    counts = [
        [f"{sum(which.layer_sizes[1:]):,}" for which in batches],
        [f"{sum(which.flow_sizes):,}" for which in batches],
        [f"{number / 1e9:.2f}" for number in flops],
        [f"{number:.1f}" for number in milliseconds],
    ]
    ratios = [
        sum(batches[1].layer_sizes[1:]) / sum(batch.layer_sizes[1:]),
        sum(batches[1].flow_sizes) / sum(batch.flow_sizes),
        flops[1] / flops[0],
        milliseconds[1] / milliseconds[0],
    ]
    cells = [f"{one} / {other} = {r:.1f}" for (other, one), r in zip(counts, ratios, strict=True)]
    return f"| {depth} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent / "data")
    parser.add_argument("--graph", help="name of a folder below --data; else RMAT")
    parser.add_argument("--rmat", type=int, default=20, help="logarithm of the number of nodes")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--seeds", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.graph is None:
        graph = Graph(*load(str(ensure(options.data, options.rmat, 16))))
    else:
        graph = from_scipy(scipy.sparse.load_npz(options.data / options.graph / "adjacency.npz"))
    print(
        f"{options.graph or 'RMAT'}: {graph}, {options.seeds} seeds, medians of {options.rounds} "
        "in turn\n"
    )
    print(
        "| layers | rows computed: union / NodeFlow | edges | GFLOP | ms |\n|---|---|---|---|---|"
    )
    for depth in options.depths:
        print(row(graph, depth, options.seeds, options.rounds), flush=True)


if __name__ == "__main__":
    main()
