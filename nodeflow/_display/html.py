"""Small pieces of HTML for notebooks: escaped, of bounded size, readable on light and dark pages.

The pieces carry inline styles only and set no background. Text takes the colour of the page, and lines are a grey that
shows on black and on white.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

MOST_ROWS = 20
"""Number of rows of a table that are shown."""

_MOST_LETTERS = 80
_ROW = '<tr style="border-top:1px solid rgba(128,128,128,.35)">'
_CELL = "padding:2px 10px 2px 0;text-align:{side}"
_HEAD = "padding:2px 10px 2px 0;text-align:{side};font-weight:600;opacity:.75"


def text(value: object, most: int = _MOST_LETTERS) -> str:
    """Return the escaped text of a value, cut off after ``most`` letters.

    >>> text("<b>"), text("abcdef", most=4)
    ('&lt;b&gt;', 'abc…')
    """
    words = str(value)
    return escape(words if len(words) <= most else words[: most - 1] + "…")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()) -> str:
    """Return a table; after ``MOST_ROWS`` rows it says that there are more.

    Args:
        head: words above the columns.
        rows: the cells of each row, which are escaped and cut off. An iterator is read no further than is shown.
        numbers: indices of the columns that are aligned to the right.

    Returns "" where there are no rows.
    """
    shown = list(islice(rows, MOST_ROWS + 1))
    if not shown:
        return ""
    side = ["right" if i in numbers else "left" for i in range(len(head))]
    top = "".join(f'<th style="{_HEAD.format(side=s)}">{text(word)}</th>' for s, word in zip(side, head, strict=True))
    body = "".join(
        _ROW
        + "".join(f'<td style="{_CELL.format(side=s)}">{text(cell)}</td>' for s, cell in zip(side, row, strict=True))
        + "</tr>"
        for row in shown[:MOST_ROWS]
    )
    if len(shown) > MOST_ROWS:
        body += (
            f'{_ROW}<td colspan="{len(head)}" style="{_CELL.format(side="left")}">… more rows are not shown</td></tr>'
        )
    style = "border-collapse:collapse;border:0;margin:4px 0 0 0;font-size:90%"
    return f'<table style="{style}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def page(title: str, words: str = "", *parts: str) -> str:
    """Return the HTML of an object: a bold title, words beside it, and parts that are HTML already."""
    beside = f' <span style="opacity:.8">{text(words, 300)}</span>' if words else ""
    inside = "".join(part for part in parts if part)
    return f'<div style="color:inherit;overflow-x:auto"><div><b>{text(title)}</b>{beside}</div>{inside}</div>'
