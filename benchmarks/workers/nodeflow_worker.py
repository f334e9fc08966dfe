"""nodeflow on the work of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from work import Work, data, load, seeds, serve, wait_for

from nodeflow import (
    BernoulliSampler,
    Graph,
    LaborSampler,
    NeighborSampler,
    NodeFlowLoader,
    __version__,
    storage,
)
from nodeflow.nn import GraphSAGE

SAMPLERS: dict[str, Callable[[Graph, Any], Any]] = {
    "uniform": NeighborSampler,
    "reuse": lambda graph, fanouts: NeighborSampler(graph, fanouts, reuse=True),
    "replace": lambda graph, fanouts: NeighborSampler(graph, fanouts, replace=True),
    "weighted": lambda graph, fanouts: NeighborSampler(graph, fanouts, prob="w"),
    "weighted, replace": lambda graph, fanouts: NeighborSampler(
        graph, fanouts, prob="w", replace=True
    ),
    "Bernoulli": BernoulliSampler,
    "LABOR-0": LaborSampler,
    "LABOR-0, sequential": lambda graph, fanouts: LaborSampler(graph, fanouts, method="sequential"),
    "LABOR-1": lambda graph, fanouts: LaborSampler(graph, fanouts, iterations=1),
}


def prepare(folder: str) -> Callable[[Work], Callable[[int], dict[str, Any]]]:
    graph = Graph(*load(folder))
    graph.edata["w"] = np.random.default_rng(2).random(graph.num_edges, np.float32)
    jobs = {"step": step, "floor": floor, "gather": gather, "stream": stream}
    return lambda work: jobs.get(work.job, sample)(graph, work)


def sample(graph: Graph, work: Work) -> Callable[[int], dict[str, Any]]:
    # fanouts of ours are in flow order, the seeds' last
    sampler = SAMPLERS[work.variant](graph, work.fanouts_from_seeds[::-1])
    if work.device:
        sampler = sampler.in_torch(work.device)
    batches = seeds(work, graph.num_nodes)

    def run(number: int) -> dict[str, Any]:
        edges = 0
        for i, part in enumerate(batches.split(work.batch_size)):
            sizes = sampler(part, epoch=number, batch_number=i).flow_sizes
            # reused edges were drawn once
            edges += sizes[0] if work.variant == "reuse" else sum(sizes)
        wait_for(work.device)
        return {"edges": edges}

    return run


def gather(graph: Graph, work: Work) -> Callable[[int], dict[str, Any]]:
    """The reads of drawn batches alone: where rows begin and end, and the neighbours, into memory
    that is there.
    """
    sampler = SAMPLERS[work.variant](graph, work.fanouts_from_seeds[::-1])
    flows = [
        flow
        for part in seeds(work, graph.num_nodes).split(work.batch_size)
        for flow in sampler(part).flows
    ]
    rows = [flow.dst_layer.parent_nid for flow in flows]
    places = [flow.parent_eid for flow in flows]
    indptr = torch.from_numpy(np.array(graph.indptr))
    indices = torch.from_numpy(np.array(graph.indices))
    bounds = torch.empty(2, max(map(len, rows)), dtype=indptr.dtype)
    neighbours = torch.empty(max(map(len, places)), dtype=indices.dtype)

    def run(_: int) -> dict[str, Any]:
        for row, place in zip(rows, places, strict=True):
            torch.index_select(indptr, 0, row, out=bounds[0, : len(row)])
            torch.index_select(indptr[1:], 0, row, out=bounds[1, : len(row)])
            torch.index_select(indices, 0, place, out=neighbours[: len(place)])
        return {"edges": sum(map(len, places))}

    return run


def stream(graph: Graph, work: Work) -> Callable[[int], dict[str, Any]]:
    """As many neighbours as LABOR looks at, which are all those of a layer's nodes, read in the
    order of memory.
    """
    sampler = SAMPLERS[work.variant](graph, work.fanouts_from_seeds[::-1])
    batches = [sampler(part) for part in seeds(work, graph.num_nodes).split(work.batch_size)]
    rows = torch.cat(
        [flow.dst_layer.parent_nid for batch in batches for flow in batch.flows]
    ).numpy()
    indices = torch.from_numpy(np.array(graph.indices))
    times, rest = divmod(int(np.diff(graph.indptr)[rows].sum()), len(indices))
    drawn = sum(sum(batch.flow_sizes) for batch in batches)

    def run(_: int) -> dict[str, Any]:
        for size in (*[len(indices)] * times, rest):
            indices[:size].max() if size else None
        return {"edges": drawn}

    return run


def step(graph: Graph, work: Work) -> Callable[[int], dict[str, Any]]:
    low = work.variant.startswith("bf16")
    graph.ndata["x"], graph.ndata["y"] = data(work, graph.num_nodes)
    if work.variant == "bf16, also features":
        graph.ndata["x"] = graph.ndata["x"].bfloat16()
    if work.variant == "int8":
        graph.ndata["x"] = storage.CodedRows(storage.narrow(graph.ndata["x"], "int8"))
    threads = torch.get_num_threads()  # sampling has them all in turn with the rest of the step
    ahead = {"num_workers": threads, "prefetch": 0} if threads > 1 else {}
    sampler = NeighborSampler(graph, work.fanouts_from_seeds[::-1])
    batches = seeds(work, graph.num_nodes)
    loader = NodeFlowLoader(sampler, batches, work.batch_size, ndata={0: ["x"], -1: ["y"]}, **ahead)
    model = GraphSAGE(
        work.width, work.hidden, work.classes, num_layers=len(work.widths), dropout=work.dropout
    )
    # one pass over each weight with bf16, as nodeflow train has it; else as torch's default
    optimizer = torch.optim.Adam(model.parameters(), fused=True if low else None)

    def run(_: int) -> dict[str, Any]:
        edges = 0
        for batch in loader:
            with torch.autocast("cpu", torch.bfloat16, enabled=low):
                out = model(batch, batch.ldata[0]["x"])
            loss = torch.nn.functional.cross_entropy(out.float(), batch.ldata[-1]["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            edges += sum(batch.flow_sizes)
        return {"edges": edges}

    return run


def floor(graph: Graph, work: Work) -> Callable[[int], dict[str, Any]]:
    """The dense products of the step, and the gather of its features, all into memory that is there
    already.
    """
    x, _ = data(work, graph.num_nodes)
    sampler = NeighborSampler(graph, work.fanouts_from_seeds[::-1])
    parts = [sampler(part) for part in seeds(work, graph.num_nodes).split(work.batch_size)]
    ids = [batch.layers[0].parent_nid for batch in parts]
    sizes = [batch.layer_sizes for batch in parts]
    most = [max(rows) for rows in zip(*sizes, strict=True)]
    rows = torch.empty(most[0], work.width)
    inputs = [torch.randn(most[i + 1], wide) for i, (wide, _) in enumerate(work.widths)]
    outputs = [torch.empty(most[i + 1], narrow) for i, (_, narrow) in enumerate(work.widths)]
    weights = [torch.randn(narrow, wide) for wide, narrow in work.widths]
    grads = [torch.empty_like(w) for w in weights]
    back = [torch.empty_like(h) for h in inputs]

    def run(_: int) -> dict[str, Any]:
        for taken, size in zip(ids, sizes, strict=True):
            torch.index_select(x, 0, taken, out=rows[: size[0]])
            for i, w in enumerate(weights):
                h = inputs[i][: size[i + 1]]
                out = outputs[i][: size[i + 1]]
                for _ in range(2):  # a node's own rows, and the mean of its neighbours
                    torch.mm(h, w.t(), out=out)
                    torch.mm(out.t(), h, out=grads[i])
                    if i:
                        torch.mm(out, w, out=back[i][: size[i + 1]])
        return {"edges": sum(sum(batch.flow_sizes) for batch in parts)}

    return run


if __name__ == "__main__":
    serve(prepare, f"nodeflow {__version__}")
