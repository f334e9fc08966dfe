"""Builds the documentation site: ``build/docs/index.html``.

``python scripts/make_docs.py`` gathers the sources in ``build/docs-source`` and runs Sphinx on
them; warnings are errors. ``--stage`` stops before Sphinx. Further arguments go to Sphinx, such as
``-E`` (read all pages again).
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]


def main(arguments: list[str]) -> int:
    from _site.staging import stage

    source = ROOT / "build" / "docs-source"
    stage(source)
    if "--stage" in arguments:
        return 0
    from sphinx.cmd.build import main as build

    folders = [str(source), str(ROOT / "build" / "docs")]
    options = [
        "-b",
        "html",
        "-c",
        str(ROOT / "docs"),
        "-d",
        str(ROOT / "build" / "docs-cache"),
        "-W",
        "--keep-going",
    ]
    sources = {path.stem for path in (source / "reference").iterdir()}
    gone = [
        page
        for page in (ROOT / "build" / "docs" / "reference").glob("*.html")
        if page.stem not in sources
    ]
    for page in gone:
        page.unlink()
    if gone:
        options.append("-E")  # lists of names stand beside the pages of all names of a module
    return build([*options, "-n", "-q", *arguments, *folders])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
