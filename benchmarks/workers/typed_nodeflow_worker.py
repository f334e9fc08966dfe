"""nodeflow on the work of ``typed.py``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from typed_work import CLASSES, JOBS, SEED_TIME, WIDTH, Ids, make_edges, make_times, serve, sizes_of

from nodeflow import Graph, NeighborSampler, NodeFlow, TemporalNeighborSampler, __version__
from nodeflow.nn import SAGEConv, TypedConv

torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self, graph: Graph, hidden: int = 64) -> None:
        super().__init__()
        relations = list(graph.schema.relations)
        widths = [(WIDTH, hidden), (hidden, hidden)]
        self.convs = torch.nn.ModuleList(
            TypedConv({r: SAGEConv(i, o) for r in relations}, "sum") for i, o in widths
        )
        self.head = torch.nn.Linear(hidden, CLASSES)

    def forward(self, batch: NodeFlow, h: torch.Tensor) -> torch.Tensor:
        for conv, flow in zip(self.convs, batch.flows, strict=True):
            h = conv(flow, h).relu()
        return self.head(h)


def prepare(scale: float) -> Callable[[str, Ids], int]:
    sizes = sizes_of(scale)
    nodes = {kind: {"time": torch.from_numpy(times)} for kind, times in make_times(scale).items()}
    graph = Graph.typed(nodes, make_edges(scale))
    papers = graph.nodes["paper"]
    samplers = {
        "static": NeighborSampler(graph, JOBS["static"][0]),
        "static, reuse": NeighborSampler(graph, JOBS["static"][0], reuse=True),
        "temporal": TemporalNeighborSampler(graph, JOBS["temporal"][0], reuse=True),
    }
    draw = np.random.default_rng(2)
    x = torch.from_numpy(draw.standard_normal((graph.num_nodes, WIDTH), np.float32))
    y = torch.from_numpy(draw.integers(0, CLASSES, sizes["paper"]))
    net = Net(graph)
    optimizer = torch.optim.Adam(net.parameters())
    epoch = 0

    def run(job: str, seeds: Ids) -> int:
        nonlocal epoch
        epoch += 1
        kind, _, views = job.partition(" + ")
        ids = papers.to_graph(seeds)
        times = {"times": np.full(len(seeds), SEED_TIME)} if kind == "temporal" else {}
        batch = samplers["static, reuse" if kind == "step" else kind](ids, epoch=epoch, **times)
        if kind == "step":
            loss = torch.nn.functional.cross_entropy(
                net(batch, x[batch.layers[0].parent_nid]), y[seeds]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if views:
            for layer in batch.layers:
                for name in graph.schema.nodes:
                    layer.of(name).parent_nid  # noqa: B018  it is made when it is read
            for flow in batch.flows:
                for relation in graph.schema.relations:
                    flow.of(relation).indices  # noqa: B018
        return (
            batch.flows[0].num_edges
            if "reuse" in kind or kind in ("temporal", "step")
            else sum(batch.flow_sizes)
        )

    return run


if __name__ == "__main__":
    serve(prepare, f"nodeflow {__version__}")
