"""Writes docs/reference.md: every public name of the package, by room, with the first line of its docstring.

``python scripts/make_reference.py`` writes the page; with ``--print`` it goes to standard output.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path

import nodeflow

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs"))

from _site import public_names as site  # noqa: E402

PAGE = ROOT / "docs" / "reference.md"
HEAD = """# Reference

Every public name, by room, with the first line of its documentation; `help(name)` shows the rest. A name that is also
in `nodeflow` itself is marked with a star: `from nodeflow import Graph` and `from nodeflow.graph import Graph` are the
same. Names that are not on this page may change without notice.

This page is written by `python scripts/make_reference.py`.
"""


def first_line(thing: object) -> str:
    """Return the first sentence of a docstring, which may go over several lines, for a table."""
    return site.first_line(thing).replace("|", "\\|")


def section(room: str) -> str:
    """Return the part of the page about one room."""
    module = import_module(f"nodeflow.{room}")
    lines = [f"## nodeflow.{room}", "", first_line(module), ""]
    if room == "fn":
        return "\n".join([*lines, *in_families(module.__all__)])
    lines += ["| name | purpose |", "|---|---|"]
    for name in module.__all__:
        value = getattr(module, name)
        star = " ★" if name in nodeflow.__all__ and getattr(nodeflow, name) is value else ""
        lines.append(f"| `{name}`{star} | {first_line(value)} |")
    return "\n".join(lines)


def in_families(names: list[str]) -> list[str]:
    """Group the many names of ``fn`` by their operation."""
    families: dict[str, list[str]] = {}
    for name in names:
        parts = name.split("_")
        family = parts[1] if len(parts) == 3 else "copy" if parts[0] == "copy" else "reduce functions, classes"
        families.setdefault(family, []).append(f"`{name}`")
    rows = [f"| {family} | {', '.join(members)} |" for family, members in families.items()]
    return ["| operation | names |", "|---|---|", *rows]


def page() -> str:
    """Return the whole page."""
    rooms = [name for name in nodeflow.__all__ if inspect.ismodule(getattr(nodeflow, name))]
    own = [name for name in nodeflow.__all__ if name not in rooms]
    top = ["## nodeflow", "", "Rooms: " + ", ".join(f"[`{room}`](#nodeflow{room})" for room in rooms) + ".", ""]
    top += ["Names: " + ", ".join(f"`{name}`" for name in own) + "."]
    return "\n\n".join([HEAD.rstrip(), "\n".join(top), *map(section, site.rooms())]) + "\n"


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), encoding="utf-8")
