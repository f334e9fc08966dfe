"""Figures written to files: a NodeFlow, training curves, parts of a graph. Axes: degrees, the ages
of a history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import check_one_of, check_type, describe
from nodeflow._core.display.axes import axes_for, require_matplotlib, small_legend, whole_ticks
from nodeflow._core.display.plain import draw_degrees
from nodeflow.control_variates import History
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph

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
