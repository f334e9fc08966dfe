"""Drawings of layered graphs: every node and edge of a small one, and a summary of a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nodeflow._display.axes import axes_for, colors_of, ink, ink_on, legend_below, widths_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]
_INPUT = "tab:blue"
_SEED = "tab:orange"
_MOST_ROWS = 24
_ASIDE = 0.3  # from one column of a layer to the next; layers are 1 apart


def draw_layered(
    ax: Axes | Figure | None,
    *,
    names: list[list[str]],
    hollow: list[bool],
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
        hollow: by layer, whether its nodes are drawn hollow.
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
    points, centers, (wide, tallest) = _places(sizes)
    last = len(sizes) - 1
    margin = 1.2 if skips else 0.7  # above and below the nodes, in rows
    axis = axes_for(ax, (1.5 * wide, 0.36 * (tallest + 2 * margin) + 0.4))
    for i, rows in same.items():
        for end, row in zip(points[i + 1], rows, strict=True):
            if row >= 0:
                line = zip(points[i][row], end, strict=True)
                axis.plot(*line, ":", color="0.6", linewidth=1.2, zorder=0, label="the same node")
    width = iter(widths_of(axis, widths or [], width_name))
    for (i, j), (sources, destinations) in edges.items():
        for src, dst in zip(sources, destinations, strict=True):
            start = points[i][src]
            end = points[j][dst]
            # a line that skips layers goes around the nodes between, on its own side of the middle
            bend = 0.0 if j == i + 1 else -0.3 if start[1] + end[1] > 1 - tallest else 0.3
            arrow(axis, start, end, bend, "tab:purple" if bend else "0.5", next(width, 1.0))
    if skips:
        axis.plot([], [], color="tab:purple", label="skips layers")
    faces = _faces(axis, names, colors, color_name)
    for i, texts in enumerate(names):
        is_hollow = hollow[i] and colors is None
        _dots(
            axis, points[i], faces[i], hollow=is_hollow, seeds=i == last, colored=colors is not None
        )
        write_names(
            axis, points[i], texts, ["0.5" if is_hollow else ink_on(face) for face in faces[i]]
        )
    if colors is not None:
        axis.scatter(
            [], [], s=330, facecolor="none", edgecolor=ink(axis), linewidth=2.5, label="seeds"
        )
    _layer_ticks(axis, centers)
    axis.xaxis.tick_top()  # the legend is below
    axis.set_yticks([])
    axis.set(xlim=(-0.3, wide - 0.7), ylim=(1 - tallest - margin, margin))
    legend_below(axis)
    return axis


def _places(sizes: Sequence[int]) -> tuple[list[list[Point]], list[float], tuple[float, int]]:
    """Return the points of the nodes and the middle of each layer, and how wide and tall all are
    together.

    A layer of many nodes has several columns, so that a picture fits on a screen.
    """
    columns = [max(-(-size // _MOST_ROWS), 1) for size in sizes]
    heights = [-(-size // count) for size, count in zip(sizes, columns, strict=True)]
    tallest = max(*heights, 1)
    points: list[list[Point]] = []
    centers = []
    left = 0.0
    for size, count, height in zip(sizes, columns, heights, strict=True):
        top = (tallest - height) / 2
        places = [divmod(row, height) for row in range(size)]
        points.append([(left + _ASIDE * column, -row - top) for column, row in places])
        width = _ASIDE * (count - 1)
        centers.append(left + width / 2)
        left += width + 1
    return points, centers, (left, tallest)


def _faces(
    axis: Axes,
    names: list[list[str]],
    colors: list[list[float] | None] | None,
    color_name: str | list[str],
) -> list[list[Any]]:
    if colors is None:
        return [
            [_SEED if i == len(names) - 1 else _INPUT] * len(texts) for i, texts in enumerate(names)
        ]
    held = zip(names, colors, strict=True)
    values: list[list[float] | list[None]] = [[None] * len(n) if c is None else c for n, c in held]
    flat = iter(colors_of(axis, [value for layer in values for value in layer], color_name))
    return [[next(flat) for _ in layer] for layer in values]


def arrow(axis: Axes, start: Point, end: Point, bend: float, color: str, width: float) -> None:
    """Draw an arrow from one dot to another."""
    style = {
        "arrowstyle": "-|>",
        "color": color,
        "shrinkA": 9.5,
        "shrinkB": 9.5,
        "linewidth": width,
    }
    axis.annotate("", end, start, arrowprops={**style, "connectionstyle": f"arc3,rad={bend}"})


def _dots(
    axis: Axes,
    points: Sequence[Point],
    faces: list[Any],
    *,
    hollow: bool,
    seeds: bool,
    colored: bool,
) -> None:
    """Draw the dots of a layer; where colours are values, the rim tells the seeds from the
    others.
    """
    if not points:
        return
    label = "without parent ids" if hollow else None
    edge = "0.5" if hollow and not seeds else faces
    width = 1.0
    if colored:
        edge, width = (ink(axis), 2.5) if seeds else ("0.5", 1.0)
    elif seeds:
        label = "seeds"
    x, y = zip(*points, strict=True)
    inside = [axis.get_facecolor()] * len(points) if hollow else faces
    axis.scatter(
        x, y, s=330, facecolor=inside, edgecolor=edge, linewidth=width, zorder=2, label=label
    )


def write_names(axis: Axes, points: Sequence[Point], names: list[str], inks: list[str]) -> None:
    """Write a name into each dot."""
    # fits into a dot
    size = {0: 8.5, 1: 8.5, 2: 8.5, 3: 7.5, 4: 6}.get(max(map(len, names), default=1), 5)
    for point, name, shade in zip(points, names, inks, strict=True):
        axis.text(
            *point,
            name,
            ha="center",
            va="center",
            color=shade,
            fontsize=size,
            zorder=3,
            parse_math=False,
        )


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
    kept = [shared or 0 for _, shared in flows]
    new = [size - same for size, same in zip(sizes, kept, strict=False)]
    if any(shared is not None for _, shared in flows):
        axis.bar(range(last), kept, 0.35, color="0.6", label="also in the next layer")
    axis.bar(range(last), new, 0.35, bottom=kept, color=_INPUT, label="new in this layer")
    axis.bar([last], [sizes[-1]], 0.35, color=_SEED, label="seeds")
    for i, size in enumerate(sizes):
        axis.text(i, size, f"{size:,}", ha="center", va="bottom", fontsize=9)
    for i, (words, _) in enumerate(flows):
        axis.text(
            i + 0.5, 1.17 * most, words, ha="center", va="center", fontsize=7.5, linespacing=1.3
        )
    _layer_ticks(axis, range(len(sizes)))
    axis.set(xlim=(-0.4, last + 0.4), ylim=(0, 1.32 * most), ylabel="nodes")
    axis.spines["left"].set_visible(True)
    axis.spines["left"].set_bounds(0, most)
    # whole numbers only, up to the largest layer: above it are the words of the flows
    ticks = MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1).tick_values(
        0, most
    )
    axis.set_yticks([tick for tick in ticks if 0 <= tick <= most])
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, fontsize=8, frameon=False)
