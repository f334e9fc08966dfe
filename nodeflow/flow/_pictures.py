"""Pictures: a NodeFlow on matplotlib axes, and its table in notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nodeflow._core.base.checks import as_count
from nodeflow._core.display.axes import axes_for
from nodeflow._core.display.columns import chosen, column_table, names_of
from nodeflow._core.display.html import funnel, page
from nodeflow._core.display.layered import draw_layered, draw_summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nodeflow.flow._flow import Flow
    from nodeflow.flow._layer import Layer
    from nodeflow.flow._node_flow import NodeFlow

# up to so many edges for each of max_nodes are drawn one by one
_EDGES_PER_NODE = 10


def plot(
    batch: NodeFlow,
    ax: Axes | Figure | None = None,
    *,
    label: str | Callable[[Layer], Any] | None = None,
    color: str | Callable[[Layer], Any] | None = None,
    width: str | Callable[[Flow], Any] | None = None,
    max_nodes: int = 200,
) -> Axes:
    """Plot this NodeFlow with matplotlib: layers as columns, the seeds marked in orange; returns
    the axes.

    A small NodeFlow shows every node and an arrow per edge; a dotted line joins a node to its own
    row in the next layer. Nodes show their parent ids; nodes without one (pooled) show their local
    id, as ``#0``. One with more than ``max_nodes`` nodes, or ten times as many
    edges, is summarised: a bar per layer, split by whether its nodes are in the next layer too, and
    the edges and in-degrees of every flow.

    Args:
        ax: the matplotlib axes to draw on, or a Figure, which gets axes and a size. None: a new
            ``pyplot`` figure, which a notebook shows.
        label: the text in the nodes: the name of a column of the layers with one number per node,
            or a function of a ``Layer`` that returns one number per node. Layers without the column
            show ids. None: ids.
        color: the colours of the nodes, given in the same way. Whole numbers of at most ten kinds
            are classes, others lie on a scale. The seeds then have thick rims. None: a colour per
            node type; where there is only one, inputs and hidden layers are blue, seeds orange.
        width: the widths of the arrows in proportion to their sizes: the name of a column of the
            flows, or a function of a ``Flow``. ``width=lambda flow: flow.weight`` shows estimator
            weights. The legend has the smallest and the largest; flows without the column have thin
            arrows. None: one width.
        max_nodes: the number of nodes up to which every node is drawn.

    ``label``, ``color`` and ``width`` are checked and used where every node is drawn only.

    Raises KeyError for a column that no layer or flow has, TypeError or ValueError for anything but
    a number per node or edge, TypeError for an ``ax`` that is no axes, ImportError without
    matplotlib.

    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph, NeighborSampler
    >>> batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), [2, 2])([1])
    >>> axis = batch.plot(Figure().subplots(), width=lambda flow: flow.weight)
    >>> [tick.get_text() for tick in axis.get_xticklabels()]
    ['layer 0', 'layer 1', 'layer 2']
    """
    most = as_count(max_nodes, "max_nodes")
    flows = [flow for _, flow in batch.flows.items()]
    sizes = [flow.num_edges for flow in flows]
    if sum(batch.layer_sizes) > most or sum(sizes) > _EDGES_PER_NODE * most:
        axis = axes_for(ax, (1.6 * batch.num_layers + 1, 3.4))
        draw_summary(axis, batch.layer_sizes, [_summary(flow) for flow in batch.flows])
        return axis
    layers = list(batch.layers)
    frames = [layer.data for layer in layers]
    labels = chosen(label, "label", layers, frames, batch.layer_sizes)
    widths = chosen(width, "width", flows, [flow.data for flow in flows], sizes)
    color_name: str | list[str] = _name(color, "color")
    colors: list[list[float] | None] | None = None
    typed = [layer for layer in layers if layer.type_sizes()]
    if color is not None:
        colors = chosen(color, "color", layers, frames, batch.layer_sizes)
    elif typed:
        colors = [_types(layer) if layer in typed else None for layer in layers]
        color_name = list(typed[0].schema.nodes)
    edges = {}
    every_width: list[float] = []
    for flow, values in zip(flows, widths, strict=True):
        src, dst = flow.edges()
        edges[flow.layers] = (src.tolist(), dst.tolist())
        every_width.extend([math.nan] * flow.num_edges if values is None else values)
    # the row of each destination among the sources, which a dotted line joins
    same_nodes = {}
    for i, flow in enumerate(batch.flows):
        if _joins_parents(flow):
            same_nodes[i] = flow.dst_in_src.tolist()
    return draw_layered(
        ax,
        names=[
            names_of(ids, values) for ids, values in zip(map(_ids, layers), labels, strict=True)
        ],
        edges=edges,
        same=same_nodes,
        colors=colors,
        color_name=color_name,
        widths=every_width if width is not None else None,
        width_name=_name(width, "width"),
    )


def _name(choice: object, argument: str) -> str:
    """Return what a legend calls numbers: the name of their column, or the argument."""
    if isinstance(choice, str):
        return choice
    return argument


def _types(layer: Layer) -> list[float]:
    """Return the number of the type of each node."""
    numbers: list[float] = layer.schema.types_of(layer.parent_nid.numpy(force=True)).tolist()
    return numbers


def _ids(layer: Layer) -> list[str]:
    if not layer.has_parent:
        return [f"#{i}" for i in range(layer.num_nodes)]
    return [str(v) for v in layer.parent_nid.tolist()]


def _joins_parents(flow: Flow) -> bool:
    return flow.src_layer.has_parent and flow.dst_layer.has_parent


def _summary(flow: Flow) -> tuple[str, int | None]:
    degrees = flow.in_degrees
    largest = 0
    if len(degrees):
        largest = int(degrees.max())
    shared = None
    if _joins_parents(flow):
        shared = int((flow.dst_in_src >= 0).sum())
    mean = flow.num_edges / max(flow.num_dst, 1)
    return f"{flow.num_edges:,} edges\nin-degree {mean:.3g}\n(largest {largest:,})", shared


def node_flow_html(batch: NodeFlow) -> str:
    """Return the sizes of layers and flows as a small picture, and the columns of their frames."""
    words = f"{batch.num_flows} flows, {sum(batch.layer_sizes):,} nodes, {sum(batch.flow_sizes):,} edges"
    frames = []
    for i, layer in enumerate(batch.layers):
        frames.append((f"layer {i}", layer.data))
        frames += [(f"layer {i} {name}", frame) for name, frame in layer.typed_frames().items()]
    for (i, j), flow in batch.flows.items():
        name = f"flow {i}"
        if j != i + 1:
            words += f", {i} → {j}: {flow.num_edges:,} edges"
            name = f"flow {i}, {j}"
        frames.append((name, flow.data))
        frames += [(f"{name} {of[1]}", frame) for of, frame in flow.typed_frames().items()]
    frames.append(("seeds", batch.seed_data))
    columns = column_table(frames, "frame")
    return page("NodeFlow", words, funnel(batch.layer_sizes, batch.flow_sizes), columns)
