"""A parent graph as a picture on matplotlib axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nodeflow._base.checks import as_count, as_ids
from nodeflow._base.types import IdsLike
from nodeflow._display.axes import axes_for
from nodeflow._display.columns import chosen, names_of
from nodeflow._display.plain import Plain, draw_degrees, draw_plain
from nodeflow._rows.rows import take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nodeflow.graph._graph import Graph

_EDGES_PER_NODE = 10  # up to so many edges for each of max_nodes are drawn one by one


def plot(
    graph: Graph,
    ax: Axes | None = None,
    *,
    nodes: IdsLike | None = None,
    seeds: IdsLike = (),
    label: str | Callable[[Tensor], Any] | None = None,
    color: str | Callable[[Tensor], Any] | None = None,
    width: str | Callable[[Tensor], Any] | None = None,
    max_nodes: int = 200,
) -> Axes:
    """Plot this graph, or some of its nodes, with matplotlib; returns the axes.

    A small graph shows every node with its id and an arrow per edge, joined nodes close to each other. One with more
    than ``max_nodes`` nodes, or ten times as many edges, is summarised by its distributions of in- and out-degrees.

    Args:
        ax: the matplotlib axes to draw on. None: those of a new ``pyplot`` figure, which a notebook shows.
        nodes: ids of the nodes to draw, with the edges among them; repeats count once. None: all.
        seeds: ids of nodes that are marked by a rim.
        label: the text in the nodes: the name of a node column with one number per node, or a function of node ids
            (int64) that returns a number for each. None: ids.
        color: the colours of the nodes, given in the same way. Whole numbers of at most ten kinds are classes, others
            lie on a scale. None: one colour.
        width: the widths of the arrows in proportion to their sizes: the name of an edge column with one number per
            edge, or a function of edge ids. The legend has the smallest and the largest. None: one width.
        max_nodes: the number of nodes up to which every node is drawn.

    Of columns that are fetched (files, caches), the rows of the drawn nodes and edges are fetched, and only these.

    Raises IndexError for an id out of range, KeyError for an unknown column, TypeError or ValueError for anything but
    a number per node or edge, TypeError for an ``ax`` that is no axes or a graph that lies on several processes,
    ImportError without matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph
    >>> axis = Graph.from_edges([0, 1, 2], [1, 2, 0]).plot(Figure().subplots(), seeds=[1])
    >>> [text.get_text() for text in axis.texts if text.get_text()]
    ['0', '1', '2']
    """
    if graph.peers.size > 1:
        raise TypeError(
            "a graph that lies on several processes is not plotted, since none of them has all edges; plot a batch, or "
            "the sizes of the parts with nodeflow.plot.plot_parts"
        )
    most, size = as_count(max_nodes, "max_nodes"), graph.num_nodes
    marked = set(as_ids(seeds, "seeds", size).tolist())
    drawn = None if nodes is None else torch.from_numpy(as_ids(nodes, "nodes", size)).unique()
    count = size if drawn is None else len(drawn)
    if count <= most:
        drawn = torch.arange(size) if drawn is None else drawn
        src, dst, eid = graph.in_edges(drawn)
        inside = torch.isin(src, drawn)
        src, dst, eid = src[inside], dst[inside], eid[inside]
        if len(eid) <= _EDGES_PER_NODE * most:
            return _drawn(graph, ax, drawn, src, dst, eid, marked, label, color, width)
    axis = axes_for(ax, (5, 3.4))
    where = {} if drawn is None else {"v": drawn}
    degrees = {"in-degrees": graph.in_degrees(**where), "out-degrees": graph.out_degrees(**where)}
    draw_degrees(axis, {name: values.numpy() for name, values in degrees.items()})
    shown = f"{size:,} nodes, {graph.num_edges:,} edges"
    axis.set_title(shown if drawn is None else f"{count:,} nodes of {shown}", fontsize=10)
    return axis


def _drawn(
    graph: Graph,
    ax: Axes | None,
    nodes: Tensor,
    src: Tensor,
    dst: Tensor,
    eid: Tensor,
    marked: set[int],
    label: Any,
    color: Any,
    width: Any,
) -> Axes:
    def of(choice: Any, argument: str, ids: Tensor, frame: Any) -> list[float] | None:
        return chosen(choice, argument, [ids], [frame], [len(ids)], lambda column: take_rows(column, ids))[0]

    picture = Plain(
        names=names_of([str(v) for v in nodes.tolist()], of(label, "label", nodes, graph.ndata)),
        src=torch.searchsorted(nodes, src).tolist(),
        dst=torch.searchsorted(nodes, dst).tolist(),
        marked=[i for i, v in enumerate(nodes.tolist()) if v in marked],
        colors=of(color, "color", nodes, graph.ndata),
        color_name=color if isinstance(color, str) else "color",
        widths=of(width, "width", eid, graph.edata),
        width_name=width if isinstance(width, str) else "width",
    )
    side = 1.5 + 0.9 * len(nodes) ** 0.5
    axis = axes_for(ax, (side, side))
    draw_plain(axis, picture)
    return axis
