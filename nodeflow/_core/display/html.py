"""Small pieces of HTML for notebooks: escaped, of bounded size, readable on light and dark
pages.

The pieces carry inline styles only and set no background. Text takes the colour of the page, and
lines are a grey that shows on black and on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import count, islice

MOST_ROWS = 20
"""Number of rows of a table that are shown."""

_MOST_LETTERS = 80
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


def sizes_table(nodes: Sequence[int], edges: Sequence[int]) -> str:
    """Return a table with a row per layer: its nodes, and the edges from there to the next."""
    of_flows = [f"{size:,}" for size in edges]
    layers = zip(count(), (f"{size:,}" for size in nodes), [*of_flows, ""], strict=False)
    return table(("layer", "nodes", "edges to the next"), layers, numbers=[0, 1, 2])
