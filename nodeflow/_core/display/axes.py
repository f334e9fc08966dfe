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

    numbers = np.array(values, float)  # None becomes NaN
    is_finite = np.isfinite(numbers)
    # few whole numbers are codes of classes: a scale would say that 3 lies between 1 and 5
    kinds = np.unique(numbers[is_finite])
    if len(kinds) <= _MOST_CLASSES and np.array_equal(kinds, kinds.round()):
        table = {}
        for i, kind in enumerate(kinds.tolist()):
            table[kind] = colormaps["tab10"](i)
            if isinstance(name, str):
                label = f"{name} {kind:.0f}"
            else:
                label = name[int(kind)]
            axis.scatter([], [], s=330, color=[table[kind]], label=label)
        return [table.get(number, UNKNOWN) for number in numbers.tolist()]
    shades = ScalarMappable(Normalize(kinds[0], kinds[-1]), "viridis")
    # a list names classes; of more than a legend can show there is a scale
    word = "type"
    if isinstance(name, str):
        word = name
    axis.figure.colorbar(shades, ax=axis, label=word, shrink=0.8)
    rgba = shades.to_rgba(numbers)
    rgba[~is_finite] = UNKNOWN
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
    is_finite = np.isfinite(numbers)
    sizes = np.where(is_finite, np.abs(numbers), 0)
    # widths go with sizes, whatever their sign: the legend says so by bars around the name
    scale = 3.6 / (sizes.max(initial=0) or 1)
    if (numbers < 0).any():
        word = f"|{name}|"
    else:
        word = name
    shown = np.unique(sizes[is_finite]).tolist()
    for size in dict.fromkeys(shown[:1] + shown[-1:]):
        axis.plot([], [], color="0.5", linewidth=0.4 + scale * size, label=f"{word} {size:,.4g}")
    return (0.4 + scale * sizes).tolist()  # type: ignore[no-any-return]


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
