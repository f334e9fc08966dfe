"""A model of training on 4 to 256 machines: memory, traffic and time per rank, from counts and
stated parameters.

python benchmarks/cluster_model.py [--data debian] [--ranks 1 2 4 8 16 32 64 128 256] [--gbits 10
100] [--check]

Counts. The graph of ``--data``, with the reverse of every edge, is cut into as many parts as there
are ranks. Each rank draws its batches from the whole graph in this process, and what would travel
is counted: destinations asked of their owners, edges sent back, ids and rows of features, with the
headers of parcels, as without a halo. Draws depend on their keys alone, so these are the draws that
the ranks would make. ``--check`` prints the bytes beside those that 1, 2 and 4 processes sent.

Larger graphs. Assumptions:

- A graph of E edges has E / ``--degree`` nodes, and rows of ``--width`` float32; the parts are of
  equal size.
- No node is drawn twice in a batch, so seeds * (1 + f1) * (1 + f2) rows are read: an upper bound.
- Of the rows and draws, the share that travels is that counted in the graph of ``--data`` with the
  same method and number of ranks. For "random" cuts it is about (ranks - 1) / ranks in any graph.
  For METIS it is a guess, and a high one where the parts of that graph are small.
- Parts are renumbered, so that no table of owners is needed; ids take 4 bytes below 2**31 nodes or
  edges, else 8.
- A cache of the share ``--hot`` of the rows is counted in the memory, with 4 bytes per node of the
  graph for places. What it saves in traffic is not counted.

Time of a step:

- Compute is ``--compute-ms`` for 1,000 rows of input, in proportion to the rows. When left out it
  is measured: sampling, forward and backward pass and the update of a GraphSAGE 128 wide, one
  thread.
- There are two exchanges per flow and two for the features, as without a halo, each of two rounds
  in which a rank sends to all others (of one, in truth, where parcels are small). A round takes
  ``--latency-us``, and ``--message-us`` for each other rank. The bytes take their share of the
  bandwidth, which a rank has to itself in both directions. Copies into parcels and out of them are
  not counted.
- The mean of the gradients takes 2 * (ranks - 1) / ranks times their bytes, and 2 * log2(ranks)
  latencies.
- Draws made ahead overlap with the compute: the step takes the longer of the two, and the
  gradients.
- The network is the limit where it takes longer than the compute, on machines that compute
  ``--faster`` times as fast.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from distributed import show
from ranks import Data, Ranks

from nodeflow import NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow._peers.packed import pack
from nodeflow.distributed import GraphParts
from nodeflow.nn import GraphSAGE


@dataclass
class Traffic:
    """What a step of one rank sends and receives, all exchanges together, on average.

    Attributes:
        seeds: its seeds.
        rows: rows of features that it reads; ``travelled``: those of them that others own.
        sent: bytes that travel for it: its questions, and the answers to them. Over all ranks these
            are the bytes that are sent, and also those that are received.
        messages: parcels with something in them, likewise.
    """

    seeds: float = 0.0
    rows: float = 0.0
    travelled: float = 0.0
    sent: float = 0.0
    messages: float = 0.0


def parcel(*arrays: Any) -> int:
    """Bytes of a question or an answer."""
    return len(pack(arrays))


def count(loader: NodeFlowLoader, owner: Any, rank: int, width: int, steps: int | None) -> Traffic:
    """Count what the batches of a loader would fetch and send if nodes had these owners; means over
    the steps.
    """
    found = Traffic()
    number = 0
    for batch in loader.draws(0):
        if steps is not None and number == steps:
            break
        _add(found, batch, owner, rank, width)
        number += 1
    return Traffic(*(value / max(number, 1) for value in vars(found).values()))


def _add(found: Traffic, batch: NodeFlow, owner: Any, rank: int, width: int) -> None:
    # the columns of the draw: none
    nothing = np.zeros(0, np.int64)
    text = np.frombuffer(b"[false, []]", np.uint8)
    for flow, source, layer in zip(batch.flows, batch.layers[:-1], batch.layers[1:], strict=True):
        dst = layer.parent_nid.numpy()
        degrees = np.diff(flow.indptr.numpy()).astype(np.int32)
        src = source.parent_nid[flow.indices].numpy()
        eid = flow.parent_eid.numpy()
        weight = flow.weight.numpy()
        of_dst = owner[dst]
        of_edge = np.repeat(owner[dst], degrees)
        for r in np.unique(of_dst[of_dst != rank]):
            keys = np.zeros(3, np.uint64)
            edges = of_edge == r
            ids = src[edges].astype(np.int32), eid[edges].astype(np.int32)
            # number of the batch, flow and kinds, times
            facts = nothing, np.zeros(4, np.int64), np.zeros(0)
            found.sent += parcel(nothing, dst[of_dst == r], nothing, nothing, keys, *facts)
            found.sent += parcel(text, degrees[of_dst == r], *ids, weight[edges])
            found.messages += 2
    ids = batch.layers[0].parent_nid.numpy()
    found.seeds, found.rows = found.seeds + len(batch.seeds), found.rows + len(ids)
    for r in np.unique(owner[ids]):
        asked = np.sort(ids[owner[ids] == r])
        if r != rank:
            found.travelled += len(asked)
            found.sent += parcel(asked) + parcel(np.zeros((len(asked), width), np.float32))
            found.messages += 2


def counted(
    data: Data, ranks: int, method: str, options: argparse.Namespace, batch_size: int
) -> Traffic:
    """Return the mean traffic of some ranks, evenly chosen, whose seeds are those that they own."""
    parts = GraphParts.open(data.parts(ranks, method)) if ranks > 1 else None
    nodes = np.arange(data.graph.num_nodes)
    owner = np.zeros(len(nodes), np.int64) if parts is None else parts.owners(nodes)
    found = []
    seeds = torch.from_numpy(np.load(data.file("train")))
    for rank in sorted({int(r) for r in np.linspace(0, ranks - 1, min(ranks, options.counted))}):
        loader = NodeFlowLoader(
            NeighborSampler(data.graph, options.fanouts), seeds, batch_size, shuffle=True, rank=rank, world_size=ranks,
            share=owner,
        )  # fmt: skip
        found.append(vars(count(loader, owner, rank, options.width, options.steps)))
    return Traffic(**{name: statistics.mean(one[name] for one in found) for name in found[0]})


def measured(
    data: Data, ranks: Ranks, options: argparse.Namespace, method: str, batch_size: int
) -> Traffic:
    """Return the mean traffic of processes that really sample."""
    found = ranks.ask(
        "communication", folder=data.parts(ranks.size, method), seeds=data.file("train"), batch_size=batch_size,
        fanouts=options.fanouts, share="owned", steps=options.steps, halo=0,
    )  # fmt: skip
    steps = len(found) * found[0]["steps"]
    names = {
        "rows": "fetched",
        "travelled": "travelled",
        "sent": "bytes_sent",
        "messages": "messages",
    }
    seeds = sum(sum(one["seeds"]) for one in found) / steps
    return Traffic(
        seeds, **{name: sum(one[key] for one in found) / steps for name, key in names.items()}
    )


def compute_ms(data: Data, options: argparse.Namespace) -> float:
    """Milliseconds of a step for 1,000 rows of input, measured in this process: sampling, both
    passes, the update.
    """
    torch.set_num_threads(1)
    graph = data.graph
    seeds = torch.from_numpy(np.load(data.file("train")))
    loader = NodeFlowLoader(
        NeighborSampler(graph, options.fanouts), seeds, options.batch_size, ndata={0: ["feat"]}
    )
    model = GraphSAGE(options.width, 128, data.classes, num_layers=len(options.fanouts))
    optimizer = torch.optim.Adam(model.parameters())
    times = []
    for _ in range(2):  # the first epoch is for caches and compilation
        times = []
        begun = perf_counter()
        for batch in loader:
            model(batch, batch.layers[0].data["feat"]).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            times.append((perf_counter() - begun) * 1e6 / batch.layers[0].num_nodes)
            begun = perf_counter()
    return statistics.median(times)


@dataclass
class Step:
    """The time of a step, in milliseconds: of computation, of exchanges of draws and rows, of
    gradients.
    """

    compute: float
    exchanges: float
    gradients: float

    @property
    def ahead(self) -> float:
        """Where draws are made ahead."""
        return max(self.compute, self.exchanges) + self.gradients

    @property
    def limited(self) -> bool:
        """Whether the network takes longer than the computation."""
        return self.exchanges + self.gradients > self.compute


def step_of(
    traffic: Traffic, ranks: int, gbits: float, per_thousand: float, options: argparse.Namespace
) -> Step:
    """Return the time of a step with some traffic."""
    if ranks == 1:
        return Step(traffic.rows / 1e3 * per_thousand, 0.0, 0.0)
    rounds = 2 * (2 * len(options.fanouts) + 2)
    waits = rounds * (options.latency_us + (ranks - 1) * options.message_us) / 1e3
    carried = 8e3 / (gbits * 1e9)  # milliseconds of a byte
    gradients = 2 * (ranks - 1) / ranks * options.model_mb * 1e6 * carried
    gradients += 2 * math.log2(ranks) * options.latency_us / 1e3
    return Step(traffic.rows / 1e3 * per_thousand, waits + traffic.sent * carried, gradients)


def memory_gb(edges: float, ranks: int, options: argparse.Namespace) -> tuple[float, float]:
    """GB of a rank: of its part, and of the rows that every rank keeps."""
    nodes = edges / options.degree
    ids = (4 if nodes < 2**31 else 8) + (4 if edges < 2**31 else 8)
    row = 4 * options.width
    # sources and edge ids; indptr, masters, labels, features
    part = edges * ids + nodes * (8 + 8 + 8 + row)
    hot = options.hot * nodes * (row + 8) + 4 * nodes if options.hot else 0.0
    return part / ranks / 1e9, hot / 1e9


def bound(traffic: Traffic, options: argparse.Namespace) -> Traffic:
    """Return the traffic where no node is drawn twice, of which the same share travels as of the
    rows counted.
    """
    nodes = options.batch_size
    destinations = 0
    share = traffic.travelled / traffic.rows
    for fanout in reversed(options.fanouts):
        destinations = destinations + nodes
        nodes = nodes * (1 + fanout)
    edges = nodes - options.batch_size  # an edge for every node that was drawn
    sent = share * (nodes * (8 + 4 * options.width) + edges * (4 + 4 + 4) + destinations * (8 + 4))
    return Traffic(options.batch_size, nodes, share * nodes, sent, traffic.messages)


def print_check(data: Data, options: argparse.Namespace, place: Path) -> None:
    rows = []
    for size in (1, 2, 4):
        group = Ranks(size, place)
        try:
            for method in options.methods:
                batch_size = options.batch_size // size
                model = counted(data, size, method, options, batch_size)
                real = measured(data, group, options, method, batch_size)
                apart = 100 * abs(model.sent - real.sent) / max(real.sent, 1)
                rows.append((
                    size, method, f"{model.travelled:,.1f}", f"{real.travelled:,.1f}", f"{model.sent:,.0f}",
                    f"{real.sent:,.0f}", f"{apart:.2f}", f"{model.messages:.2f}", f"{real.messages:.2f}",
                ))  # fmt: skip
        finally:
            group.close()
    show(("ranks", "method", "rows, model", "measured", "bytes, model", "measured", "% apart", "messages, model",
          "measured"), rows)  # fmt: skip
    print(f"\nper step and rank; {options.batch_size} seeds per step of all ranks, shares owned")


def print_traffic(
    found: dict[tuple[str, int], Traffic],
    per_thousand: float,
    options: argparse.Namespace,
    name: str,
    *,
    rows: str,
) -> None:
    lines = []
    for (method, ranks), traffic in found.items():
        cells = []
        for gbits in options.gbits:
            step = step_of(traffic, ranks, gbits, per_thousand, options)
            network = step.exchanges + step.gradients
            cells += [
                f"{network:.1f}",
                f"{step.ahead:.1f}",
                f"{step.compute / network:.1f}" if network else "",
            ]
        compute = step_of(traffic, ranks, 1.0, per_thousand, options).compute
        lines.append((
            method, ranks, f"{traffic.seeds:,.0f}", f"{traffic.rows:,.0f}",
            f"{100 * traffic.travelled / traffic.rows:.0f}", f"{traffic.sent / 1e6:.2f}", f"{traffic.messages:.0f}",
            f"{compute:.1f}", *cells,
        ))  # fmt: skip
    titles = ["method", "ranks", "seeds", "rows", "% that travel", "MB", "messages", "compute, ms"]
    for gbits in options.gbits:
        titles += [f"network, ms at {gbits:g} Gbit/s", "step, ms", "times shorter than compute"]
    print(f"\n{name}, {rows}; per step and rank, at most {options.batch_size} seeds per rank")
    show(titles, lines)


def print_limits(
    found: dict[tuple[str, int], Traffic], per_thousand: float, options: argparse.Namespace
) -> None:
    lines = []
    for faster in options.faster:
        for method in options.methods:
            row: list[object] = [f"{faster:g}", method]
            for gbits in options.gbits:
                traffic = {ranks: t for (name, ranks), t in found.items() if name == method}
                steps = {
                    r: step_of(t, r, gbits, per_thousand / faster, options)
                    for r, t in traffic.items()
                }
                row.append(
                    min((ranks for ranks, step in steps.items() if step.limited), default="none")
                )
            lines.append(row)
    print(f"\nthe first of {options.ranks} ranks where the network is the limit, a huge graph")
    show(
        ["compute, times faster", "method", *(f"{gbits:g} Gbit/s" for gbits in options.gbits)],
        lines,
    )


def print_memory(options: argparse.Namespace) -> None:
    lines = []
    for edges in options.edges:
        for ranks in (r for r in options.ranks if r >= 4):
            part, hot = memory_gb(edges, ranks, options)
            lines.append(
                (
                    f"{edges:.0e}",
                    f"{edges / options.degree:.0e}",
                    ranks,
                    f"{part:,.1f}",
                    f"{hot:,.1f}",
                )
            )
    show(
        ("edges", "nodes", "ranks", "GB of the part", f"GB of {100 * options.hot:g} % hot rows"),
        lines,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="debian", metavar="FOLDER", help='a folder, or "debian"')
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 4, 16, 64, 256])
    parser.add_argument("--methods", nargs="+", default=["metis", "random"])
    parser.add_argument(
        "--counted", type=int, default=4, help="ranks of which the traffic is counted"
    )
    parser.add_argument("--steps", type=int, default=10, help="steps that are counted, at most")
    parser.add_argument("--fanouts", nargs="+", type=int, default=[10, 10])
    parser.add_argument(
        "--batch-size", type=int, default=1024, help="seeds of a rank (with --check of all)"
    )
    parser.add_argument("--width", type=int, default=128, help="columns of features")
    parser.add_argument(
        "--compute-ms", type=float, help="for 1,000 rows of input; measured when left out"
    )
    parser.add_argument(
        "--faster",
        nargs="+",
        type=float,
        default=[1.0, 10.0, 100.0],
        help="compute of other machines",
    )
    parser.add_argument("--model-mb", type=float, default=0.2, help="size of the gradients")
    parser.add_argument(
        "--gbits", nargs="+", type=float, default=[10.0, 100.0], help="bandwidth of a rank"
    )
    parser.add_argument("--latency-us", type=float, default=20.0, help="of a message")
    parser.add_argument(
        "--message-us", type=float, default=5.0, help="of the processor, for each further message"
    )
    parser.add_argument(
        "--edges", nargs="+", type=float, default=[1e9, 1e10, 1e11], help="of larger graphs"
    )
    parser.add_argument(
        "--degree", type=float, default=20.0, help="edges per node of larger graphs"
    )
    parser.add_argument(
        "--hot", type=float, default=0.1, help="share of the rows that every rank keeps"
    )
    parser.add_argument(
        "--check", action="store_true", help="only compare with 1, 2 and 4 processes"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data = Data(options.data, options.width, Path(place))
        print(f"{data.dataset.name}: {data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} "
              f"edges, rows of {options.width} float32, fanouts "
              f"{options.fanouts}", flush=True)  # fmt: skip
        if options.check:
            print_check(data, options, Path(place))
            return
        per_thousand = (
            compute_ms(data, options) if options.compute_ms is None else options.compute_ms
        )
        print(f"compute {per_thousand:.2f} ms for 1,000 rows, latency {options.latency_us:g} us, "
              f"{options.message_us:g} us per message, gradients {options.model_mb:g} MB")  # fmt: skip
        found = {(method, ranks): counted(data, ranks, method, options, options.batch_size)
                 for method in options.methods for ranks in options.ranks}  # fmt: skip
        print_traffic(found, per_thousand, options, data.dataset.name, rows="counted")
        largest = {key: bound(traffic, options) for key, traffic in found.items()}
        print_traffic(largest, per_thousand, options, "a huge graph", rows="no node drawn twice")
        print_limits(largest, per_thousand, options)
        print_memory(options)


if __name__ == "__main__":
    main()
