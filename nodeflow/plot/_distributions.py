"""Distributions: of degrees, and of the ages of the rows of a history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nodeflow._base.checks import check_one_of, check_type
from nodeflow._display.axes import axes_for, small_legend, whole_ticks
from nodeflow._display.plain import draw_degrees
from nodeflow.control_variates import History
from nodeflow.graph import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_degrees(graphs: Graph | Mapping[str, Graph], *, direction: str = "in", ax: Axes | None = None) -> Axes:
    """Plot the distribution of the degrees of one or several graphs on logarithmic scales; returns the axes.

    A point says which share of all nodes has at least that degree (the complementary cumulative distribution), so that
    a power law is a line and no bins are chosen. The legend tells the share of nodes without edges.

    Args:
        graphs: a graph, or graphs by name.
        direction: "in" or "out".
        ax: the matplotlib axes to draw on; None: new ones.

    Raises TypeError for anything else, ValueError for another direction, ImportError without matplotlib. Collective
    where a graph lies on several processes.

    >>> from matplotlib.figure import Figure
    >>> axis = plot_degrees(Graph.from_edges([0, 1, 2], [1, 2, 1]), ax=Figure().subplots())
    >>> axis.lines[0].get_xydata().tolist()  # two of three nodes have an in-edge, one has two
    [[1.0, 0.6666666666666666], [2.0, 0.3333333333333333]]
    """
    check_one_of(direction, "direction", ("in", "out"))
    named = graphs if isinstance(graphs, Mapping) else {f"{direction}-degrees": graphs}
    for name, graph in named.items():
        check_type(graph, f"graphs[{name!r}]" if named is graphs else "graphs", Graph, "a Graph, or a dict of them")
    axis = axes_for(ax, (5, 3.4))
    degrees = {
        name: (graph.in_degrees() if direction == "in" else graph.out_degrees()).numpy()
        for name, graph in named.items()
    }
    draw_degrees(axis, degrees)
    axis.set_xlabel(f"{direction}-degree")
    return axis


def plot_history_ages(history: History, *, ax: Axes | None = None) -> Axes:
    """Plot how old the rows of a history are, a line per layer; returns the axes.

    A point (a, s) says that a share s of the rows that were ever written is at most a steps old: 0 steps for rows of
    the last commit. The legend tells the share of nodes whose row was never written.

    Args:
        history: the history. Where its graph lies on several processes, the rows that this one holds.
        ax: the matplotlib axes to draw on; None: new ones.

    Raises TypeError for anything else, ImportError without matplotlib. Cost: 8 bytes read per node and layer.

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
    check_type(history, "history", History, "a History")
    axis = axes_for(ax, (5, 3.4))
    for layer in sorted(history.widths):
        ages = history.age(layer).cpu().numpy()
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
