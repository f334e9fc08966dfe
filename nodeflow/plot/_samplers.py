"""Batches of samplers: their sizes, how these grow with the fanout, and how often edges are
drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._core.base.checks import as_count, check_one_of, check_type
from nodeflow._core.base.types import Floats, SeedsLike
from nodeflow._core.display.axes import axes_for, small_legend, whole_ticks
from nodeflow.flow import NamesLike
from nodeflow.graph import Graph
from nodeflow.sampling import NeighborSampler, first_of_epoch
from nodeflow.sampling.base import BoundSampler, SamplerBase

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

    A bar is the mean over the draws, and its whisker goes one standard deviation of a draw up and
    down.

    Args:
        samplers: samplers by name, with any numbers of flows. Bars are aligned at the seeds.
        seeds: as for a call of every sampler.
        count: "nodes" for the sizes of layers, "edges" for the sizes of flows.
        draws: number of batches of each sampler; they are those of the epochs 0, 1, ...
        call: further arguments of the calls, such as ``times``.

    Raises TypeError for anything that is no sampler, ValueError for another ``count`` or fewer than
    one draw, what the calls raise, ImportError without matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import LaborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3] * 2, [4] * 4 + [5] * 4)
    >>> samplers = {"neighbour": NeighborSampler(graph, [2]), "labor": LaborSampler(graph, [2])}
    >>> axis = plot_samplers(samplers, [4, 5], draws=5, ax=Figure().subplots())
    >>> [text.get_text() for text in axis.get_legend().get_texts()]
    ['neighbour', 'labor']
    """
    check_type(samplers, "samplers", Mapping, "a dict from name to sampler")
    check_one_of(count, "count", ("nodes", "edges"))
    number = as_count(draws, "draws", 1)
    sizes = {}
    part = {"nodes": "layer", "edges": "flow"}[count]
    for name, sampler in samplers.items():
        check_type(sampler, f"samplers[{name!r}]", SamplerBase, "a sampler")
        rows = []
        for epoch in range(number):
            batch = sampler(seeds, **first_of_epoch(sampler, {"epoch": epoch, **call}))
            rows.append(getattr(batch, f"{part}_sizes"))
        sizes[name] = np.array(rows, float)
    axis = axes_for(ax, (6, 3.4))
    most = max((counts.shape[1] for counts in sizes.values()), default=0)
    width = 0.8 / max(len(sizes), 1)
    # of the bars of the first sampler, from their tick
    left = -(len(sizes) - 1) / 2 * width
    for name, counts in sizes.items():
        # aligned at the seeds: samplers may have other numbers of flows
        places = np.arange(most - counts.shape[1], most) + left
        whiskers: dict[str, Any] = {"yerr": counts.std(0), "capsize": 2, "ecolor": "0.5"}
        axis.bar(places, counts.mean(0), width, label=name, **whiskers)
        left += width
    words = [f"{part} {i - most}" for i in range(most)]
    if count == "nodes" and words:
        words[-1] = "seeds"
    axis.set_xticks(range(most), words)
    axis.set(ylabel=f"{count} per batch")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    small_legend(axis)
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
    """Plot how batches of neighbour sampling grow from the seeds to the inputs, a line per fanout;
    returns the axes.

    The sizes are means of some draws, those of
    ``NeighborSampler(graph, [fanout] * num_flows).estimate(seeds)``.

    Args:
        graph: the parent graph.
        seeds: the nodes of a typical batch.
        fanouts: the fanouts to compare, each for all flows; -1 takes all neighbours.
        num_flows: number of flows.
        count: "nodes" of every layer, "edges" of every flow, or "bytes": megabytes of all layers
            and flows so far, from the seeds on.
        ndata: node columns that "bytes" counts, as for ``estimate``.
        options: settings of ``NeighborSampler``, such as ``replace``.

    Raises ValueError for another ``count``, what the sampler and its ``estimate`` raise,
    ImportError without matplotlib.

    >>> from matplotlib.figure import Figure
    >>> axis = plot_layer_growth(Graph.from_edges([0, 1, 2], [1, 2, 0]), [0], [1, -1], ax=Figure().subplots())
    >>> axis.lines[0].get_ydata().tolist()
    [1.0, 2.0, 3.0, 3.0]
    """
    check_one_of(count, "count", ("nodes", "edges", "bytes"))
    number = as_count(num_flows, "num_flows", 1)
    estimates = {
        fanout: NeighborSampler(graph, [fanout] * number, **options).estimate(seeds, ndata=ndata)
        for fanout in fanouts
    }
    axis = axes_for(ax, (5, 3.4))
    for fanout, estimate in estimates.items():
        if count == "bytes":
            steps = np.array(estimate.node_bytes[::-1]) + [0, *estimate.edge_bytes[::-1]]
            values = np.cumsum(steps) / _MB
        else:
            values = np.array(getattr(estimate, count)[::-1])
        hops = np.arange(len(values)) + (count == "edges")
        axis.plot(
            hops, values, marker="o", markersize=3, label="all" if fanout == -1 else str(fanout)
        )
    words = {"nodes": "nodes in the layer", "edges": "edges of the flow", "bytes": "MB so far"}
    axis.set(xlabel="hops from the seeds", ylabel=f"mean {words[count]}", yscale="log")
    whole_ticks(axis)
    axis.grid(alpha=0.3)
    small_legend(axis, title="fanout")
    return axis


