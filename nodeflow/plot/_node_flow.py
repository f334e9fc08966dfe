"""A NodeFlow as a figure of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeflow._base.checks import describe
from nodeflow._display.axes import require_matplotlib
from nodeflow._display.layered import draw_layers, figure_size
from nodeflow.flow import NodeFlow, picture_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_node_flow(batch: NodeFlow, path: Path | str | None = None, **options: Any) -> Figure:
    """Make a figure of a NodeFlow, as ``batch.plot`` draws it, and write it; returns the matplotlib Figure.

    Args:
        batch: the NodeFlow.
        path: where to write the picture (PNG, SVG or PDF, by its ending), or None. A notebook shows the figure after
            ``%matplotlib inline``.
        options: ``label``, ``color``, ``width`` and ``max_nodes`` of ``NodeFlow.plot``.

    The figure does not belong to ``pyplot``, so programs that write many need not close them. Raises TypeError for
    anything but a NodeFlow, what ``NodeFlow.plot`` raises, ImportError without matplotlib.

    >>> from nodeflow import Graph, NeighborSampler
    >>> figure = plot_node_flow(NeighborSampler(Graph.from_edges([0, 1], [1, 0]), [2, 2])([1]))
    >>> len(figure.axes)
    1
    """
    if not isinstance(batch, NodeFlow):
        raise TypeError(
            f"batch must be a NodeFlow, got {describe(batch)}; a sampler makes one from a graph and seeds, "
            "create_full_node_flow(graph, num_layers) one of the whole graph"
        )
    picture = picture_of(batch, **options)
    figure = require_matplotlib()(figsize=figure_size(picture), layout="constrained")
    draw_layers(figure.subplots(), picture)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
