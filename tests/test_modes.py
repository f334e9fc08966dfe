"""Modes stay in their rooms: how many files elsewhere speak of several processes, of draws in torch,
of bfloat16 and of coded rows. The counts only fall: a file that needs no such word loses it, and the
number here goes down with it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from _support.rooms import PACKAGE


class Mode(NamedTuple):
    """The words that speak of a mode, the rooms and files where they belong, and how many other
    files have one of them at most.
    """

    words: set[str]
    rooms: tuple[str, ...]
    most: int


MODES = {
    "several processes": Mode({"peers"}, ("_core/peers", "_processes", "distributed"), 30),
    "form of draws": Mode({"form", "in_torch"}, ("_core/in_torch", "_core/edges"), 20),
    "bfloat16": Mode({"bfloat16"}, ("_kernels", "ops", "training/_precision.py"), 10),
    "coded rows": Mode({"coded"}, ("_core/rows", "storage"), 2),
}


def names_in(path: Path) -> set[str]:
    """Return the names and attributes that a file reads or sets, and its keywords; words of
    comments, docstrings, messages and of modules that it imports from do not count.
    """
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg | ast.keyword):
            names.add(node.arg or "")
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def files_that_speak_of(mode: Mode) -> list[str]:
    speaking = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(mode.rooms) and names_in(path) & mode.words:
            speaking.append(place)
    return speaking


def test_few_files_outside_its_rooms_speak_of_a_mode():
    counts = {name: len(files_that_speak_of(mode)) for name, mode in MODES.items()}
    assert {name: count for name, count in counts.items() if count > MODES[name].most} == {}
