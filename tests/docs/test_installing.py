"""The distribution has a name of its own: on the package index ``nodeflow`` is a package of
somebody else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from _support.pages import ROOT

NAME = "nodeflow-gnn"
OTHER_PACKAGE = re.compile(r"pip install[^\n`]*(?<![\w./-])nodeflow(?![\w./-])")
"""A line that installs ``nodeflow``, with or without extras."""
FOLDERS = ("docs", "nodeflow", "notebooks", "benchmarks", "scripts", "trials", "tests")
ENDINGS = ("*.md", "*.py", "*.ipynb")


def texts() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        for ending in ENDINGS:
            yield from (ROOT / folder).rglob(ending)


def test_the_distribution_has_a_name_of_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == NAME
    extras = [need for needs in project["optional-dependencies"].values() for need in needs]
    of_this_package = [need for need in extras if need.startswith("nodeflow")]
    assert of_this_package
    assert all(need.startswith(f"{NAME}[") for need in of_this_package)


def test_a_line_that_installs_the_other_package_is_found():
    wrong = (
        "pip install nodeflow",
        "pip install -U 'nodeflow[plot]'",
        "pip install torch nodeflow==0.1.0",
    )
    right = (
        "pip install nodeflow-gnn",
        "pip install 'nodeflow-gnn[plot]'",
        "pip install -e work/nodeflow",
    )
    assert all(OTHER_PACKAGE.search(line) for line in wrong)
    assert not any(OTHER_PACKAGE.search(line) for line in right)


def test_no_page_and_no_message_installs_the_other_package():
    lines = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts()
        if path.name != Path(__file__).name
        for match in OTHER_PACKAGE.finditer(path.read_text(encoding="utf-8"))
    ]
    assert lines == []
