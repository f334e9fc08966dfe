"""Every notebook runs from top to bottom, and prints what it shows."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _support.pages import ROOT, run

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 150_000
"""Bytes that a notebook may have, so that the site and code hosts show it at once."""

Notebook = dict[str, Any]
_KINDS = {"stream", "execute_result", "display_data"}  # what a cell that does not raise puts out
_MACHINE = re.compile(
    r"(?<![\w./:])/(?:home|root|Users|tmp|var|usr|opt|mnt|work|private)/|\b[A-Z]:\\\\?Users|\bat "
    r"0x[0-9a-f]"
)
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f-]+)?")
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d*)?(e[+-]?\d+)?")
_LINK = re.compile(r"\]\(([^)#\s]+)")


def read(path: Path) -> Notebook:
    return json.loads(path.read_text(encoding="utf-8"))


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

    Of a cell with the tag "varies" (trained weights, say) all but numbers and spaces; nothing of a
    cell with the tag "optional", which needs a library that may not be installed.
    """
    text = printed(cell)
    tags = cell["metadata"].get("tags", [])
    if "optional" in tags:
        return ""
    if "varies" not in tags:
        return text
    return " ".join(_NUMBER.sub("#", text).split())


def complaints(notebook: Notebook, path: Path) -> Iterator[str]:
    """Yield every rule that a stored notebook breaks; ``path`` is its place, from which links
    lead.
    """
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


SHORT = "01-what-a-nodeflow-is"
"""The notebook that ordinary tests run; the others are slow."""


def marked(path: Path) -> Any:
    return pytest.param(path, id=path.stem, marks=[] if path.stem == SHORT else pytest.mark.slow)


def test_there_are_notebooks_and_one_is_short():
    assert SHORT in {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_keeps_the_rules(path):
    assert list(complaints(read(path), path)) == []


@pytest.mark.parametrize("path", [marked(path) for path in NOTEBOOKS])
def test_a_notebook_runs_and_prints_what_is_stored(path, tmp_path):
    missing = [
        name
        for name in ("nbclient", "nbformat", "ipykernel", "PIL")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        pytest.skip(
            f"needs {', '.join(missing)}; install with: pip install 'nodeflow-gnn[notebook]'"
        )
    # a process of its own: a kernel leaves threads and sockets behind, of which Python warns
    run(ROOT / "scripts" / "run_notebooks.py", "--into", tmp_path, path, cwd=tmp_path)
    before = code_cells(read(path))
    after = code_cells(read(tmp_path / path.name))
    for old, new in zip(before, after, strict=True):
        assert comparable(new) == comparable(old), f"cell {old['id']} prints something else"


def plant(cell: dict[str, Any], **output: Any) -> None:
    cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": [], **output})


FAULTS: dict[str, tuple[Callable[[Notebook], Any], str]] = {
    "not run": (lambda n: code_cells(n)[0].update(execution_count=None), "top to bottom"),
    "run twice": (lambda n: code_cells(n)[1].update(execution_count=17), "top to bottom"),
    "error": (
        lambda n: code_cells(n)[1]["outputs"].append({"output_type": "error", "ename": "E"}),
        "kind error",
    ),
    "warning": (lambda n: plant(code_cells(n)[1], name="stderr", text=["UserWarning"]), "warns"),
    "no pictures": (lambda n: [cell.update(outputs=[]) for cell in code_cells(n)], "no picture"),
    "path": (
        lambda n: plant(code_cells(n)[1], text=["in /home/", "me/x.py"]),
        "place on a machine: '/home/'",
    ),
    "address": (
        lambda n: plant(code_cells(n)[1], text=["<object at 0x7f>"]),
        "place on a machine: 'at 0x7'",
    ),
    "path in code": (
        lambda n: code_cells(n)[1].update(source=['open("/tmp/x")']),
        "place on a machine: '/tmp/'",
    ),
    "two of one id": (
        lambda n: n["cells"][1].update(id=n["cells"][0]["id"]),
        "not a name of its own",
    ),
    "random id": (lambda n: n["cells"][1].update(id="a1b2c3d4"), "not a name of its own"),
    "no end": (lambda n: n["cells"].pop(), "where to go next"),
    "dead link": (lambda n: n["cells"][0].update(source=["[gone](gone.md)"]), "links to gone.md"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rules_notice(fault):
    path = next(path for path in NOTEBOOKS if path.stem == SHORT)
    notebook = copy.deepcopy(read(path))
    spoil, words = FAULTS[fault]
    spoil(notebook)
    assert any(words in complaint for complaint in complaints(notebook, path))


def test_large_notebooks_are_noticed(tmp_path):
    path = next(path for path in NOTEBOOKS if path.stem == SHORT)
    large = tmp_path / path.name
    large.write_bytes(path.read_bytes() + b" " * 150_000)
    assert any("bytes, more than" in complaint for complaint in complaints(read(large), large))


def test_numbers_that_vary_are_not_compared():
    cell = {
        "metadata": {},
        "outputs": [{"output_type": "stream", "text": ["accuracy 0.81, loss -1.2e-3"]}],
    }
    other = {
        "metadata": {},
        "outputs": [{"output_type": "stream", "text": ["accuracy  0.9, loss 3"]}],
    }
    assert comparable(cell) != comparable(other)
    for one in (cell, other):
        one["metadata"] = {"tags": ["varies"]}
    assert comparable(cell) == comparable(other) == "accuracy #, loss #"
