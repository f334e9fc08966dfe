"""Draws docs/pictures/plots.png: what docs/plots.md shows, from the bundled data set.

``python scripts/draw_plots.py`` writes the picture, and prints how near estimates come to the means
of 200 draws.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nodeflow import (
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    datasets,
    transform,
)
from nodeflow.plot import plot_degrees, plot_inclusion, plot_layer_growth, plot_samplers
from nodeflow.sampling.base import SamplerBase

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "plots.png"


def small() -> Graph:
    """Return the graph of the tour."""
    return Graph.from_edges([2, 0, 5, 1, 4, 6, 7, 6], [0, 3, 3, 5, 1, 3, 6, 5])


def main() -> None:
    """Write the picture and print the table."""
    data = datasets.debian()
    graph = transform.add_reverse_edges(data.graph)
    seeds = data.train[:1024]
    samplers: dict[str, SamplerBase] = {
        "neighbours": NeighborSampler(graph, [10, 10, 10]),
        "LABOR": LaborSampler(graph, [10, 10, 10]),
        "LADIES": LadiesSampler(graph, [8000, 4000, 2000]),
    }
    figure = Figure(figsize=(13, 7.5), layout="constrained")
    (batch, summary, whole), (growth, sizes, inclusion) = figure.subplots(2, 3)
    NeighborSampler(small(), [2, 2])([3]).plot(batch, width=lambda flow: flow.weight)
    samplers["neighbours"](seeds).plot(summary)
    plot_degrees({"in-degrees": graph}, ax=whole)
    plot_layer_growth(graph, seeds, ax=growth)
    plot_samplers(samplers, seeds, ax=sizes)
    hubs = np.flatnonzero(graph.in_degrees().numpy() > 40)[:40]
    plot_inclusion(LaborSampler(graph, [10]), hubs, draws=300, ax=inclusion)
    titles = (
        "batch.plot",
        "batch.plot, large",
        "plot_degrees",
        "plot_layer_growth",
        "plot_samplers",
        "plot_inclusion",
    )
    for axis, title in zip((batch, summary, whole, growth, sizes, inclusion), titles, strict=True):
        axis.set_title(title, fontsize=10)
    figure.savefig(PICTURE, dpi=75)
    graph.edata["size"] = 1.0 + graph.edata["kind"]
    weighted = NeighborSampler(graph, [10, 10, 10], prob="size")
    for sampler in (samplers["neighbours"], weighted, samplers["LABOR"], FullSampler(graph, 2)):
        formula = sampler.estimate(seeds)
        pilot = sampler.estimate(seeds, pilot=200)
        nodes, edges = (
            [
                f"{100 * (a / b - 1):+.2f} %"
                for a, b in zip(getattr(formula, name), getattr(pilot, name), strict=True)
            ]
            for name in ("nodes", "edges")
        )
        name = f"{type(sampler).__name__}{' with prob' if sampler is weighted else ''}"
        print(f"{name}: layers {', '.join(nodes)}; flows {', '.join(edges)}")


if __name__ == "__main__":
    main()
