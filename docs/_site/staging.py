"""The sources of the site: pages, notebooks and pictures of the repository, with a page per public
name.

Pages link each other as files of the repository, so that the links work on a code host. Here every
page gets its place on the site, and links that leave the folder ``docs`` are rewritten. What is not
on the site stays as text.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _site.errors_page import errors_page
from _site.reference import first_page, page_of_types, rooms
from _site.settings_page import settings_page

ROOT = Path(__file__).resolve().parents[2]
OTHER_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "license.md",
    "benchmarks/README.md": "benchmarks.md",
    "tests/README.md": "tests.md",
}
"""Pages outside of ``docs`` and ``notebooks``, and their places on the site; the README's place is
the start page.
"""

ON_SITE = {"nodeflow": "reference.rst", "nodeflow/training/_settings.py": "reference/settings.md"}
"""Sources of the package, and the pages of the site that are made from them."""

_LINK = re.compile(r"(\[(?:[^\[\]`]|`[^`]*`|!\[[^\]]*\]\([^)]*\))*\])\(([^()\s#]+)(#[^()\s]*)?\)")
_FENCED = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)


def place_of(path: str) -> str | None:
    """Return the place on the site of a file of the repository, or None where it has none."""
    if path in OTHER_PAGES:
        return OTHER_PAGES[path]
    if path in ("docs", "README.md"):
        return "index.md"
    if path in ON_SITE:
        return ON_SITE[path]
    if path.replace("/", ".").removeprefix("nodeflow.") in rooms():
        return f"reference/{path.replace('/', '.')}.rst"
    if path.startswith("docs/"):
        if (ROOT / path).is_dir():
            return (
                place_of(f"{path}/README.md")
                if (ROOT / path / "README.md").exists()
                else "index.md"
            )
        return path.removeprefix("docs/")
    return path if path.startswith("notebooks/") and path.endswith(".ipynb") else None


def with_links(text: str, source: str) -> str:
    """Return the Markdown of the page ``source`` with links that lead from its place on the site to
    other places.
    """
    here = posixpath.dirname(place_of(source) or "")

    def moved(match: re.Match[str]) -> str:
        words = match[1]
        target = match[2]
        anchor = match[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if "://" in target or target.startswith("mailto:") or not (ROOT / file).exists():
            return match[0]
        place = place_of(file)
        return (
            words[1:-1]
            if place is None
            else f"{words}({posixpath.relpath(place, here or '.')}{anchor})"
        )

    parts = _FENCED.split(text)
    return "".join(part if i % 2 else _LINK.sub(moved, part) for i, part in enumerate(parts))


def with_notebook_links(text: str, source: str) -> str:
    """Return a notebook whose cells of text have links within the site; outputs stay as they are
    stored.
    """
    notebook: dict[str, Any] = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = with_links("".join(cell["source"]), source)
    return json.dumps(notebook, indent=1, ensure_ascii=False)


def entries(index: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the headings of the start page that have a table of pages, and the pages, each with the
    words of its link.

    Links of the first column count, in their order. So a page that the start page lists is in the
    navigation.
    """
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        rows = [row.split("|")[1] for row in body.splitlines() if row.startswith("| ")]
        links = [
            (match[2], match[1][1:-1])
            for row in rows
            for match in _LINK.finditer(row)
            if match[3] is None
        ]
        pages: dict[str, str] = {}
        for link, words in links:
            if link.endswith((".md", ".ipynb", "/")):
                pages.setdefault(link, words[0].upper() + words[1:])
        if pages:
            yield heading.strip(), pages


def navigation(index: str) -> str:
    """Return hidden tables of contents in MyST, one per heading of the start page."""
    blocks = []
    for heading, pages in entries(index):
        places = {
            place_of(posixpath.normpath(posixpath.join("docs", page))): words
            for page, words in pages.items()
        }
        names = [f"{words} <{place.rsplit('.', 1)[0]}>" for place, words in places.items() if place]
        blocks.append(_toctree(names, f":caption: {heading}"))
    others = [place.rsplit(".", 1)[0] for place in OTHER_PAGES.values()]
    return "\n\n".join([*blocks, _toctree(others, ":caption: The project")])


def _toctree(names: list[str], *options: str) -> str:
    """Return a hidden table of contents in MyST."""
    return "\n".join(["```{toctree}", ":hidden:", *options, "", *names, "```"])


def stage(folder: Path) -> None:
    """Make ``folder`` hold the sources of the site. Files that have not changed keep their
    times.
    """
    wanted = _pages()
    made = {
        "reference.rst": first_page(),
        "reference/types.rst": page_of_types(),
        "reference/settings.md": settings_page(),
        "reference/errors.md": errors_page(),
    }
    wanted |= {name: text.encode() for name, text in made.items()}
    names = [name.casefold() for name in wanted]
    if len(set(names)) < len(names):
        raise ValueError(
            f"names that differ in case only: {sorted(n for n in set(names) if names.count(n) > 1)}"
        )
    for name, content in wanted.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()


def _pages() -> dict[str, bytes]:
    """Return the pages, notebooks and pictures of the repository by their places on the site."""
    found: dict[str, bytes] = {}
    inside = [
        p for p in (ROOT / "docs").rglob("*") if p.is_file() and p.suffix in (".md", ".png", ".svg")
    ]
    for path in [
        *inside,
        *(ROOT / "notebooks").glob("*.ipynb"),
        *(ROOT / name for name in OTHER_PAGES),
    ]:
        source = path.relative_to(ROOT).as_posix()
        place = place_of(source)
        if place is None or "/_site/" in source:
            continue
        if path.suffix in (".png", ".svg"):
            found[place] = path.read_bytes()
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = with_notebook_links(text, source)
        elif path.suffix == ".md":
            text = with_links(text, source)
        else:
            text = f"# License\n\n```text\n{text}\n```\n"
        if place == "index.md":
            text += f"\n{navigation((ROOT / source).read_text(encoding='utf-8'))}\n"
        if place == "decisions/README.md":
            rest = sorted(p.stem for p in path.parent.glob("[0-9]*.md"))
            text += f"\n{_toctree(rest)}\n"
        found[place] = text.encode()
    return found
