"""Tables of words for narrow windows: every cell has the name of its column, which shows where rows
are stacked.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_LEAST_COLUMNS = 3
_WORDY = 14
"""Characters per cell, in the mean, from which a table is one of words; others are of numbers, and
scroll.
"""


def name_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Mark tables of words, and write the names of columns into their cells."""
    if app.builder.format != "html":
        return
    for table in doctree.findall(nodes.table):
        rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        names, *body = [[cell.astext() for cell in row] for row in rows]
        length = sum(len(text) for row in body for text in row[1:]) / max(
            1, sum(len(row) - 1 for row in body)
        )
        if len(names) < _LEAST_COLUMNS or length < _WORDY or table.next_node(nodes.thead) is None:
            continue
        table["classes"].append("words")
        for row in rows[1:]:
            for name, cell in zip(names[1:], row[1:], strict=False):
                if name and cell.astext():
                    first = cell[0] if isinstance(cell[0], nodes.paragraph) else cell
                    first.insert(0, nodes.inline("", f"{name}: ", classes=["column-name"]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("doctree-read", name_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
