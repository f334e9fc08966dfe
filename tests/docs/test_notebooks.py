"""Every notebook runs from top to bottom, and prints what it shows."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _support.notebooks import NOTEBOOKS, Notebook, code_cells, comparable, complaints, read
from _support.pages import ROOT, run

SHORT = "01-what-a-nodeflow-is"
"""The notebook that ordinary tests run; the others are slow."""


def marked(path: Path) -> Any:
    return pytest.param(path, id=path.stem, marks=[] if path.stem == SHORT else pytest.mark.slow)


def test_there_are_notebooks_and_one_is_short() -> None:
    assert SHORT in {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_keeps_the_rules(path: Path) -> None:
    assert list(complaints(read(path), path)) == []


@pytest.mark.parametrize("path", [marked(path) for path in NOTEBOOKS])
def test_a_notebook_runs_and_prints_what_is_stored(path: Path, tmp_path: Path) -> None:
    missing = [name for name in ("nbclient", "nbformat", "ipykernel", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; install with: pip install 'nodeflow[notebook]'")
    # a process of its own: a kernel leaves threads and sockets behind, of which Python warns
    run(ROOT / "scripts" / "run_notebooks.py", "--into", tmp_path, path, cwd=tmp_path)
    before, after = code_cells(read(path)), code_cells(read(tmp_path / path.name))
    for old, new in zip(before, after, strict=True):
        assert comparable(new) == comparable(old), f"cell {old['id']} prints something else"


def plant(cell: dict[str, Any], **output: Any) -> None:
    cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": [], **output})


FAULTS: dict[str, tuple[Callable[[Notebook], Any], str]] = {
    "not run": (lambda n: code_cells(n)[0].update(execution_count=None), "top to bottom"),
    "run twice": (lambda n: code_cells(n)[1].update(execution_count=17), "top to bottom"),
    "error": (lambda n: code_cells(n)[1]["outputs"].append({"output_type": "error", "ename": "E"}), "kind error"),
    "warning": (lambda n: plant(code_cells(n)[1], name="stderr", text=["UserWarning"]), "warns"),
    "no pictures": (lambda n: [cell.update(outputs=[]) for cell in code_cells(n)], "no picture"),
    "path": (lambda n: plant(code_cells(n)[1], text=["in /home/", "me/x.py"]), "place on a machine: '/home/'"),
    "address": (lambda n: plant(code_cells(n)[1], text=["<object at 0x7f>"]), "place on a machine: 'at 0x7'"),
    "path in code": (lambda n: code_cells(n)[1].update(source=['open("/tmp/x")']), "place on a machine: '/tmp/'"),
    "two of one id": (lambda n: n["cells"][1].update(id=n["cells"][0]["id"]), "not a name of its own"),
    "random id": (lambda n: n["cells"][1].update(id="a1b2c3d4"), "not a name of its own"),
    "no end": (lambda n: n["cells"].pop(), "where to go next"),
    "dead link": (lambda n: n["cells"][0].update(source=["[gone](gone.md)"]), "links to gone.md"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rules_notice(fault: str) -> None:
    path = next(path for path in NOTEBOOKS if path.stem == SHORT)
    notebook = copy.deepcopy(read(path))
    spoil, words = FAULTS[fault]
    spoil(notebook)
    assert any(words in complaint for complaint in complaints(notebook, path))


def test_large_notebooks_are_noticed(tmp_path: Path) -> None:
    path = next(path for path in NOTEBOOKS if path.stem == SHORT)
    large = tmp_path / path.name
    large.write_bytes(path.read_bytes() + b" " * 150_000)
    assert any("bytes, more than" in complaint for complaint in complaints(read(large), large))


def test_numbers_that_vary_are_not_compared() -> None:
    cell = {"metadata": {}, "outputs": [{"output_type": "stream", "text": ["accuracy 0.81, loss -1.2e-3"]}]}
    other = {"metadata": {}, "outputs": [{"output_type": "stream", "text": ["accuracy  0.9, loss 3"]}]}
    assert comparable(cell) != comparable(other)
    for one in (cell, other):
        one["metadata"] = {"tags": ["varies"]}
    assert comparable(cell) == comparable(other) == "accuracy #, loss #"
