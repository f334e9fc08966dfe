"""Whether ``order="auto"`` of a convolution picks the faster order: both are timed, on the flows of
one batch.

python benchmarks/order.py [--flow 0|1|2|whole] [--widths 16 64 256 512] [--mode train] [--rounds 3]
[--conv sage]

Draws the batch of ``variants.py`` (RMAT graph; fanouts 15, 10, 5 from 1,024 seeds) and computes one
convolution on one flow, in turn with either order, for all pairs of widths in and out. Modes:
"train" (forward and backward), "inputs" (the same, but the rows are inputs that need no gradient),
"infer" (forward).
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import torch
from rmat import ensure

sys.path.insert(0, str(Path(__file__).resolve().parent / "workers"))
from work import Work, load, seeds

from nodeflow import Graph, NeighborSampler, create_full_node_flow
from nodeflow.flow import Flow
from nodeflow.nn import GraphConv, LinearConv, PropagationConv, SAGEConv

CONVS = {
    "sage": lambda i, o: SAGEConv(i, o),
    "gcn": lambda i, o: GraphConv(i, o),
    "both": lambda i, o: GraphConv(i, o, norm="both"),
    "propagation": lambda i, o: PropagationConv(i, o),
}


def timed(conv: LinearConv, flow: Flow, h: torch.Tensor, order: str, backward: bool) -> float:
    conv.order = order
    start = time.perf_counter()
    with torch.set_grad_enabled(backward):
        out = conv(flow, h)
        if backward:
            out.backward(torch.ones_like(out))
    seconds = time.perf_counter() - start
    h.grad = None
    conv.zero_grad()
    return seconds


def chosen_flow(options: argparse.Namespace) -> Flow:
    if options.flow == "whole":
        graph = Graph(*load(str(ensure(options.data, options.scale - 4, 16))))
        return create_full_node_flow(graph, 1).flows[0]
    graph = Graph(*load(str(ensure(options.data, options.scale, 16))))
    work = Work()
    batch = NeighborSampler(graph, work.fanouts_from_seeds[::-1])(
        seeds(work, graph.num_nodes)[: work.batch_size]
    )
    return batch.flows[int(options.flow)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent / "data")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument(
        "--flow",
        default="0",
        help="number of a flow of the batch, or 'whole': a smaller graph, all of it",
    )
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 64, 256, 512])
    parser.add_argument("--mode", choices=["train", "inputs", "infer"], default="train")
    parser.add_argument("--conv", choices=list(CONVS), default="sage")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="least time for a pair of widths"
    )
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    flow = chosen_flow(options)
    backward = options.mode != "infer"
    # memory pools
    timed(SAGEConv(512, 64), flow, torch.randn(flow.num_src, 512), "aggregate", True)
    print(
        f"{flow}, {options.conv}, {options.mode}, {options.threads} threads, medians of at least "
        f"{options.rounds}\n"
    )
    print(
        "| in | out | aggregate ms | transform ms | faster | auto | lost "
        "|\n|---|---|---|---|---|---|---|"
    )
    cases = []
    for wide in options.widths:
        for narrow in options.widths:
            conv = CONVS[options.conv](wide, narrow)
            h = torch.randn(flow.num_src, wide, requires_grad=options.mode == "train")
            with torch.set_grad_enabled(backward):
                chosen = conv.order_for(flow, h)
            times: dict[str, list[float]] = {"aggregate": [], "transform": []}
            # the first round is left out, and cheap cases get more
            until = time.perf_counter() + options.seconds
            while len(times["transform"]) <= options.rounds or time.perf_counter() < until:
                for order, found in times.items():
                    found.append(timed(conv, flow, h, order, backward))
            middle = {order: 1e3 * statistics.median(found[1:]) for order, found in times.items()}
            best = min(middle, key=middle.__getitem__)
            lost = middle[chosen] / middle[best] - 1
            cases.append(lost)
            print(f"| {wide} | {narrow} | {middle['aggregate']:.2f} | {middle['transform']:.2f} | "
                  f"{best} | {chosen} | {lost:.0%} |")  # fmt: skip
    mean = math.exp(statistics.mean(math.log1p(lost) for lost in cases)) - 1
    right = sum(lost == 0 for lost in cases)
    print(
        f"\nauto was right in {right} of {len(cases)}; it lost {mean:.1%} in the mean, and "
        f"{max(cases):.0%} at most"
    )


if __name__ == "__main__":
    main()
