"""Drawings of layered graphs: every node and edge of a small one, and a summary of a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nodeflow._core.display.axes import axes_for, colors_of, ink, ink_on, legend_below, widths_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]
INPUT = "tab:blue"
SEED = "tab:orange"
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
            bend = -0.3 if start[1] + end[1] > 1 - tallest else 0.3
            if j == i + 1:
                bend = 0.0
            arrow(axis, start, end, bend, "tab:purple" if bend else "0.5", next(width, 1.0))
    if skips:
        axis.plot([], [], color="tab:purple", label="skips layers")
    faces = _faces(axis, sizes, colors, color_name)
    for i, texts in enumerate(names):
        shown = faces[sum(sizes[:i]) : sum(sizes[: i + 1])]
        marked = set(range(sizes[i])) if i == last else set[int]()
        draw_dots(axis, points[i], texts, shown, marked, hollow=hollow[i], rims=colors is not None)
    if colors is not None:
        label_seeds(axis, rims=True)
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
    sizes: Sequence[int],
    colors: list[list[float] | None] | None,
    color_name: str | list[str],
) -> list[Any]:
    """The colours of all nodes, layer after layer."""
    values: list[float | None] = []
    faces = []
    for i, size in enumerate(sizes):
        of_layer = colors[i] if colors is not None else None
        values += [None] * size if of_layer is None else of_layer
        faces += [SEED if i == len(sizes) - 1 else INPUT] * size
    return faces if colors is None else colors_of(axis, values, color_name)


def arrow(axis: Axes, start: Point, end: Point, bend: float, color: str, width: float) -> None:
    """Draw an arrow from one dot to another."""
    style = {"arrowstyle": "-|>", "shrinkA": 9.5, "shrinkB": 9.5, "color": color}
    style |= {"linewidth": width, "connectionstyle": f"arc3,rad={bend}"}
    axis.annotate("", end, start, arrowprops=style)


def draw_dots(
    axis: Axes,
    points: Sequence[Point],
    names: list[str],
    faces: list[Any],
    marked: set[int],
    *,
    rims: bool,
    hollow: bool = False,
) -> None:
    """Draw nodes as dots with their names in them.

    ``rims``: colours are values, so that thick rims tell the ``marked`` nodes from the others.
    ``hollow``: the nodes have no parent ids, which shows where colours are no values.
    """
    if not points:
        return
    inside = faces
    edges = list(faces)
    label = None
    if hollow and not rims:
        label = "without parent ids"
        inside = [axis.get_facecolor()] * len(points)
        edges = faces if marked else ["0.5"] * len(points)
    if rims:
        edges = [ink(axis) if i in marked else "0.5" for i in range(len(points))]
    elif len(marked) == len(points):
        label = "seeds"
    widths = [2.5 if rims and i in marked else 1.0 for i in range(len(points))]
    x, y = zip(*points, strict=True)
    axis.scatter(
        x, y, s=330, facecolor=inside, edgecolor=edges, linewidth=widths, zorder=2, label=label
    )
    # names of more letters are written smaller, so that they fit into a dot
    letters = max(map(len, names))
    size = 8.5 if letters < 3 else {3: 7.5, 4: 6}.get(letters, 5)
    for point, name, face in zip(points, names, faces, strict=True):
        shade = "0.5" if hollow and not rims else ink_on(face)
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


def label_seeds(axis: Axes, *, rims: bool) -> None:
    """Put the word "seeds" into the legend, beside a rim or an orange dot."""
    face = "none" if rims else SEED
    edge = ink(axis) if rims else SEED
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
    kept = [shared or 0 for _, shared in flows]
    new = [size - same for size, same in zip(sizes, kept, strict=False)]
    if any(shared is not None for _, shared in flows):
        axis.bar(range(last), kept, 0.35, color="0.6", label="also in the next layer")
    axis.bar(range(last), new, 0.35, bottom=kept, color=INPUT, label="new in this layer")
    axis.bar([last], [sizes[-1]], 0.35, color=SEED, label="seeds")
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
