"""Distributions of degrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nodeflow._base.checks import check_one_of, check_type
from nodeflow._display.axes import axes_for
from nodeflow._display.plain import draw_degrees
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
