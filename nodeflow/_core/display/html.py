"""Small pieces of HTML and SVG for notebooks: escaped, of bounded size, readable on light and dark
pages.

The pieces carry inline styles only and set no background. Text takes the colour of the page, and
lines are a grey that shows on black and on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

MOST_ROWS = 20
"""Number of rows of a table that are shown."""

_MOST_LETTERS = 80
_SHOWN = 8  # layers of a funnel
# pixels
_STEP = 120
_BAR = 14
_HEIGHT = 80
_TOP = 22
# both colours show on black and on white
INPUT = "#4a90d9"
SEED = "#e08a2c"
_ROW = '<tr style="border-top:1px solid rgba(128,128,128,.35)">'
_CELL = "padding:2px 10px 2px 0;text-align:{side}"
_TABLE = "border-collapse:collapse;border:0;margin:4px 0 0 0;font-size:90%"
_HEAD = "padding:2px 10px 2px 0;text-align:{side};font-weight:600;opacity:.75"


def text(value: object, most: int = _MOST_LETTERS) -> str:
    """Return the escaped text of a value, cut off after ``most`` letters.

    >>> text("<b>"), text("abcdef", most=4)
    ('&lt;b&gt;', 'abc…')
    """
    words = str(value)
    if len(words) > most:
        words = words[: most - 1] + "…"
    return escape(words)


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()
) -> str:
    """Return a table, "" where there are no rows; after ``MOST_ROWS`` rows it says that there are
    more.

    ``head`` is above the columns; those with the indices ``numbers`` are aligned to the right.
    Cells are escaped and cut off. An iterator of rows is read no further than is shown.
    """
    # one more than is shown, to see whether there are more
    shown = list(islice(rows, MOST_ROWS + 1))
    if not shown:
        return ""
    sides = ["right" if i in numbers else "left" for i in range(len(head))]
    top = _cells("th", _HEAD, head, sides)
    lines = [_ROW + _cells("td", _CELL, row, sides) + "</tr>" for row in shown[:MOST_ROWS]]
    if len(shown) > MOST_ROWS:
        lines.append(
            f'{_ROW}<td colspan="{len(head)}" style="{_CELL.format(side="left")}">… more rows are '
            "not shown</td></tr>"
        )
    body = "".join(lines)
    return f'<table style="{_TABLE}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _cells(tag: str, style: str, row: Sequence[object], sides: Sequence[str]) -> str:
    cells = []
    for side, cell in zip(sides, row, strict=True):
        cells.append(f'<{tag} style="{style.format(side=side)}">{text(cell)}</{tag}>')
    return "".join(cells)


def page(title: str, words: str = "", *parts: str) -> str:
    """Return the HTML of an object: a bold title, words beside it, and parts that are HTML
    already.
    """
    head = f"<b>{text(title)}</b>"
    if words:
        head += f' <span style="opacity:.8">{text(words, 300)}</span>'
    return f'<div style="color:inherit;overflow-x:auto"><div>{head}</div>{"".join(parts)}</div>'


def funnel(nodes: Sequence[int], edges: Sequence[int]) -> str:
    """Return an SVG with a bar per layer (``nodes``, the seeds last) and a band per flow
    (``edges``).

    The heights go with the square roots of the sizes. Of more than 8 layers, the ones in the middle
    are left out.
    """
    last = len(nodes) - 1
    layers = list(range(last + 1))
    if last >= _SHOWN:
        del layers[_SHOWN // 2 : -_SHOWN // 2]
    most = max(*nodes, 1)
    # square roots: of sizes that differ a thousandfold both are still seen
    height = [max(2.0, _HEIGHT * (size / most) ** 0.5) for size in nodes]
    middle = _TOP + _HEIGHT / 2
    width = (len(layers) - 1) * _STEP + 2 * 45
    parts = []
    for place, layer in enumerate(layers):
        x = 45 + place * _STEP
        if place + 1 < len(layers):
            parts.append(_flow(x, middle, height, edges, layer, layers[place + 1]))
        color = INPUT
        label = f"layer {layer}"
        if layer == last:
            color = SEED
            label = "seeds"
        tall = height[layer]
        parts.append(
            f'<rect x="{x - _BAR / 2:g}" y="{middle - tall / 2:.1f}" width="{_BAR}" '
            f'height="{tall:.1f}" rx="2" fill="{color}"/>'
        )
        parts.append(_words(x, _TOP + _HEIGHT + 16, f"{nodes[layer]:,}", 12))
        parts.append(_words(x, _TOP + _HEIGHT + 30, label, 10, ' opacity=".75"'))
    total = _TOP + _HEIGHT + 36
    return (
        f'<svg width="{width}" height="{total}" viewBox="0 0 {width} {total}" fill="currentColor" '
        'style="display:block;max-width:100%" role="img" aria-label="sizes of layers and '
        f'flows">{"".join(parts)}</svg>'
    )


def _flow(
    x: float, middle: float, height: list[float], edges: Sequence[int], layer: int, after: int
) -> str:
    """The band from one bar to the next one shown, with the number of edges above."""
    if after != layer + 1:
        return _words(x + _STEP / 2, middle + 4, f"… {after - layer - 1} layers …", 11)
    left = x + _BAR / 2
    right = x + _STEP - _BAR / 2
    corners = [(left, -1, layer), (right, -1, after), (right, 1, after), (left, 1, layer)]
    points = " ".join(f"{u:g},{middle + side * height[i] / 2:.1f}" for u, side, i in corners)
    words = _words(x + _STEP / 2, _TOP - 8, f"{edges[layer]:,} edges", 10, ' opacity=".75"')
    return f'<polygon points="{points}" opacity=".15"/>{words}'


def _words(x: float, y: float, words: str, size: int, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="middle"{more}>{words}</text>'
