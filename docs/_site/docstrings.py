"""Docstrings and signatures of the package, made ready for Sphinx. They are written for
``help()``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

_ROW = re.compile(r"\s*\|(.*)\|\s*$")
_PAGE = re.compile(r"`{0,2}docs/([\w/-]+)\.md`{0,2}")
_NAMES = re.compile(r"^( *)(\w+(?:, \w+)+)(?=: )")
_ARRAY = re.compile(
    r"~?numpy\.ndarray\[(?:tuple\[[^\[\]]*\]|~?typing\.Any), "
    r"~?numpy\.dtype\[([^\[\]]*)\]\]"
)


def before_napoleon(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keep Napoleon from taking words for a type.

    It takes those before a colon in the first line of a property. Of several arguments that share a
    line, ``a, b:``, it takes all but the last; these get their spaces back in ``spaced``.
    """
    lines[:] = [_NAMES.sub(lambda m: m[1] + m[2].replace(", ", ","), line) for line in lines]
    if what in ("property", "attribute", "data"):
        lines[:0] = ["..", ""]  # an empty comment


def for_users(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Leave out of a module's page what its docstring tells those who change it."""
    if what == "module":
        lines[:] = before_private_files("\n".join(lines)).split("\n")


def before_private_files(text: str) -> str:
    """Return the paragraphs before the first that names a private file or rooms, whose heading goes
    with it.
    """
    paragraphs = text.split("\n\n")
    end = next(
        (i for i, p in enumerate(paragraphs) if i and re.search(r"``_|rooms above", p)),
        len(paragraphs),
    )
    return "\n\n".join(
        paragraphs[: end - (end < len(paragraphs) and paragraphs[end - 1].endswith(":"))]
    )


def tables(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write tables of Markdown as tables of reStructuredText, and names of guides as links."""
    lines[:] = [_PAGE.sub(r":doc:`/\1`", line) for line in with_tables(lines)]


def with_tables(lines: Iterable[str]) -> list[str]:
    """Return lines in which a table of Markdown, whose second row has dashes, is a list table."""
    found: list[str] = []
    table: list[list[str]] = []
    for line in [*lines, ""]:
        row = _ROW.match(line)
        if row is not None:
            table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", row[1])])
            continue
        if table:
            found += ["", ".. list-table::", "   :header-rows: 1", ""]
            for cells in table[:1] + table[2:]:
                found += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(cells)]
            found.append("")
            table = []
        found.append(line)
    return found


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, args: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Write arrays as ``NDArray``."""

    def readable(text: str | None) -> str | None:
        # a default that is no expression, as <factory>
        text = text and re.sub(r"=\s?<[^<>]*>", "=...", text)
        return text and _ARRAY.sub(r"~numpy.typing.NDArray[\1]", text)

    return readable(args), readable(result)


def spaced(app: Sphinx, doctree: nodes.document) -> None:
    """Write a space after every comma between the names of arguments."""
    for names in doctree.findall(addnodes.literal_strong):
        if "," in names.astext():
            names[:] = [nodes.Text(names.astext().replace(",", ", "))]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("autodoc-process-docstring", before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", for_users, priority=50)
    app.connect("autodoc-process-docstring", tables, priority=200)
    app.connect("autodoc-process-signature", signature)
    app.connect("doctree-read", spaced)
    # Sphinx writes its stand-in for an alias by repr where the alias is within another type, as in
    # dict[str, Alias]
    TypeAliasForwardRef.__repr__ = lambda self: self.name  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
