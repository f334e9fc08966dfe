"""What programs for DGL 0.4 cost through ``nodeflow.compat.dgl``, beside nodeflow's own way to
write the same training.

python benchmarks/compat.py [--nodes 8192] [--rounds 5] [--threads 1]

An epoch of a GCN of two layers with means and a skip connection (hidden width 32, dense features of
500 columns), on the bundled graph with both directions and self-loops: batches of 1,000 seeds,
Adam. All run in turn in one process; medians are printed, and ratios to the own way.

- neighbours: 4 neighbours per node. "mailbox": the reduce function is one of the user's own, as in
  DGL's example; "built-in": it is ``fn.mean``; "own": ``flow.aggregate``.
- layers: 2,000 draws per layer.
- control variates: 2 neighbours, features summed before; ``pull``, copies from and to the parent
  for every batch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import nodeflow
import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow import ControlVariateSampler, Graph, History, NodeFlowLoader, datasets, transform

HIDDEN = 32
BATCH = 1000
NEIGHBOURS = 4
CV_NEIGHBOURS = 2
DRAWS = 2000


class Work:
    """The graph with features, labels and seeds, as both ways use them."""

    def __init__(self, num_seeds: int) -> None:
        data = datasets.debian()
        self.graph: Graph = transform.add_self_loops(transform.add_reverse_edges(data.graph))
        self.x = self.graph.ndata.pop("feat").to_dense()[:, :500].contiguous()
        self.y = self.graph.ndata.pop("label")
        self.num_classes = data.num_classes
        self.seeds = data.train[:num_seeds]
        self.graph.edata["p"] = transform.edge_norm(self.graph, "right")
        self.g = dgl.DGLGraph(self.graph.edges(), readonly=True)
        for frame in (self.graph.ndata, self.g.ndata):
            frame["x"] = self.x
        self.g.ndata["norm"] = 1.0 / self.g.in_degrees().float().unsqueeze(1)

    def linears(self) -> nn.ModuleList:
        torch.manual_seed(0)
        return nn.ModuleList(
            [nn.Linear(self.x.shape[1], HIDDEN), nn.Linear(2 * HIDDEN, self.num_classes)]
        )


def train(
    work: Work, model: nn.Module, steps: Iterator[tuple[Tensor, Tensor]], after: Callable[[], None]
) -> None:
    """Make a step of training for every pair of outputs and the ids of their nodes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for outputs, seeds in steps:
        loss = cross_entropy(outputs, work.y[seeds])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after()


def nothing() -> None:
    """Do nothing after a step."""


def skip(h: Tensor) -> Tensor:
    return torch.cat([h, h.relu()], 1)


def mean_of_mailbox(nodes: dgl.NodeBatch | nodeflow.flow.NodeBatch) -> dict[str, Tensor]:
    assert nodes.mailbox is not None
    return {"h": nodes.mailbox["m"].mean(dim=1)}


def own(work: Work, sampler: nodeflow.Sampler, mailbox: bool) -> None:
    model = work.linears()

    def first(nodes: nodeflow.flow.NodeBatch) -> dict[str, Tensor]:
        return {"h": skip(model[0](nodes.data["h"]))}

    def second(nodes: nodeflow.flow.NodeBatch) -> dict[str, Tensor]:
        return {"h": model[1](nodes.data["h"])}

    def steps() -> Iterator[tuple[Tensor, Tensor]]:
        for batch in NodeFlowLoader(sampler, work.seeds, BATCH, shuffle=True, ndata={0: ["x"]}):
            if mailbox:
                batch.ldata[0]["h"] = batch.ldata[0]["x"]
                batch.forward(fn.copy_u("h", "m"), mean_of_mailbox, [first, second])
                yield batch.ldata[-1]["h"], batch.seeds
            else:
                h = skip(model[0](batch.flows[0].aggregate(batch.ldata[0]["x"], "mean")))
                yield model[1](batch.flows[1].aggregate(h, "mean")), batch.seeds

    train(work, model, steps(), nothing)


def old(
    work: Work, sampler: Callable[..., dgl.contrib.sampling.NeighborSampler], mailbox: bool
) -> None:
    model = work.linears()

    def first(nodes: dgl.NodeBatch) -> dict[str, Tensor]:
        return {"activation": skip(model[0](nodes.data["h"]))}

    def second(nodes: dgl.NodeBatch) -> dict[str, Tensor]:
        return {"activation": model[1](nodes.data["h"])}

    def steps() -> Iterator[tuple[Tensor, Tensor]]:
        for nf in sampler(work.g, BATCH, shuffle=True, seed_nodes=work.seeds):
            nf.copy_from_parent([["x"], [], []], None)
            nf.layers[0].data["activation"] = nf.layers[0].data["x"]
            for i, update in enumerate((first, second)):
                nf.layers[i].data["h"] = nf.layers[i].data.pop("activation")
                nf.block_compute(
                    i,
                    fn.copy_src("h", "m"),
                    mean_of_mailbox if mailbox else fn.mean("m", "h"),
                    update,
                )
            yield nf.layers[-1].data.pop("activation"), nf.layer_parent_nid(-1)

    train(work, model, steps(), nothing)


