"""The search of the site: the text of every page, from which results get their order and their
excerpts.

Sphinx's search fetches a page to show an excerpt, which a browser refuses to pages that are opened
from a file, and gives every page that has a word the same score. So the texts are written into a
script that the search page loads.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ARTICLE = re.compile(r'<article role="main".*?>(.*)</article>', re.DOTALL)
_LEFT_OUT = re.compile(
    r'<(script|style|math|pre|details)\b.*?</\1>|<a class="headerlink".*?</a>|<span '
    r'class="column-name">.*?</span>',
    re.DOTALL,
)
_SECTION = re.compile(r'<section id="([^"]*)">')
_TAG = re.compile(r"<[^>]+>")


def sections(page: str) -> list[tuple[str, str]]:
    """Return the anchors of the sections of a page in HTML, each with its text."""
    article = _ARTICLE.search(page)
    if article is None:
        return []
    first, *rest = _SECTION.split(_LEFT_OUT.sub(" ", article[1]))
    pieces = [("", first), *zip(rest[::2], rest[1::2], strict=True)]
    texts = [
        (anchor, " ".join(html.unescape(_TAG.sub("", piece)).split())) for anchor, piece in pieces
    ]
    return [(anchor, text) for anchor, text in texts if text]


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write ``_static/search-texts.js``: the sections of every page, by the name of the page."""
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    files = {name: folder / f"{name}.html" for name in sorted(app.env.found_docs)}
    texts = {
        name: sections(file.read_text(encoding="utf-8"))
        for name, file in files.items()
        if file.exists()
    }
    script = (
        f"const SEARCH_TEXTS = {json.dumps(texts, ensure_ascii=False, separators=(',', ':'))};\n"
    )
    (folder / "_static" / "search-texts.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("build-finished", write_texts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
