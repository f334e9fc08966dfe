"""Matplotlib axes, and the colours, widths and labels of what is drawn on them. Matplotlib is
imported when needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_CLASSES = 10
UNKNOWN = (0.6, 0.6, 0.6, 1.0)
"""Colour of a node without a value, and of values that are no numbers."""


def require_matplotlib() -> type[Figure]:
    """Return matplotlib's ``Figure`` class; raises ImportError, with the command that installs
    matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install matplotlib"
        ) from None
    return Figure


def axes_for(ax: Axes | Figure | None, size: tuple[float, float]) -> Axes:
    """Return ``ax``, or new axes of a figure that gets ``size`` in inches, a new one for None;
    TypeError for no axes.

    The new figure belongs to ``matplotlib.pyplot``, so that a notebook shows it and
    ``pyplot.show()`` opens it.
    """
    if isinstance(ax, require_matplotlib()):
        ax.set_size_inches(size)
        return ax.subplots()
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(
            "ax must be axes or a figure of matplotlib, or None for new ones, got "
            f"{type(ax).__name__}"
        )
    return ax


def colors_of(axis: Axes, values: Sequence[float | None], name: str | list[str]) -> list[Any]:
    """Return a colour (RGBA) per value, and add to the axes what explains them, with the word
    ``name``.

    Whole numbers of at most 10 kinds are classes, each with an entry in the legend: a word of its
    own, where ``name`` is a list by number. Other numbers lie on a scale, which is shown as a
    colour bar. None and values that are not finite are grey.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    finite = sorted({value for value in values if value is not None and np.isfinite(value)})
    if len(finite) <= _MOST_CLASSES and all(float(value).is_integer() for value in finite):
        table = dict[float | None, Any]()
        for i, value in enumerate(finite):
            table[value] = colormaps["tab10"](i)
            label = f"{name} {int(value)}" if isinstance(name, str) else name[int(value)]
            axis.scatter([], [], s=330, color=[table[value]], label=label)
        return [table.get(value, UNKNOWN) for value in values]
    scale = Normalize(finite[0], finite[-1])
    shades = ScalarMappable(scale, "viridis")
    word = name if isinstance(name, str) else "type"
    axis.figure.colorbar(shades, ax=axis, label=word, shrink=0.8)
    numbers = np.array([np.nan if value is None else value for value in values])
    rgba = shades.to_rgba(numbers)
    rgba[~np.isfinite(numbers)] = UNKNOWN
    return list(rgba)


def whole_ticks(axis: Axes) -> None:
    """Put the ticks of the x axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def ink(axis: Axes) -> Any:
    """Return the colour of text beside the axes: black, or white where a dark style is in use."""
    return axis.xaxis.label.get_color()


def ink_on(color: Any) -> str:
    """Return the colour of text, "white" or "black", that can be read on ``color``."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.66 else "white"


def widths_of(axis: Axes, values: Sequence[float], name: str) -> list[float]:
    """Return line widths in points, from 0.4 to 4, in proportion to the sizes of numbers; 0.4 for
    one not finite.

    The thinnest and thickest of them are added to the legend, with the word ``name``.
    """
    numbers = np.asarray(values, float)
    finite = np.isfinite(numbers)
    sizes = np.where(finite, np.abs(numbers), 0)
    widths: list[float] = (0.4 + 3.6 * sizes / (sizes.max(initial=0) or 1)).tolist()
    of_finite = np.asarray(widths)[finite]
    shown = sorted(zip(sizes[finite].tolist(), of_finite.tolist(), strict=True))
    word = f"|{name}|" if (numbers < 0).any() else name
    for size, width in dict.fromkeys(shown[:1] + shown[-1:]):
        number = f"{size:,.0f}" if size >= 1000 else f"{size:.3g}"
        axis.plot([], [], color="0.5", linewidth=width, label=f"{word} {number}")
    return widths


def small_legend(axis: Axes, **options: Any) -> None:
    """Put a legend on the axes, unless nothing is labelled."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8, title_fontsize=8, frameon=False, **options)


def legend_below(axis: Axes) -> None:
    """Put a legend below the axes, with one entry per word; none where nothing has a word."""
    handles, words = axis.get_legend_handles_labels()
    kinds = dict(zip(words, handles, strict=True))
    if kinds:
        axis.legend(
            kinds.values(),
            kinds,
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            ncols=min(len(kinds), 3),
            fontsize=7,
            frameon=False,
            markerscale=0.4,
        )
