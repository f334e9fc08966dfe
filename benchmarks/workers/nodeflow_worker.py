"""nodeflow on the work of the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from work import BATCH_SIZE, CLASSES, FANOUTS_FROM_SEEDS, HIDDEN, WIDTH, data, load, seeds, serve

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow.nn import GraphSAGE


def make(job: str, folder: str) -> Callable[[int], dict[str, Any]]:
    graph = Graph(*load(folder))
    fanouts = FANOUTS_FROM_SEEDS[::-1]  # ours are in flow order, the seeds' last
    batches = seeds(graph.num_nodes)
    if job == "sample":
        options = {"reuse": "--reuse" in sys.argv, "replace": "--replace" in sys.argv}
        sampler = NeighborSampler(graph, fanouts, **options)

        def sample(number: int) -> dict[str, Any]:
            edges = 0
            for i, part in enumerate(batches.split(BATCH_SIZE)):
                sizes = sampler(part, epoch=number, batch=i).flow_sizes
                edges += sizes[0] if sampler.reuse else sum(sizes)  # reused edges were drawn once
            return {"edges": edges}

        return sample
    graph.ndata["x"], graph.ndata["y"] = data(graph.num_nodes)
    workers = torch.get_num_threads() - 1  # samples ahead beside the step where there is a second thread
    columns = {0: ["x"], -1: ["y"]}
    loader = NodeFlowLoader(NeighborSampler(graph, fanouts), batches, BATCH_SIZE, num_workers=workers, ndata=columns)
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
