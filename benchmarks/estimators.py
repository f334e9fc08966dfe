"""Bias and variance of every sampler's weighted sums, measured on real graphs; a table, and a
picture.

python benchmarks/estimators.py --data FOLDER [--plot FILE.png]

FOLDER holds a folder per graph, with adjacency.npz (a scipy CSR matrix, entry (i, j) = edge i -> j)
and features.npz, such as the Planetoid and Shchur data sets. Estimated is the mean over all
neighbours of eight random projections of the features, at 256 random seeds (for GraphSAINT at the
nodes that a subgraph holds), from many independent draws.

- bias: distance of the mean estimate from the exact value, relative to the exact value, all seeds
  and columns together;
- noise: what the bias of an unbiased estimator would be in so many draws (its standard error).
  Where bias / noise is about 1 no bias is seen; the smallest bias that would be seen is a few times
  the noise;
- spread: standard deviation of one draw, relative to the exact value;
- sources: different nodes whose features a draw needs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from nodeflow import (
    BernoulliSampler,
    ClusterSampler,
    FastGCNSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    NeighborSampler,
    SaintSampler,
    Sampler,
    transform,
)

SEEDS = 256
K = 5
LAYER = 256


class PublishedLadies(Sampler):
    """LADIES as its published code has it: no replacement, weights 1 / q, destinations forced in,
    rows normalised.
    """

    def choose(self, dst: Tensor, step: Any) -> Any:
        edges = self.candidates(dst)
        nodes, place = edges.src.unique(return_inverse=True)
        q = torch.zeros(len(nodes), dtype=torch.float64).index_add_(0, place, edges.edge_weight**2)
        q /= q.sum()
        size = min(LAYER, len(nodes))
        picked = torch.zeros(len(nodes), dtype=torch.bool)
        # the smallest keys: no repeats
        picked[(-(1 - step.random.uniform(nodes)).log() / q).argsort()[:size]] = True
        keep = (picked | torch.isin(nodes, dst))[place]
        weight = edges.edge_weight / q[place] * keep
        row = torch.repeat_interleave(edges.degrees)
        whole, drawn = (
            torch.zeros(len(dst), dtype=torch.float64).index_add_(0, row, w)
            for w in (edges.edge_weight, weight)
        )
        return edges.select(keep, weight=(weight * (whole / drawn)[row])[keep].float())


Make = Callable[[Graph], Any]
SAMPLERS: dict[str, tuple[str, Make]] = {
    "neighbour, 5": ("neighbour", lambda g: NeighborSampler(g.view(weight="p"), [K])),
    "neighbour, 5, replace": (
        "neighbour",
        lambda g: NeighborSampler(g.view(weight="p"), [K], replace=True),
    ),
    "neighbour, 5, prob": (
        "neighbour",
        lambda g: NeighborSampler(g.view(weight="p"), [K], prob="importance"),
    ),
    "neighbour, 5, prob, replace": (
        "neighbour",
        lambda g: NeighborSampler(g.view(weight="p"), [K], prob="importance", replace=True),
    ),
    "Bernoulli, 5": ("neighbour", lambda g: BernoulliSampler(g.view(weight="p"), [K])),
    "LABOR-0, 5": ("LABOR", lambda g: LaborSampler(g.view(weight="p"), [K])),
    "LABOR-0, 5, sequential": (
        "LABOR",
        lambda g: LaborSampler(g.view(weight="p"), [K], method="sequential"),
    ),
    "LABOR-1, 5": ("LABOR", lambda g: LaborSampler(g.view(weight="p"), [K], iterations=1)),
    "LABOR-*, 5": (
        "LABOR",
        lambda g: LaborSampler(g.view(weight="p"), [K], iterations="converged"),
    ),
    "LABOR-0, 5, Hajek (biased)": (
        "LABOR",
        lambda g: LaborSampler(g.view(weight="p"), [K], estimator="hajek"),
    ),
    "uniform layer, 256, replace": (
        "layer-wise",
        lambda g: LayerSampler(g.view(weight="p"), [LAYER]),
    ),
    "uniform layer, 256, systematic": (
        "layer-wise",
        lambda g: LayerSampler(g.view(weight="p"), [LAYER], draw="systematic"),
    ),
    "FastGCN, 256": ("layer-wise", lambda g: FastGCNSampler(g.view(weight="p"), [LAYER])),
    "FastGCN, 256, Poisson": (
        "layer-wise",
        lambda g: FastGCNSampler(g.view(weight="p"), [LAYER], draw="poisson"),
    ),
    "FastGCN, 256, systematic": (
        "layer-wise",
        lambda g: FastGCNSampler(g.view(weight="p"), [LAYER], draw="systematic"),
    ),
    "LADIES, 256": ("layer-wise", lambda g: LadiesSampler(g.view(weight="p"), [LAYER])),
    "LADIES, 256, Poisson": (
        "layer-wise",
        lambda g: LadiesSampler(g.view(weight="p"), [LAYER], draw="poisson"),
    ),
    "LADIES, 256, systematic": (
        "layer-wise",
        lambda g: LadiesSampler(g.view(weight="p"), [LAYER], draw="systematic"),
    ),
    "LADIES, 256, normalised (biased)": (
        "layer-wise",
        lambda g: LadiesSampler(g.view(weight="p"), [LAYER], normalize=True),
    ),
    "LADIES, 256, published code (biased)": (
        "layer-wise",
        lambda g: PublishedLadies(g.view(weight="p"), 1),
    ),
    "GraphSAINT, node": ("subgraph", lambda g: saint(g, "node", g.num_nodes // 4)),
    "GraphSAINT, edge": ("subgraph", lambda g: saint(g, "edge", g.num_nodes // 8)),
    "GraphSAINT, walk": (
        "subgraph",
        lambda g: saint(g, "walk", g.num_nodes // 16, walk_length=3, num_presamples=2000),
    ),
    "Cluster-GCN, 4 of 32 parts": ("subgraph", lambda g: ClusterSampler(g.view(weight="p"), 1, 32)),
}


def saint(graph: Graph, kind: str, budget: int, **options: Any) -> Any:
    return SaintSampler(graph.view(weight="p"), 1, kind=kind, budget=budget, **options)


class Case(NamedTuple):
    """A graph, what is estimated, and at which seeds."""

    graph: Graph
    x: Tensor
    exact: Tensor
    seeds: Tensor


class Found(NamedTuple):
    """What was measured of one sampler on one graph."""

    bias: float
    noise: float
    spread: float
    sources: float
    edges: float


def read(folder: Path) -> Case:
    adjacency = scipy.sparse.load_npz(folder / "adjacency.npz").tocoo()
    graph = Graph.from_edges(adjacency.row, adjacency.col, num_nodes=adjacency.shape[0])
    graph.edata["p"] = transform.edge_norm(graph, "right")
    features = scipy.sparse.load_npz(folder / "features.npz")
    rng = np.random.default_rng(0)
    x = (
        torch.from_numpy(np.asarray(features @ rng.standard_normal((features.shape[1], 8))))
        / features.shape[1] ** 0.5
    )
    x = x.double()
    src, dst = graph.edges()
    # a probability that has something to do with what is summed: the size of the source's row
    graph.edata["importance"] = x.norm(dim=1)[src].float() + 1e-3
    exact = torch.zeros_like(x).index_add_(0, dst, graph.edata["p"].double().unsqueeze(1) * x[src])
    seeds = torch.from_numpy(rng.permutation(np.flatnonzero(graph.in_degrees().numpy()))[:SEEDS])
    return Case(graph, x, exact, seeds)


def measure(case: Case, sampler: Any, draws: int) -> Found:
    """Mean and spread of the estimates per node, over the draws in which it is a destination."""
    total = torch.zeros_like(case.x)
    squares = torch.zeros_like(case.x)
    times = torch.zeros(case.graph.num_nodes, dtype=torch.float64)
    sources = edges = 0
    rng = np.random.default_rng(1)
    for epoch in range(draws):
        if isinstance(sampler, SaintSampler):
            batch = sampler([epoch])
        elif isinstance(sampler, ClusterSampler):
            batch = sampler(rng.permutation(sampler.num_seeds)[:4])
        else:
            batch = sampler(case.seeds, epoch=epoch)
        flow = batch.flows[-1]
        estimate = flow.aggregate(
            case.x[flow.src_layer.parent_nid], "sum", weight=flow.weight.double()
        )
        nodes = flow.dst_layer.parent_nid
        total.index_add_(0, nodes, estimate)
        squares.index_add_(0, nodes, estimate**2)
        times[nodes] += 1
        sources += len(flow.indices.unique())
        edges += flow.num_edges
    often = (times >= max(20, draws // 20)) & (case.graph.in_degrees() > 0)
    n = times[often].unsqueeze(1)
    mean = total[often] / n
    exact = case.exact[often]
    variance = (squares[often] / n - mean**2).clamp(min=0) * n / (n - 1)
    scale = exact.norm()
    return Found(
        float((mean - exact).norm() / scale),
        float((variance / n).sum().sqrt() / scale),
        float(variance.sum().sqrt() / scale),
        sources / draws,
        edges / draws,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--graphs", nargs="+", default=["cora", "coauthor_physics", "amazon_computers"]
    )
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument(
        "--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS), metavar="NAME"
    )
    parser.add_argument("--plot", type=Path, help="where to write a picture")
    options = parser.parse_args()
    results: dict[str, dict[str, Found]] = {}
    for name in options.graphs:
        case = read(options.data / name)
        print(
            f"\n{name}: {case.graph.num_nodes:,} nodes, {case.graph.num_edges:,} edges; "
            f"{options.draws} draws\n"
        )
        print("| sampler | bias | noise | bias / noise | spread | sources | edges |")
        print("|---|---|---|---|---|---|---|")
        for kind in options.samplers:
            found = measure(case, SAMPLERS[kind][1](case.graph), options.draws)
            results.setdefault(name, {})[kind] = found
            print(
                f"| {kind} | {found.bias:.4f} | {found.noise:.4f} | {found.bias / found.noise:.2f} "
                f"| {found.spread:.3f} | {found.sources:,.0f} | {found.edges:,.0f} |",
                flush=True,
            )
    if options.plot:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        plot(results, options.plot)


def plot(results: dict[str, dict[str, Found]], file: Path) -> None:
    """Draw, for every sampler and graph, the spread of one draw, the sources it needs, and bias
    over noise.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    kinds = list(next(iter(results.values())))
    height = 1.6 + 0.27 * len(kinds)
    figure, panels = plt.subplots(1, 3, figsize=(12, height), layout="constrained", sharey=True)
    titles = (
        "spread of one draw / exact value",
        "nodes whose features a draw needs",
        "bias / noise",
    )
    for panel, title in zip(panels, titles, strict=True):
        panel.set(xscale="log", title=title)
        panel.grid(alpha=0.3)
        panel.grid(alpha=0.15, which="minor", axis="x")
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    rows = range(len(kinds))
    for number, (graph, found) in enumerate(results.items()):
        values = [found[kind] for kind in kinds]
        style: dict[str, Any] = {
            "color": f"C{number}",
            "s": 32,
            "marker": "osD^v"[number % 5],
            "alpha": 0.8,
        }
        panels[0].scatter([value.spread for value in values], rows, label=graph, **style)
        panels[1].scatter([value.sources for value in values], rows, **style)
        panels[2].scatter([value.bias / value.noise for value in values], rows, **style)
    panels[2].axvspan(0.67, 1.5, color="0.85", zorder=0, label="no bias seen")
    panels[0].set_yticks(rows, kinds)
    panels[0].invert_yaxis()
    handles, names = panels[0].get_legend_handles_labels()
    more = panels[2].get_legend_handles_labels()
    figure.legend(
        handles + more[0], names + more[1], loc="outside lower center", ncols=len(names) + 1
    )
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
