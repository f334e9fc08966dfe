"""Drawings of plain directed graphs: every node and edge of a small one, and the degrees of a large
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Floats
from nodeflow._core.display.axes import colors_of, legend_below, small_legend, widths_of
from nodeflow._core.display.layered import INPUT, SEED, arrow, draw_dots, label_seeds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = 150


def draw_plain(
    axis: Axes,
    names: list[str],
    src: list[int],
    dst: list[int],
    marked: set[int],
    *,
    colors: list[float] | None = None,
    color_name: str | list[str] = "",
    widths: list[float] | None = None,
    width_name: str = "",
) -> None:
    """Draw every node as a dot and every edge as an arrow; joined nodes lie close to each other.

    The arguments are as in ``draw_layered``, for one layer. ``src``, ``dst`` and ``marked`` are
    rows of ``names``.
    """
    from matplotlib.transforms import offset_copy

    points = layout(len(names), src, dst)
    width = iter(widths_of(axis, widths or [], width_name))
    # several edges between two nodes, in either direction, are bent apart
    edges = list(zip(src, dst, strict=True))
    seen: Counter[tuple[int, int]] = Counter()
    for u, v in edges:
        thickness = next(width, 1.0)
        if u != v:
            bend = 0.15 * seen[u, v] + 0.12 * ((v, u) in edges)
            arrow(axis, points[u], points[v], bend, "0.5", thickness)
        else:
            # further loops of a node are larger circles, in points, so of one size on any scale
            number = seen[u, u] + 1
            figure = axis.get_figure(root=True)
            above = offset_copy(axis.transData, figure, y=6 + 3 * number, units="points")
            style: dict[str, Any] = {"fc": "none", "ec": "0.5", "zorder": 1, "transform": above}
            x, y = points[u]
            axis.scatter(x, y, s=100 + 100 * number, linewidth=thickness, **style)
        seen[u, v] += 1
    if colors is None:
        faces: list[Any] = [SEED if i in marked else INPUT for i in range(len(names))]
    else:
        faces = colors_of(axis, colors, color_name)
    has_rims = colors is not None
    draw_dots(axis, points, names, faces, marked, rims=has_rims)
    if marked and (has_rims or len(marked) < len(names)):
        label_seeds(axis, rims=has_rims)
    if any(u == v for u, v in edges):
        axis.scatter([], [], s=200, facecolor="none", edgecolor="0.5", label="self-loop")
    axis.set_axis_off()
    axis.margins(0.15)
    legend_below(axis)


def layout(count: int, src: Sequence[int], dst: Sequence[int]) -> Floats:
    """Return a place per node, ``[count, 2]``, such that joined nodes are close (Fruchterman and
    Reingold 1991).

    It begins with a spiral and draws nothing at random. Memory in proportion to ``count ** 2``.
    """
    angle = 2.4 * np.arange(count)
    radius = np.sqrt(np.arange(count) + 0.5)
    place = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    if count < 2:
        return place
    joined = np.zeros((count, count))
    joined[src, dst] = 1
    joined[dst, src] = 1
    np.fill_diagonal(joined, 0)
    heat = float(np.abs(place).max()) / 5
    # a fixed number of steps that become smaller: the same graph always has the same picture
    for step in range(_STEPS):
        between = place[:, None] - place[None]
        distance = np.maximum(np.linalg.norm(between, axis=2), 0.01)
        # the ideal distance is 1; a pull to the middle holds pieces that nothing joins
        force = 1 / distance**2 - joined * distance
        move = (between * force[:, :, None]).sum(1) - 0.5 * place
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 0.01)
        place += move / length * np.minimum(length, heat * (1 - step / _STEPS))
    return place


def draw_degrees(axis: Axes, degrees: dict[str, Ints]) -> None:
    """Draw distributions of degrees: the share of nodes of at least each degree, both on
    logarithmic scales.

    Nodes of degree 0 cannot be on such a scale, so the legend tells their share.
    """
    for name, values in degrees.items():
        value, count = np.unique(values, return_counts=True)
        at_least = np.cumsum(count[::-1])[::-1] / max(len(values), 1)
        isolated = np.count_nonzero(values == 0) / max(len(values), 1)
        if isolated:
            label = f"{name} ({isolated:.1%} have degree 0)"
        else:
            label = name
        axis.plot(value[value > 0], at_least[value > 0], marker="o", markersize=3, label=label)
    axis.set(
        xscale="log", yscale="log", xlabel="degree", ylabel="share of nodes of at least this degree"
    )
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.grid(alpha=0.3)
    small_legend(axis)
