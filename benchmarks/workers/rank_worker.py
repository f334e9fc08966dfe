"""One of several processes that sample and train together: does a job when asked, one line in and
one line out.

``rank_worker.py RANK SIZE FILE``: FILE is where the processes find each other. A line is a job, a
name and its arguments as JSON; the answer is what the function of that name returns here. All
processes get the same lines.
"""

import gc
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow._core.rows.rows import row_bytes
from nodeflow.distributed import DistributedGraph
from nodeflow.nn import GraphSAGE
from nodeflow.propagation import Propagation
from nodeflow.storage import Cached

CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
graphs: dict[tuple[str, float, float], Graph] = {}
runs: "dict[str, Run]" = {}


def opened(folder: str, hot: float = 0.0, halo: float = 1.0) -> Graph:
    """A whole graph, or this process's part of one; ``hot``: share of the rows of features that
    every process keeps.
    """
    if (folder, hot, halo) not in graphs:
        whole = folder.endswith("whole")
        graph = Graph.open(folder) if whole else DistributedGraph.open(folder, halo=halo)
        if hot:
            # every edge has its reverse here, so this is how often a node is drawn, roughly
            heat = graph.in_degrees().double()
            graph.ndata["feat"] = Cached(
                graph.ndata["feat"],
                heat,
                memory=int(hot * graph.num_nodes) * row_bytes(graph.ndata["feat"]),
            )
        graphs[folder, hot, halo] = graph
    return graphs[folder, hot, halo]


def rows_of(graph: Graph, name: str, nodes: Tensor) -> Tensor:
    """Rows of a node column; collective where the graph lies on several processes."""
    column = graph.ndata[name]
    return column[nodes] if isinstance(column, Tensor) else column.fetch(nodes)


class Gradients:
    """Takes the mean of gradients over all processes, at once, and adds up the ``seconds`` that it
    takes.

    Not a part of ``Run``: torch keeps it as long as the model, which a run has, and neither would
    ever be freed.
    """

    seconds = 0.0

    def reduced(self, _: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
        begun = perf_counter()
        gradients = bucket.buffer().div_(dist.get_world_size())
        dist.all_reduce(gradients)
        self.seconds += perf_counter() - begun
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(gradients)
        return done


class Run:
    """A loader, and for training a model, with what they need; ``options`` are those of a job.

    Options: folder, hot, halo; seeds (a file), batch_size (of one process), fanouts, share, workers
    (threads that draw ahead), steps (of an epoch, at most), columns (whether batches have
    features); train (whether there is a model), hidden, classes, lr.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.gradients = Gradients()
        self.graph = opened(options["folder"], options.get("hot", 0.0), options.get("halo", 1.0))
        sampler = NeighborSampler(self.graph, options["fanouts"])
        seeds = torch.from_numpy(np.load(options["seeds"]))
        self.loader = NodeFlowLoader(
            sampler, seeds, options["batch_size"], shuffle=True, share=options["share"],
            num_workers=options.get("workers", 0), ndata={0: ["feat"]} if options.get("columns", True) else None,
            # fetched once: as a column of the graph, labels would take two exchanges of every step
            seed_data={"label": rows_of(self.graph, "label", seeds)},
        )  # fmt: skip
        if not options.get("train", False):
            return
        torch.manual_seed(0)
        width = self.graph.ndata["feat"].shape[1]
        self.net = GraphSAGE(
            width, options["hidden"], options["classes"], num_layers=len(options["fanouts"])
        )
        self.model: nn.Module = self.net
        if dist.get_world_size() > 1:
            self.model = nn.parallel.DistributedDataParallel(self.net)
            self.model.register_comm_hook(None, self.gradients.reduced)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=options.get("lr", 0.003))

    def batches(self) -> Iterator[NodeFlow]:
        return islice(self.loader, self.options.get("steps"))

    def step(self, batch: NodeFlow) -> float:
        """Train on a batch; return this process's share of the mean loss of the step."""
        logits = self.model(batch, batch.layers[0].data["feat"])[batch.seed_index]
        loss = nn.functional.cross_entropy(logits, batch.seed_data["label"], reduction="sum")
        loss = loss * self.loader.seed_weight
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach()) / dist.get_world_size()


def run_of(options: dict[str, Any]) -> Run:
    """The run of a job, made when it is first asked for."""
    key = json.dumps(options, sort_keys=True)
    if key not in runs:
        runs[key] = Run(options)
    return runs[key]


def communication(options: dict[str, Any]) -> dict[str, Any]:
    """Count what an epoch fetches and sends."""
    run = Run(options)
    graph: Any = run.graph
    rows = graph.ndata["feat"]
    kept = np.zeros(graph.num_nodes, np.bool_)
    if isinstance(rows, Cached):
        kept[rows.ids.numpy()] = True
    # an epoch begins with a comparison of its arguments, which is not counted
    batches = run.batches()
    before = counted(graph)
    fetched = 0
    travelled = 0
    seeds = list[int]()
    for batch in batches:
        ids = batch.layers[0].parent_nid.numpy()
        fetched += len(ids)
        travelled += int(((graph.peers.owners(ids) != graph.peers.rank) & ~kept[ids]).sum())
        seeds.append(len(batch.seeds))
    sent = {name: value - before[name] for name, value in counted(graph).items()}
    return {"fetched": fetched, "travelled": travelled, "seeds": seeds, "steps": len(seeds), **sent}


