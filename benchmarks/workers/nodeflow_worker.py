"""nodeflow on the work of the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from work import BATCH_SIZE, CLASSES, FANOUTS_FROM_SEEDS, HIDDEN, WIDTH, data, load, seeds, serve

from nodeflow import BernoulliSampler, Graph, LaborSampler, NeighborSampler, NodeFlowLoader
from nodeflow.nn import GraphSAGE

SAMPLERS: dict[str, Callable[[Graph, Any], Any]] = {
    "uniform": NeighborSampler,
    "reuse": lambda graph, fanouts: NeighborSampler(graph, fanouts, reuse=True),
    "replace": lambda graph, fanouts: NeighborSampler(graph, fanouts, replace=True),
    "weighted": lambda graph, fanouts: NeighborSampler(graph, fanouts, prob="w"),
    "weighted, replace": lambda graph, fanouts: NeighborSampler(graph, fanouts, prob="w", replace=True),
    "Bernoulli": BernoulliSampler,
    "LABOR-0": LaborSampler,
    "LABOR-0, sequential": lambda graph, fanouts: LaborSampler(graph, fanouts, method="sequential"),
    "LABOR-1": lambda graph, fanouts: LaborSampler(graph, fanouts, iterations=1),
}


def make(job: str, folder: str) -> Callable[[int], dict[str, Any]]:
    graph = Graph(*load(folder))
    fanouts = FANOUTS_FROM_SEEDS[::-1]  # ours are in flow order, the seeds' last
    batches = seeds(graph.num_nodes)
    if job in ("sample", "labor"):
        variant = sys.argv[4] if len(sys.argv) > 4 else "uniform"
        graph.edata["w"] = np.random.default_rng(2).random(graph.num_edges, np.float32)
        sampler = SAMPLERS[variant](graph, fanouts)

        def sample(number: int) -> dict[str, Any]:
            edges = 0
            for i, part in enumerate(batches.split(BATCH_SIZE)):
                sizes = sampler(part, epoch=number, batch=i).flow_sizes
                edges += sizes[0] if variant == "reuse" else sum(sizes)  # reused edges were drawn once
            return {"edges": edges}

        return sample
    graph.ndata["x"], graph.ndata["y"] = data(graph.num_nodes)
    threads = torch.get_num_threads()  # sampling has them all in turn with the rest of the step
    ahead = {"num_workers": threads, "prefetch": 0} if threads > 1 else {}
    columns = {0: ["x"], -1: ["y"]}
    loader = NodeFlowLoader(NeighborSampler(graph, fanouts), batches, BATCH_SIZE, ndata=columns, **ahead)
    model = GraphSAGE(WIDTH, HIDDEN, CLASSES, num_layers=3)
    optimizer = torch.optim.Adam(model.parameters())

    def step(_: int) -> dict[str, Any]:
        edges = 0
        for batch in loader:
            out = model(batch, batch.ldata[0]["x"])
            loss = torch.nn.functional.cross_entropy(out, batch.ldata[-1]["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            edges += sum(batch.flow_sizes)
        return {"edges": edges}

    return step


if __name__ == "__main__":
    serve(make)
