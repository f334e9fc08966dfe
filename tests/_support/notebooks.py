"""Notebooks as they are stored, and the rules that they keep."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _support.pages import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 150_000
"""Bytes that a notebook may have, so that the site and code hosts show it at once."""

Notebook = dict[str, Any]
_KINDS = {"stream", "execute_result", "display_data"}  # what a cell that does not raise puts out
_MACHINE = re.compile(
    r"(?<![\w./:])/(?:home|root|Users|tmp|var|usr|opt|mnt|work|private)/|\b[A-Z]:\\\\?Users|\bat 0x[0-9a-f]"
)
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f-]+)?")
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d*)?(e[+-]?\d+)?")
_LINK = re.compile(r"\]\(([^)#\s]+)")


def read(path: Path) -> Notebook:
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(cell: dict[str, Any]) -> str:
    """What a cell printed and returned, without its pictures and where streams were cut."""
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell["outputs"]
        if "image/png" not in output.get("data", {})
    ]
    return "".join("".join(text) for text in texts)


def comparable(cell: dict[str, Any]) -> str:
    """What a cell printed that must be the same in every run.

    Of a cell with the tag "varies" (trained weights, say) all but numbers and spaces; nothing of a cell with the tag
    "optional", which needs a library that may not be installed.
    """
    text, tags = printed(cell), cell["metadata"].get("tags", [])
    if "optional" in tags:
        return ""
    if "varies" not in tags:
        return text
    return " ".join(_NUMBER.sub("#", text).split())


def complaints(notebook: Notebook, path: Path) -> Iterator[str]:
    """Yield every rule that a stored notebook breaks; ``path`` is its place, from which links lead."""
    cells = code_cells(notebook)
    if [cell["execution_count"] for cell in cells] != list(range(1, len(cells) + 1)):
        yield "was not run from top to bottom: run scripts/run_notebooks.py"
    outputs = [(cell, output) for cell in cells for output in cell["outputs"]]
    for cell, output in outputs:
        if output["output_type"] not in _KINDS:
            yield f"cell {cell['id']} has an output of the kind {output['output_type']}"
        if output.get("name") == "stderr":
            yield f"cell {cell['id']} warns: {''.join(output['text'])}"
    if not any("image/png" in output.get("data", {}) for _, output in outputs):
        yield "has no picture"
    if path.stat().st_size > LARGEST:
        yield f"has {path.stat().st_size} bytes, more than {LARGEST}"
    ids = [cell["id"] for cell in notebook["cells"]]
    for name in ids:
        if ids.count(name) > 1 or not _ID.fullmatch(name) or _RANDOM_ID.fullmatch(name):
            yield f"cell id {name!r} is not a name of its own, such as 'first-batch'"
    for cell in notebook["cells"]:
        for text in ("".join(cell["source"]), printed(cell) if cell["cell_type"] == "code" else ""):
            if found := _MACHINE.search(text):
                yield f"cell {cell['id']} names a place on a machine: {found[0]!r}"
    *_, last = notebook["cells"]
    if last["cell_type"] != "markdown" or "where to go next" not in "".join(last["source"]).lower():
        yield "does not end with where to go next"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            for target in _LINK.findall("".join(cell["source"])):
                if "://" not in target and not (path.parent / target).exists():
                    yield f"cell {cell['id']} links to {target}, which does not exist"
