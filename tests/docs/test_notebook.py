"""The notebook runs from top to bottom, and shows what it shows."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _support.pages import ROOT, environment

TOUR = ROOT / "notebooks" / "tour.ipynb"
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(cell: dict[str, Any]) -> list[str]:
    """What a cell printed and returned, without its pictures."""
    texts = [out["text"] if out["output_type"] == "stream" else out["data"]["text/plain"] for out in cell["outputs"]]
    return ["".join(text) for text in texts]


def stored() -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(TOUR.read_text(encoding="utf-8"))
    return notebook


def test_the_stored_notebook_was_run_from_top_to_bottom() -> None:
    cells = code_cells(stored())
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert {out["output_type"] for cell in cells for out in cell["outputs"]} <= {
        "stream",
        "execute_result",
        "display_data",
    }
    assert TOUR.stat().st_size < 200_000


@pytest.mark.slow
def test_the_notebook_runs_and_prints_what_is_stored(tmp_path: Path) -> None:
    missing = [name for name in ("nbclient", "nbformat", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; install with: pip install {' '.join(missing)}")
    fresh = tmp_path / "tour.ipynb"
    # a process of its own: a kernel leaves threads and sockets behind, of which Python warns
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(TOUR), str(fresh)],
        cwd=tmp_path,
        env={**environment(), "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = code_cells(stored()), code_cells(json.loads(fresh.read_text(encoding="utf-8")))
    for old, new in zip(before, after, strict=True):
        if "varies" not in old["metadata"].get("tags", []):
            assert printed(new) == printed(old), f"cell {old['id']} prints something else"