def plot_inclusion(
    sampler: BoundSampler,
    seeds: SeedsLike,
    *,
    draws: int = 500,
    ax: Axes | None = None,
    **call: Any,
) -> Axes:
    """Plot how often each edge into the seeds is drawn against the probability that its weight
    states.

    An estimator weight is the edge's number in the sum (``sampler.estimand()``, 1 as a rule)
    divided by the probability that the edge is drawn, or with replacement by the mean number of
    times. So number / weight is the stated probability. If it is correct, 95 % of the points lie
    within the grey band about the diagonal: 1.96 standard errors of a share of ``draws``
    independent draws on each side. Where an edge is drawn repeatedly the axes show mean numbers of
    times, and the band is that of independent counts, a little too wide.

    Args:
        sampler: a sampler of edges of its graph.
        seeds: few nodes with many neighbours; the last flow of their batches is looked at.
        draws: number of batches; they are those of the epochs 0, 1, ...
        call: further arguments of the calls, such as ``times``.

    Edges that no batch draws state no probability and have no point. Where weights vary from draw
    to draw (LADIES, LABOR with ``method="sequential"``), a point lies at the mean of the
    probabilities that were stated when the edge was drawn. This is larger than the probability of
    being drawn, so points lie below the diagonal there.

    Raises TypeError for another sampler, ValueError for fewer than one draw, what the calls raise,
    ImportError without matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph, NeighborSampler
    >>> sampler = NeighborSampler(Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0]), [1])
    >>> axis = plot_inclusion(sampler, [0], draws=100, ax=Figure().subplots())
    >>> stated, drawn = axis.collections[-1].get_offsets().T.tolist()
    >>> stated, sum(drawn)  # one of four edges in every draw
    ([0.25, 0.25, 0.25, 0.25], 1.0)
    """
    check_type(sampler, "sampler", BoundSampler, "a sampler that draws edges of its graph")
    number = as_count(draws, "draws", 1)
    times, stated, most_times = _counts_of_edges(sampler, seeds, number, call)
    seen = times > 0
    mean_stated = stated[seen] / times[seen]
    drawn = times[seen] / number
    axis = axes_for(ax, (4, 3.6))
    most = max(mean_stated.max(initial=1e-9), drawn.max(initial=0))
    line = np.linspace(0, 1.02 * most, 200)
    # of independent draws: the variance of a share, or of a count where edges come repeatedly
    variance = np.clip(line * (1 - line), 0, None)
    words = ("stated probability", f"share of {number:,} draws")
    if most_times > 1:
        variance = line
        words = ("stated mean number of times", f"mean number of times in {number:,} draws")
    spread = 1.96 * np.sqrt(variance / number)
    style: dict[str, Any] = {"color": "0.5", "alpha": 0.25, "linewidth": 0, "label": "95 % band"}
    axis.fill_between(line, line - spread, line + spread, **style)
    axis.plot(line, line, color="0.5", linewidth=1)
    axis.scatter(mean_stated, drawn, s=12, zorder=3, label=f"{len(drawn):,} edges")
    axis.set(xlabel=words[0], ylabel=words[1])
    small_legend(axis)
    return axis


def _counts_of_edges(
    sampler: BoundSampler, seeds: SeedsLike, draws: int, call: dict[str, Any]
) -> tuple[Floats, Floats, int]:
    """Return how often each edge was drawn, the sum of its stated probabilities, and the largest
    number of times in a draw.
    """
    size = sampler.graph.num_edges
    times = np.zeros(size)
    stated = np.zeros(size)
    value = sampler.estimand().numpy()
    most_times = 1
    for epoch in range(draws):
        flow = sampler(seeds, **first_of_epoch(sampler, {"epoch": epoch, **call})).flows[-1]
        edges = flow.parent_eid.numpy()
        weight = flow.weight.double().numpy()
        # edges without an id are no edges of the graph, and a weight of 0 states no probability
        some = (edges >= 0) & (weight != 0)
        edges = edges[some]
        counts = np.bincount(edges, minlength=size)
        times += counts
        most_times = max(most_times, int(counts.max(initial=0)))
        stated += np.bincount(edges, weights=value[edges] / weight[some], minlength=size)
    return times, stated, most_times
