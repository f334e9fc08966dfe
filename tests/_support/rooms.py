"""The rooms of the package in their order, and who imports whom, read from the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import nodeflow

PACKAGE = Path(nodeflow.__file__).parent

ROOMS = (
    "_kernels",
    "_core",
    "_processes",
    "_files",
    "random",
    "fn",
    "graph",
    "transform",
    "ops",
    "flow",
    "convert",
    "propagation",
    "sampling",
    "control_variates",
    "loader",
    "storage",
    "nn",
    "metrics",
    "distributed",
    "compat",
    "plot",
    "datasets",
    "testing",
    "training",
)
"""Lowest first: a room imports from itself and from rooms before it."""

INSIDE = {
    "_core": (
        "base",
        "in_torch",
        "runtime",
        "rows",
        "display",
        "links",
        "random",
        "peers",
        "edges",
        "schema",
    ),
    "_files": ("disk", "store", "text"),
}
"""The folders and files of a room of several, lowest first."""

PUBLIC = tuple(room for room in ROOMS if not room.startswith("_"))


@cache
def files() -> list[Path]:
    """All files of the package but the two on top of it: ``__init__`` and ``__main__``."""
    return sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE or not path.stem.startswith("__")
    )


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imports_of(path: Path) -> list[tuple[int, str, str]]:
    """Every import of the package's own names in a file: line, module, name. Late and type-only
    ones count too.

    >>> [name for _, module, name in imports_of(PACKAGE / "transform.py") if module == "nodeflow.graph"]
    ['Frame', 'Graph']
    """
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports name the whole path"
            if (node.module or "").split(".")[0] == "nodeflow":
                found += [(node.lineno, str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [
                (node.lineno, alias.name, "")
                for alias in node.names
                if alias.name.split(".")[0] == "nodeflow"
            ]
    return found


def target_of(module: str, name: str) -> str:
    """The room that an import leads to; "nodeflow" for a public name taken from the top."""
    parts = [*module.split("."), name][1:]
    return parts[0] if parts[0] in ROOMS else "nodeflow"


def imports_between() -> dict[str, set[str]]:
    """Per room the other rooms that it imports from."""
    between: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in files():
        room = room_of(path)
        between[room] |= {target_of(module, name) for _, module, name in imports_of(path)} - {room}
    return between


def direct(between: dict[str, set[str]]) -> dict[str, list[str]]:
    """Without the imports that follow from others: of a -> b -> c and a -> c, the last one is left
    out.
    """
    reached: dict[str, set[str]] = defaultdict(set)
    for room in ROOMS:
        for other in between[room]:
            reached[room] |= {other} | reached[other]
    return {
        room: [
            o
            for o in ROOMS
            if o in between[room] and not any(o in reached[p] for p in between[room])
        ]
        for room in ROOMS
    }
