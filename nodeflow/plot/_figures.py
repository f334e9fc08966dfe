"""Figures of NodeFlows, training curves, parts of a graph, degrees, ages of a history, and batches of
samplers: their sizes, how these grow with the fanout, how often edges are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_count, check_one_of, check_type, describe
from nodeflow._core.base.types import Floats, SeedsLike
from nodeflow._core.display.axes import axes_for, require_matplotlib, small_legend, whole_ticks
from nodeflow._core.display.plain import draw_degrees
from nodeflow.control_variates import History
from nodeflow.flow import NamesLike, NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling import NeighborSampler, first_of_epoch
from nodeflow.sampling.base import BoundSampler, SamplerBase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nodeflow.distributed import PartsReport


def plot_degrees(
    graphs: Graph | Mapping[str, Graph], *, direction: str = "in", ax: Axes | None = None
) -> Axes:
    """Plot the distribution of the degrees of one or several graphs on logarithmic scales; returns
    the axes.

    A point says which share of all nodes has at least that degree (the complementary cumulative
    distribution), so that a power law is a line and no bins are chosen. The legend tells the share
    of nodes without edges.

    Args:
        graphs: a graph, or graphs by name.
        direction: "in" or "out".

    Raises TypeError for anything else, ValueError for another direction, ImportError without
    matplotlib. Collective where a graph lies on several processes.

    >>> from matplotlib.figure import Figure
    >>> axis = plot_degrees(Graph.from_edges([0, 1, 2], [1, 2, 1]), ax=Figure().subplots())
    >>> axis.lines[0].get_xydata().tolist()  # two of three nodes have an in-edge, one has two
    [[1.0, 0.6666666666666666], [2.0, 0.3333333333333333]]
    """
    check_one_of(direction, "direction", ("in", "out"))
    if not isinstance(graphs, Mapping):
        graphs = {f"{direction}-degrees": graphs}
    degrees = {}
    for name, graph in graphs.items():
        check_type(graph, f"graphs[{name!r}]", Graph, "a Graph; graphs are one, or a dict of them")
        degrees[name] = getattr(graph, f"{direction}_degrees")().numpy()
    axis = axes_for(ax, (5, 3.4))
    draw_degrees(axis, degrees)
    axis.set_xlabel(f"{direction}-degree")
    return axis


@checked
def plot_history_ages(history: History, *, ax: Axes | None = None) -> Axes:
    """Plot how old the rows of a history are, a line per layer; returns the axes.

    A point (a, s) says that a share s of the rows that were ever written is at most a steps old: 0
    steps for rows of the last commit. The legend tells the share of nodes whose row was never
    written.

    Args:
        history: the history. Where its graph lies on several processes, the rows that this one
            holds.

    Raises TypeError for anything else, ImportError without matplotlib. Cost: 8 bytes read per node
    and layer.

    >>> import torch
    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph
    >>> history = History(Graph.from_edges([0, 1], [1, 0]), {1: 4})
    >>> history.write(1, [0], torch.ones(1, 4))
    >>> history.commit()
    >>> axis = plot_history_ages(history, ax=Figure().subplots())
    >>> axis.get_legend().get_texts()[0].get_text()
    'layer 1 (50.0% never written)'
    """
    axis = axes_for(ax, (5, 3.4))
    for layer in sorted(history.widths):
        ages = history.age(layer).cpu().numpy()
        # an age of -1 says that the row was never written
        written = np.sort(ages[ages >= 0])
        value, count = np.unique(written, return_counts=True)
        never = 1 - len(written) / max(len(ages), 1)
        share = np.cumsum(count) / max(len(written), 1)
        label = f"layer {layer} ({never:.1%} never written)"
        axis.step(value, share, where="post", marker="o", markersize=3, label=label)
    axis.set(xlabel="age of the row in steps", ylabel="share of written rows", ylim=(0, 1.05))
    whole_ticks(axis)
    axis.grid(alpha=0.3)
    small_legend(axis, loc="lower right")
    return axis


def plot_node_flow(batch: NodeFlow, path: Path | str | None = None, **options: Any) -> Figure:
    """Make a figure of a NodeFlow, as ``batch.plot`` draws it, and write it; returns the matplotlib
    Figure.

    Args:
        batch: the NodeFlow.
        path: where to write the picture (PNG, SVG or PDF, by its ending), or None. A notebook shows
            the figure after ``%matplotlib inline``.
        options: ``label``, ``color``, ``width`` and ``max_nodes`` of ``NodeFlow.plot``.

    The figure does not belong to ``pyplot``, so programs that write many need not close them.
    Raises TypeError for anything but a NodeFlow, what ``NodeFlow.plot`` raises, ImportError without
    matplotlib.

    >>> from nodeflow import Graph, NeighborSampler
    >>> figure = plot_node_flow(NeighborSampler(Graph.from_edges([0, 1], [1, 0]), [2, 2])([1]))
    >>> len(figure.axes)
    1
    """
    if not isinstance(batch, NodeFlow):
        raise TypeError(
            f"batch must be a NodeFlow, got {describe(batch)}; a sampler makes one from a graph "
            "and seeds, create_full_node_flow(graph, num_layers) one of the whole graph"
        )
    figure = require_matplotlib()(layout="constrained")
    batch.plot(figure, **options)
    return _written(figure, path, dpi=150)


def plot_curves(
    runs: Mapping[str, Sequence[Any]],
    path: Path | str | None = None,
    *,
    metric: str = "score",
    title: str = "",
) -> Figure:
    """Plot training loss and validation score by epoch, side by side; returns the matplotlib
    Figure.

    Args:
        runs: the records of each run by its name; one name is not shown, more are in a legend. A
            record has ``epoch``, ``loss`` and ``score``, as those of ``nodeflow.training`` have.
            Epochs whose score is NaN have none.
        metric: name of the score, for the axis.
        title: above the picture.

    Raises ImportError without matplotlib.

    >>> from nodeflow.training import EpochRecord
    >>> records = [EpochRecord(epoch, 1 / epoch, 0.5, 1.0, 10.0, 100.0) for epoch in (1, 2, 3)]
    >>> len(plot_curves({"sage": records}).axes)
    2
    """
    figure, left, right = _two_axes()
    check_type(runs, "runs", Mapping, "a dict from names of runs to their records")
    style: dict[str, Any] = {"marker": "o", "markersize": 3}
    for name, records in runs.items():
        points = np.array([(record.epoch, record.loss, record.score) for record in records])
        epoch, loss, score = points.reshape(-1, 3).T
        left.plot(epoch, loss, label=name, **style)
        scored = ~np.isnan(score)
        right.plot(epoch[scored], score[scored], label=name, **style)
    left.set(xlabel="epoch", ylabel="training loss")
    right.set(xlabel="epoch", ylabel=f"validation {metric.replace('_', ' ')}")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        whole_ticks(axis)
    if len(runs) > 1:
        figure.legend(
            *left.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=3,
            fontsize=8,
            frameon=False,
        )
    figure.suptitle(title)
    return _written(figure, path)


@checked
def plot_parts(report: PartsReport, path: Path | str | None = None) -> Figure:
    """Draw the sizes of the parts of a graph, bars of masters and mirrors, and of edges; returns
    the Figure.

    Args:
        report: as ``GraphParts.report`` gives it.

    Raises TypeError for anything but a report, ImportError without matplotlib.

    >>> from nodeflow.distributed import PartsReport
    >>> report = PartsReport(4, 4, 2, (2, 2), (2, 2), (1, 1), (1, 1), None)
    >>> [axis.get_ylabel() for axis in plot_parts(report).axes]
    ['nodes', 'edges']
    """
    figure, left, right = _two_axes()
    parts = range(len(report.masters))
    left.bar(parts, report.masters, color="tab:blue", label="masters")
    left.bar(parts, report.mirrors, bottom=report.masters, color="tab:orange", label="mirrors")
    right.bar(parts, report.edges, color="0.5", label="edges")
    for axis, word in ((left, "nodes"), (right, "edges")):
        axis.set(xlabel="part", ylabel=word)
        whole_ticks(axis)
    small_legend(left)
    figure.suptitle(
        f"replication factor {report.replication_factor:.2f}, {report.cut:.1%} of the edges cut",
        fontsize=10,
    )
    return _written(figure, path)


def _two_axes() -> tuple[Figure, Axes, Axes]:
    figure = require_matplotlib()(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    return figure, left, right


def _written(figure: Figure, path: Path | str | None, dpi: int = 120) -> Figure:
    if path is not None:
        figure.savefig(path, dpi=dpi)
    return figure


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
