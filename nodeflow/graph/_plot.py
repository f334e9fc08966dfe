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
from nodeflow._display.plain import draw_degrees, draw_plain
from nodeflow._rows.rows import take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nodeflow.graph._graph import Graph

_EDGES_PER_NODE = 10  # up to so many edges for each of max_nodes are drawn one by one


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
    if graph.peers.size > 1:
        raise TypeError(
            "a graph that lies on several processes is not plotted, since none of them has all "
            "edges; plot a batch, or the sizes of the parts with nodeflow.plot.plot_parts"
        )
    most = as_count(max_nodes, "max_nodes")
    size = graph.num_nodes
    marked = set(as_ids(seeds, "seeds", size).tolist())
    drawn = None if nodes is None else torch.from_numpy(as_ids(nodes, "nodes", size)).unique()
    count = size if drawn is None else len(drawn)
    if count <= most:
        drawn = torch.arange(size) if drawn is None else drawn
        src, dst, eid = graph.in_edges(drawn)
        inside = torch.isin(src, drawn)
        src = src[inside]
        dst = dst[inside]
        eid = eid[inside]
        if len(eid) <= _EDGES_PER_NODE * most:

            def of(choice: Any, argument: str, ids: Tensor, frame: Any) -> list[float] | None:
                return chosen(
                    choice,
                    argument,
                    [ids],
                    [frame],
                    [len(ids)],
                    lambda column: take_rows(column, ids),
                )[0]

            ids = drawn.tolist()
            names = names_of(list(map(str, ids)), of(label, "label", drawn, graph.ndata))
            sources, targets = (torch.searchsorted(drawn, end).tolist() for end in (src, dst))
            colors = of(color, "color", drawn, graph.ndata)
            widths = of(width, "width", eid, graph.edata)
            words: list[Any] = [
                choice if isinstance(choice, str) else name
                for choice, name in ((color, "color"), (width, "width"))
            ]
            if color is None and len(types := graph.schema.nodes) > 1:
                colors = graph.schema.types_of(drawn.numpy()).tolist()
                words[0] = list(types)
            side = 1.5 + 0.9 * len(ids) ** 0.5
            axis = axes_for(ax, (side, side))
            rims = {i for i, v in enumerate(ids) if v in marked}
            draw_plain(axis, names, sources, targets, rims, colors, words[0], widths, words[1])
            return axis
    axis = axes_for(ax, (5, 3.4))
    where = {} if drawn is None else {"v": drawn}
    degrees = {"in-degrees": graph.in_degrees(**where), "out-degrees": graph.out_degrees(**where)}
    draw_degrees(axis, {name: values.numpy() for name, values in degrees.items()})
    shown = f"{size:,} nodes, {graph.num_edges:,} edges"
    axis.set_title(shown if drawn is None else f"{count:,} nodes of {shown}", fontsize=10)
    return axis
