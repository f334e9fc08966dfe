"""Checks the links of the built site: every link within it leads to a file, and to an anchor that the file has.

``python scripts/check_docs.py [FOLDER]`` reads the pages under ``build/docs``, prints the broken links, and ends with 1
if there are any. Links to other sites are counted, and not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def broken_links(folder: Path) -> tuple[list[str], int, int]:
    """Return the broken links, as "page: link", and how many links lead within the site and out of it."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    broken, inside, outside = [], 0, 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            inside += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            found = target.is_file() and (not anchor or target not in pages or anchor in pages[target].anchors)
            if not found:
                broken.append(f"{path.relative_to(folder)}: {link}")
    return broken, inside, outside


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "build" / "docs"
    if not (folder / "index.html").exists():
        sys.exit(f"{folder} has no index.html; make it with: make docs")
    broken, inside, outside = broken_links(folder.resolve())
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{inside:,} links within the site, {len(broken)} broken; {outside:,} links to other sites, not followed")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
