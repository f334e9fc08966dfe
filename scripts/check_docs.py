"""Checks the built site: its links, and that no page shows a path of the machine that built it.

Every link within the site leads to a file, and to an anchor that the file has. Links to other sites
are counted only. ``python scripts/check_docs.py [FOLDER]`` reads the pages under ``build/docs``,
prints broken links and paths, and ends with 1 if there are any.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
BUILD_PATHS = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")]
"""Folders of the package, of the libraries, and of Python: the repr of a module or of a code object
shows them.
"""


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
    """Return the broken links, as "page: link", and how many links lead within the site and out of
    it.
    """
    pages = {
        path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))
    }
    broken = []
    inside = 0
    outside = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            inside += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            found = target.is_file() and (
                not anchor or target not in pages or anchor in pages[target].anchors
            )
            if not found:
                broken.append(f"{path.relative_to(folder)}: {link}")
    return broken, inside, outside


def shown_paths(folder: Path) -> list[str]:
    """Return the places where pages show a path of the machine that built them, as "page: path"."""
    path_of = re.compile("|".join(rf"{re.escape(path)}(?![\w.-])[\w./-]*" for path in BUILD_PATHS))
    pages = sorted(folder.rglob("*.html"))
    return [
        f"{page.relative_to(folder)}: {path}"
        for page in pages
        for path in path_of.findall(page.read_text(encoding="utf-8"))
    ]


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "build" / "docs"
    if not (folder / "index.html").exists():
        sys.exit(f"{folder} has no index.html; make it with: make docs")
    broken, inside, outside = broken_links(folder.resolve())
    shown = shown_paths(folder)
    print(*broken, *shown, sep="\n", end="\n" if broken or shown else "")
    print(
        f"{inside:,} links within the site, {len(broken)} broken; {outside:,} links to other "
        "sites, not followed"
    )
    print(f"{len(shown)} paths of this machine on pages")
    return 1 if broken or shown else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