def counted(graph: Any) -> dict[str, float]:
    counters = graph.peers.counters
    return {
        name: getattr(counters, name)
        for name in ("exchanges", "messages", "bytes_sent", "bytes_received", "seconds")
    }


def full_pass(options: dict[str, Any]) -> dict[str, Any]:
    """Count what the sums over all edges send, once they are planned."""
    graph: Any = opened(options["folder"])
    propagation = Propagation(graph)
    plan = propagation.plan
    before = counted(graph)
    propagation(torch.ones(plan.num_masters, options["width"]))
    sent = {name: value - before[name] for name, value in counted(graph).items()}
    return {"partners": len(plan.partners), "mirrors": plan.num_mirrors, **sent}


def timed(options: dict[str, Any]) -> dict[str, Any]:
    """Time epochs; ``core`` is the only core that the process may use, ``bind`` that of its rank;
    else it has all.
    """
    core = options.pop("core", None)
    epochs = options.pop("epochs")
    if options.pop("bind", False):
        core = dist.get_rank()
    if CORES is not None:
        os.sched_setaffinity(0, CORES if core is None else {sorted(CORES)[core % len(CORES)]})
    run = run_of(options)
    seeds = 0
    counters = run.graph.peers.counters if isinstance(run.graph, DistributedGraph) else None
    exchanging = 0.0 if counters is None else counters.seconds
    reducing = run.gradients.seconds
    dist.barrier()
    begun = perf_counter()
    for epoch in epochs:
        run.loader.set_epoch(epoch)
        for batch in run.batches():
            seeds += len(batch.seeds)
            if options["train"]:
                run.step(batch)
    seconds = perf_counter() - begun
    return {
        "seconds": seconds, "seeds": seeds, "gradients": run.gradients.seconds - reducing,
        "exchanges": 0.0 if counters is None else counters.seconds - exchanging,
    }  # fmt: skip


def training(options: dict[str, Any]) -> dict[str, Any]:
    """Train from the start; return the loss of every step and the accuracy of a full pass over the
    test nodes.
    """
    epochs = options.pop("epochs")
    test = torch.from_numpy(np.load(options.pop("test")))
    run = Run({**options, "train": True})
    losses = torch.tensor(
        [run.step(batch) for _ in range(epochs) for batch in run.batches()], dtype=torch.float64
    )
    dist.all_reduce(losses)
    nodes = test[dist.get_rank() :: dist.get_world_size()]
    labels = rows_of(run.graph, "label", nodes)
    with torch.no_grad():
        right = (
            run.net.inference(run.graph, run.graph.ndata["feat"], nodes=nodes).argmax(1) == labels
        ).sum()
    dist.all_reduce(right)
    return {"losses": losses.tolist(), "accuracy": int(right) / len(test)}


def check(options: dict[str, Any]) -> dict[str, Any]:
    """Hash every batch of an epoch: the edges of each flow with their weights, and the input nodes
    with features.

    The processes put their shares together, so the hashes do not depend on how many there are.
    """
    run = Run(options)
    hashes = []
    for batch in run.batches():
        found = hashlib.blake2b(digest_size=16)
        front = batch.layers[0]
        tables = [(flow.parent_eid, flow.weight) for flow in batch.flows] + [
            (front.parent_nid, front.data["feat"])
        ]
        for ids, rows in tables:
            for array in together(run.graph, ids.numpy(), rows.numpy()):
                found.update(np.ascontiguousarray(array).tobytes())
        hashes.append(found.hexdigest())
    return {"hashes": hashes}


def together(graph: Graph, ids: Any, rows: Any) -> tuple[Any, Any]:
    """Ids of all processes, each once and ascending, and their rows, which must be the same
    wherever an id occurs.
    """
    if graph.peers is not None:
        told = graph.peers.gather("a batch to hash", [ids, rows])
        ids, rows = (np.concatenate(arrays) for arrays in zip(*told, strict=True))
    distinct, first, index = np.unique(ids, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][index], rows):
        raise SystemExit("two processes have other rows for the same id")
    return distinct, rows[first]


JOBS = {job.__name__: job for job in (communication, full_pass, timed, training, check)}


def leave() -> None:
    """Free what holds groups, and end these: a thread of theirs that still lives may abort the
    process at its end.
    """
    runs.clear()
    graphs.clear()
    gc.collect()
    dist.destroy_process_group()


def main() -> None:
    rank = int(sys.argv[1])
    size = int(sys.argv[2])
    file = sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    for line in sys.stdin:
        name, options = json.loads(line)
        print(json.dumps(JOBS[name](options)), flush=True)
    leave()


if __name__ == "__main__":
    main()
