"""A parent graph as a picture on matplotlib axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import ALL, as_count, as_ids
from nodeflow._core.base.types import IdsLike
from nodeflow._core.display.axes import axes_for
from nodeflow._core.display.columns import chosen, names_of
from nodeflow._core.display.plain import draw_degrees, draw_plain
from nodeflow._core.rows.rows import take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nodeflow.graph._graph import Graph

# up to so many edges for each of max_nodes are drawn one by one
_EDGES_PER_NODE = 10


def plot(
    graph: Graph,
    ax: Axes | Figure | None = None,
    *,
    nodes: IdsLike | None = None,
    seeds: IdsLike = (),
    label: str | Callable[[Tensor], Any] | None = None,
    color: str | Callable[[Tensor], Any] | None = None,
    width: str | Callable[[Tensor], Any] | None = None,
    max_nodes: int = 200,
) -> Axes:
    """Plot this graph, or some of its nodes, with matplotlib; returns the axes.

    A small graph shows every node with its id and an arrow per edge, joined nodes close to each
    other. One with more than ``max_nodes`` nodes, or ten times as many edges, is summarised by its
    distributions of in- and out-degrees.

    Args:
        ax, max_nodes: as for ``NodeFlow.plot``.
        nodes: ids of the nodes to draw, with the edges among them; repeats count once. None: all.
        seeds: ids of nodes that are marked: in orange, or by a rim where colours are values.
        label, color, width: as for ``NodeFlow.plot``: columns of the graph by name, of one number
            per node or edge, or functions of ids (int64) that return a number for each. None: ids,
            a colour per node type, one width.

    Of columns that are fetched (files, caches), the rows of the drawn nodes and edges are fetched,
    and only these.

    Raises IndexError for an id out of range, KeyError for an unknown column, TypeError or
    ValueError for anything but a number per node or edge, TypeError for an ``ax`` that is no axes
    or a graph that lies on several processes, ImportError without matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph
    >>> axis = Graph.from_edges([0, 1, 2], [1, 2, 0]).plot(Figure().subplots(), seeds=[1])
    >>> [text.get_text() for text in axis.texts if text.get_text()]
    ['0', '1', '2']
    """
    if graph.in_parts:
        raise TypeError(
            "a graph that lies on several processes is not plotted, since none of them has all "
            "edges; plot a batch, or the sizes of the parts with nodeflow.plot.plot_parts"
        )
    most = as_count(max_nodes, "max_nodes")
    size = graph.num_nodes
    marked = torch.from_numpy(as_ids(seeds, "seeds", size))
    drawn = torch.arange(size)
    if nodes is not None:
        drawn = torch.from_numpy(as_ids(nodes, "nodes", size)).unique()
    if len(drawn) <= most:
        src, dst, eid = graph.in_edges(drawn)
        # edges to nodes that are not drawn would end nowhere
        inside = torch.isin(src, drawn)
        if int(inside.sum()) <= _EDGES_PER_NODE * most:
            edges = (src[inside], dst[inside], eid[inside])
            return _every_node(graph, ax, drawn, edges, marked, label, color, width)
    axis = axes_for(ax, (5, 3.4))
    v = ALL if nodes is None else drawn
    degrees = {"in-degrees": graph.in_degrees(v), "out-degrees": graph.out_degrees(v)}
    draw_degrees(axis, {name: values.numpy() for name, values in degrees.items()})
    title = f"{size:,} nodes, {graph.num_edges:,} edges"
    if nodes is not None:
        title = f"{len(drawn):,} nodes of {title}"
    axis.set_title(title, fontsize=10)
    return axis


def _every_node(
    graph: Graph,
    ax: Axes | Figure | None,
    drawn: Tensor,
    edges: tuple[Tensor, Tensor, Tensor],
    marked: Tensor,
    label: Any,
    color: Any,
    width: Any,
) -> Axes:
    """Draw every node and every edge; ``edges`` are their sources, destinations and ids."""

    def numbers(choice: Any, argument: str, ids: Tensor, frame: Any) -> list[float] | None:
        taken = chosen(choice, argument, [ids], [frame], [len(ids)], lambda x: take_rows(x, ids))
        return taken[0]

    src, dst, eid = edges
    names = names_of([str(v) for v in drawn.tolist()], numbers(label, "label", drawn, graph.ndata))
    colors = numbers(color, "color", drawn, graph.ndata)
    widths = numbers(width, "width", eid, graph.edata)
    color_name: Any = color if isinstance(color, str) else "color"
    width_name = "width"
    if isinstance(width, str):
        width_name = width
    types = list(graph.schema.nodes)
    if color is None and len(types) > 1:
        colors = graph.schema.types_of(drawn.numpy()).tolist()
        color_name = types
    side = 1.5 + 0.9 * len(drawn) ** 0.5
    axis = axes_for(ax, (side, side))
    sources = torch.searchsorted(drawn, src).tolist()
    targets = torch.searchsorted(drawn, dst).tolist()
    is_marked = torch.isin(drawn, marked)
    rims = set(is_marked.nonzero()[:, 0].tolist())
    draw_plain(
        axis,
        names,
        sources,
        targets,
        rims,
        colors=colors,
        color_name=color_name,
        widths=widths,
        width_name=width_name,
    )
    return axis
