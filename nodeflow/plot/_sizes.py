"""Sizes of batches: of several samplers, and how they grow with the fanout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._base.checks import as_count, check_one_of, check_type
from nodeflow._base.types import SeedsLike
from nodeflow._display.axes import axes_for, whole_ticks
from nodeflow.flow import NamesLike
from nodeflow.graph import Graph
from nodeflow.sampling import NeighborSampler
from nodeflow.sampling.base import SamplerBase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MB = 1e6


def plot_samplers(
    samplers: Mapping[str, SamplerBase],
    seeds: SeedsLike,
    *,
    count: str = "nodes",
    draws: int = 20,
    ax: Axes | None = None,
    **call: Any,
) -> Axes:
    """Plot the sizes of batches that several samplers draw for the same seeds; returns the axes.

    A bar is the mean over the draws, and its whisker goes one standard deviation of a draw up and down.

    Args:
        samplers: samplers by name, with any numbers of flows. Bars are aligned at the seeds.
        seeds: as for a call of every sampler.
        count: "nodes" for the sizes of layers, "edges" for the sizes of flows.
        draws: number of batches of each sampler; they are those of the epochs 0, 1, ...
        ax: the matplotlib axes to draw on; None: new ones.
        call: further arguments of the calls, such as ``times``.

    Raises TypeError for anything that is no sampler, ValueError for another ``count`` or fewer than one draw, what the
    calls raise, ImportError without matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import LaborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3] * 2, [4] * 4 + [5] * 4)
    >>> samplers = {"neighbour": NeighborSampler(graph, [2]), "labor": LaborSampler(graph, [2])}
    >>> axis = plot_samplers(samplers, [4, 5], draws=5, ax=Figure().subplots())
    >>> [text.get_text() for text in axis.get_legend().get_texts()]
    ['neighbour', 'labor']
    """
    check_type(samplers, "samplers", Mapping, "a dict from name to sampler")
    for name, sampler in samplers.items():
        check_type(sampler, f"samplers[{name!r}]", SamplerBase, "a sampler")
    check_one_of(count, "count", ("nodes", "edges"))
    number = as_count(draws, "draws", 1)
    sizes = {}
    for name, sampler in samplers.items():
        batches = (sampler(seeds, epoch=epoch, **call) for epoch in range(number))
        sizes[name] = np.array([b.layer_sizes if count == "nodes" else b.flow_sizes for b in batches], float)
    axis = axes_for(ax, (6, 3.4))
    most = max((counts.shape[1] for counts in sizes.values()), default=0)
    width = 0.8 / max(len(sizes), 1)
    for i, (name, counts) in enumerate(sizes.items()):
        at = np.arange(most - counts.shape[1], most) + (i - (len(sizes) - 1) / 2) * width
        axis.bar(at, counts.mean(0), width, yerr=counts.std(0), capsize=2, ecolor="0.5", label=name)
    words = [f"{'layer' if count == 'nodes' else 'flow'} {i - most}" for i in range(most)]
    if count == "nodes" and words:
        words[-1] = "seeds"
    axis.set_xticks(range(most), words)
    axis.set(ylabel=f"{count} per batch")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    if sizes:
        axis.legend(fontsize=8, frameon=False)
    return axis


def plot_layer_growth(
    graph: Graph,
    seeds: SeedsLike,
    fanouts: Sequence[int] = (2, 5, 10, 20, -1),
    *,
    num_flows: int = 3,
    count: str = "nodes",
    ndata: NamesLike = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Plot how batches of neighbour sampling grow from the seeds to the inputs, a line per fanout; returns the axes.

    The sizes are means of some draws, those of ``NeighborSampler(graph, [fanout] * num_flows).estimate(seeds)``.

    Args:
        graph: the parent graph.
        seeds: the nodes of a typical batch.
        fanouts: the fanouts to compare, each for all flows; -1 takes all neighbours.
        num_flows: number of flows.
        count: "nodes" of every layer, "edges" of every flow, or "bytes": megabytes of all layers and flows so far, from
            the seeds on.
        ndata: node columns that "bytes" counts, as for ``estimate``.
        ax: the matplotlib axes to draw on; None: new ones.
        options: settings of ``NeighborSampler``, such as ``replace``.

    Raises ValueError for another ``count``, what the sampler and its ``estimate`` raise, ImportError without
    matplotlib.

    >>> from matplotlib.figure import Figure
    >>> axis = plot_layer_growth(Graph.from_edges([0, 1, 2], [1, 2, 0]), [0], [1, -1], ax=Figure().subplots())
    >>> axis.lines[0].get_ydata().tolist()
    [1.0, 2.0, 3.0, 3.0]
    """
    check_one_of(count, "count", ("nodes", "edges", "bytes"))
    number = as_count(num_flows, "num_flows", 1)
    estimates = {
        fanout: NeighborSampler(graph, [fanout] * number, **options).estimate(seeds, ndata=ndata) for fanout in fanouts
    }
    axis = axes_for(ax, (5, 3.4))
    for fanout, estimate in estimates.items():
        if count == "bytes":
            values = np.cumsum(np.array(estimate.node_bytes[::-1]) + [0, *estimate.edge_bytes[::-1]]) / _MB
        else:
            values = np.array((estimate.nodes if count == "nodes" else estimate.edges)[::-1])
        hops = np.arange(len(values)) + (count == "edges")
        axis.plot(hops, values, marker="o", markersize=3, label="all" if fanout == -1 else str(fanout))
    words = {"nodes": "nodes in the layer", "edges": "edges of the flow", "bytes": "MB so far"}
    axis.set(xlabel="hops from the seeds", ylabel=f"mean {words[count]}", yscale="log")
    whole_ticks(axis)
    axis.grid(alpha=0.3)
    if estimates:
        axis.legend(title="fanout", fontsize=8, title_fontsize=8, frameon=False)
    return axis
