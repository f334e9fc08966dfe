"""Drawings of layered graphs: every node and edge of a small one, and a summary of a large one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._core.base.types import Floats
from nodeflow._core.display.axes import axes_for, colors_of, ink, ink_on, legend_below, widths_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INPUT = "tab:blue"
SEED = "tab:orange"
_MOST_ROWS = 24
# from one column of a layer to the next; layers are 1 apart
_ASIDE = 0.3


def draw_layered(
    ax: Axes | Figure | None,
    *,
    names: list[list[str]],
    edges: dict[tuple[int, int], tuple[list[int], list[int]]],
    same: dict[int, list[int]],
    colors: list[list[float] | None] | None,
    color_name: str | list[str],
    widths: list[float] | None,
    width_name: str,
) -> Axes:
    """Draw every node as a dot, layers as columns, and every edge as an arrow.

    Args:
        ax: as in ``axes_for``.
        names: the text in each node, by layer; their number is the size of the layer.
        edges: ``(sources, destinations)``, as rows of their layers, by pair of layers.
        same: by layer, of every node of the next layer its row in this one, -1 where it is not in
            it.
        colors: a number per node by layer, None for a layer without; None: colours tell seeds from
            the others.
        color_name, width_name: labels of the colour scale, or of its classes, and of the width
            legend.
        widths: a number per edge, in the order of ``edges``, NaN where a flow has none; None: all
            have one width.
    """
    sizes = [len(layer) for layer in names]
    skips = any(j != i + 1 for i, j in edges)
    points, centers, wide, tallest = _places(sizes)
    margin = 1.2 if skips else 0.7  # above and below the nodes, in rows
    axis = axes_for(ax, (1.5 * wide, 0.36 * (tallest + 2 * margin) + 0.4))
    _draw_same(axis, points, same)
    _draw_edges(axis, points, edges, widths_of(axis, widths or [], width_name))
    if skips:
        axis.plot([], [], color="tab:purple", label="skips layers")
    faces = iter(_faces(axis, sizes, colors, color_name))
    has_rims = colors is not None
    for places, texts in zip(points, names, strict=True):
        some = list(islice(faces, len(texts)))
        marked = range(len(texts)) if texts is names[-1] else ()
        draw_dots(axis, places, texts, some, marked, rims=has_rims)
    if has_rims:
        label_seeds(axis, rims=True)
    _layer_ticks(axis, centers)
    axis.xaxis.tick_top()  # the legend is below
    axis.set_yticks([])
    height = tallest / 2 - 0.5 + margin
    axis.set(xlim=(-0.3, wide - 0.7), ylim=(-height, height))
    legend_below(axis)
    return axis


def _draw_same(axis: Axes, points: list[Floats], same: dict[int, list[int]]) -> None:
    """Draw dotted lines from nodes to their own rows in the next layer."""
    for i, rows in same.items():
        for end, row in zip(points[i + 1], rows, strict=True):
            if row >= 0:
                line = np.stack([points[i][row], end], 1)
                axis.plot(*line, ":", color="0.6", linewidth=1.2, zorder=0, label="the same node")


def _draw_edges(
    axis: Axes,
    points: list[Floats],
    edges: dict[tuple[int, int], tuple[list[int], list[int]]],
    widths: list[float],
) -> None:
    """Draw an arrow for every edge; those of a flow that skips layers are bent."""
    # widths come in the order of the edges, flow after flow
    width = iter(widths)
    for (i, j), ends in edges.items():
        for src, dst in zip(*ends, strict=True):
            start = points[i][src]
            end = points[j][dst]
            bend = 0.0
            color = "0.5"
            if j != i + 1:
                # it goes around the nodes between, on its own side of the middle
                bend = -0.3 if start[1] + end[1] > 0 else 0.3
                color = "tab:purple"
            arrow(axis, start, end, bend, color, next(width, 1.0))


def _places(sizes: Sequence[int]) -> tuple[list[Floats], list[float], float, int]:
    """Return the points of the nodes by layer, where layers are, and how wide and tall all are.

    A layer of many nodes has several columns, so that a picture fits on a screen.
    """
    points = []
    centers = []
    tallest = 1
    left = 0.0
    for size in sizes:
        num_columns = max(math.ceil(size / _MOST_ROWS), 1)
        num_rows = max(math.ceil(size / num_columns), 1)  # as many in each column
        column, row = np.divmod(np.arange(size), num_rows)
        points.append(np.stack([left + _ASIDE * column, (num_rows - 1) / 2 - row], 1))
        width = _ASIDE * (num_columns - 1)
        centers.append(left + width / 2)
        left += width + 1
        tallest = max(tallest, num_rows)
    return points, centers, left, tallest


def _faces(
    axis: Axes,
    sizes: Sequence[int],
    colors: list[list[float] | None] | None,
    color_name: str | list[str],
) -> list[Any]:
    """The colours of all nodes, layer after layer."""
    if colors is None:
        return [INPUT] * sum(sizes[:-1]) + [SEED] * sizes[-1]
    values: list[float | None] = []
    for size, numbers in zip(sizes, colors, strict=True):
        values += numbers or [None] * size
    return colors_of(axis, values, color_name)


def arrow(axis: Axes, start: Floats, end: Floats, bend: float, color: str, width: float) -> None:
    """Draw an arrow from one dot to another."""
    style: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 9.5, "shrinkB": 9.5, "color": color}
    style |= {"linewidth": width, "connectionstyle": f"arc3,rad={bend}"}
    # an annotation without text: arrows of matplotlib end at dots of fixed size only so
    axis.annotate("", tuple(end), tuple(start), arrowprops=style)


def draw_dots(
    axis: Axes,
    points: Floats,
    names: list[str],
    faces: list[Any],
    marked: Collection[int],
    *,
    rims: bool,
) -> None:
    """Draw nodes as dots with their names in them.

    ``rims``: colours are values, so that thick rims tell the ``marked`` nodes from the others.
    """
    if not names:
        return
    edges = faces
    widths = [1.0] * len(names)
    label = None
    if rims:
        edges = ["0.5"] * len(names)
        for i in marked:
            edges[i] = ink(axis)
            widths[i] = 2.5
    elif len(marked) == len(names):
        label = "seeds"
    axis.scatter(
        points[:, 0],
        points[:, 1],
        s=330,
        facecolor=faces,
        edgecolor=edges,
        linewidth=widths,
        zorder=2,
        label=label,
    )
    # names of more letters are written smaller, so that they fit into a dot
    size = np.interp(max(map(len, names)), [2, 5], [8.5, 5])
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": size,
        "zorder": 3,
        "parse_math": False,
    }
    for (x, y), name, face in zip(points, names, faces, strict=True):
        axis.text(x, y, name, color=ink_on(face), **style)


def label_seeds(axis: Axes, *, rims: bool) -> None:
    """Put the word "seeds" into the legend, beside a rim or an orange dot."""
    face = SEED
    edge = SEED
    if rims:
        face = "none"
        edge = ink(axis)
    axis.scatter([], [], s=330, facecolor=face, edgecolor=edge, linewidth=2.5, label="seeds")


def _layer_ticks(axis: Axes, places: Sequence[float]) -> None:
    axis.set_xticks(places, [f"layer {i}" for i in range(len(places))], fontsize=9)
    axis.tick_params(axis="x", length=0)
    axis.spines[:].set_visible(False)


def draw_summary(axis: Axes, sizes: Sequence[int], flows: Sequence[tuple[str, int | None]]) -> None:
    """Draw a bar per layer, split by whether nodes are in the next layer too; between them, words
    on each flow.

    ``flows``: of each, its words and the number of nodes that both of its layers hold, None:
    unknown.
    """
    from matplotlib.ticker import MaxNLocator

    last = len(sizes) - 1
    most = max(*sizes, 1)
    kept = np.array([shared or 0 for _, shared in flows])
    if kept.any():
        axis.bar(range(last), kept, 0.35, color="0.6", label="also in the next layer")
    new = np.array(sizes[:last]) - kept
    axis.bar(range(last), new, 0.35, bottom=kept, color=INPUT, label="new in this layer")
    axis.bar([last], [sizes[-1]], 0.35, color=SEED, label="seeds")
    for i, size in enumerate(sizes):
        axis.text(i, size, f"{size:,}", ha="center", va="bottom", fontsize=9)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5, "linespacing": 1.3}
    for i, (words, _) in enumerate(flows):
        axis.text(i + 0.5, 1.17 * most, words, **style)
    _layer_ticks(axis, range(len(sizes)))
    axis.set(xlim=(-0.4, last + 0.4), ylim=(0, 1.32 * most), ylabel="nodes")
    axis.spines["left"].set_visible(True)
    axis.spines["left"].set_bounds(0, most)
    # whole numbers only, up to the largest layer: above it are the words of the flows
    ticks = MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]).tick_values(0, most)
    axis.set_yticks([tick for tick in ticks if tick <= most])
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, fontsize=8, frameon=False)