def own_cv(work: Work) -> None:
    torch.manual_seed(0)
    model = nodeflow.nn.VRGCN(work.x.shape[1], HIDDEN, work.num_classes, num_layers=2)
    history = History(work.graph.view(weight="p"), model.history_widths, inputs=work.x)
    sampler = ControlVariateSampler(history, [0, CV_NEIGHBOURS])
    taken: list[nodeflow.NodeFlow] = []

    def steps() -> Iterator[tuple[Tensor, Tensor]]:
        for batch in NodeFlowLoader(sampler, work.seeds, BATCH, shuffle=True):
            taken[:] = [batch]
            yield model(batch), batch.seeds

    def after() -> None:
        history.push(taken[0])
        history.commit()

    train(work, model, steps(), after)


def old_cv(work: Work) -> None:
    g = work.g
    model = nn.Sequential(nn.Linear(work.x.shape[1], HIDDEN), nn.Linear(HIDDEN, work.num_classes))

    def scaled(nodes: dgl.NodeBatch, name: str) -> dict[str, Tensor]:
        return {name: nodes.data[name] * nodes.data["norm"]}

    def update(nodes: dgl.NodeBatch) -> dict[str, Tensor]:
        return {"out": model[1](nodes.data["d"] + nodes.data["agg_h"])}

    g.update_all(fn.copy_src("x", "m"), fn.sum("m", "px"), partial(scaled, name="px"))
    g.ndata["h"] = torch.zeros(g.number_of_nodes(), HIDDEN)
    taken: list[dgl.NodeFlow] = []

    def steps() -> Iterator[tuple[Tensor, Tensor]]:
        sampler = dgl.contrib.sampling.NeighborSampler
        for nf in sampler(g, BATCH, CV_NEIGHBOURS, num_hops=1, shuffle=True, seed_nodes=work.seeds):
            g.pull(
                nf.layer_parent_nid(-1),
                fn.copy_src("h", "m"),
                fn.sum("m", "agg_h"),
                partial(scaled, name="agg_h"),
            )
            nf.copy_from_parent([["px", "h"], ["agg_h"]], None)
            h = model[0](nf.layers[0].data["px"]).relu()
            nf.layers[0].data["d"] = h - nf.layers[0].data["h"]
            nf.layers[0].data["h"] = h.detach()
            nf.block_compute(0, fn.copy_src("d", "m"), fn.mean("m", "d"), update)
            taken[:] = [nf]
            yield nf.layers[-1].data.pop("out"), nf.layer_parent_nid(-1)

    train(work, model, steps(), lambda: taken[0].copy_to_parent([["h"], []], None))


def in_turn(jobs: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the median seconds of every job."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number:  # the first is compilation and caches
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=8192, help="seeds of an epoch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    work = Work(args.nodes)
    neighbours = partial(dgl.contrib.sampling.NeighborSampler, expand_factor=NEIGHBOURS, num_hops=2)
    layers = partial(dgl.contrib.sampling.LayerSampler, layer_sizes=[DRAWS, DRAWS])
    kinds: dict[str, dict[str, Callable[[], None]]] = {
        "neighbours": {
            "own": partial(
                own, work, nodeflow.NeighborSampler(work.graph, [NEIGHBOURS] * 2), False
            ),
            "own, mailbox": partial(
                own, work, nodeflow.NeighborSampler(work.graph, [NEIGHBOURS] * 2), True
            ),
            "built-in": partial(old, work, neighbours, False),
            "mailbox": partial(old, work, neighbours, True),
        },
        "layers": {
            "own": partial(own, work, nodeflow.LayerSampler(work.graph, [DRAWS] * 2), False),
            "own, mailbox": partial(
                own, work, nodeflow.LayerSampler(work.graph, [DRAWS] * 2), True
            ),
            "built-in": partial(old, work, layers, False),
            "mailbox": partial(old, work, layers, True),
        },
        "control variates": {"own": partial(own_cv, work), "built-in": partial(old_cv, work)},
    }
    print("| sampling | program | seconds per epoch | over own |\n|---|---|---|---|")
    for kind, jobs in kinds.items():
        found = in_turn(jobs, args.rounds)
        for name, seconds in found.items():
            print(f"| {kind} | {name} | {seconds:.3f} | {seconds / found['own']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
