"""State of the whole process is in one room: no other file has a variable that functions change."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
from pathlib import Path

import pytest
from _support.rooms import PACKAGE, files

from nodeflow._core.runtime import process

CHANGEABLE = re.compile(
    "Condition|Counter|Lock|OrderedDict|RLock|SimpleQueue|WeakKeyDictionary|WeakSet|WeakValueDictionary|bytearray|count"
    "|defaultdict|deque|dict|list|set"
)


def state_of(source: str) -> list[str]:
    """Names of a module that hold an empty or a made container, a lock or a counter, or that a
    function rebinds.
    """
    tree = ast.parse(source)
    found = [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    for node in tree.body:
        value = getattr(node, "value", None)
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        empty = isinstance(value, (ast.Dict, ast.List, ast.Set)) and not ast.unparse(value).strip(
            "{}[]"
        )
        made = isinstance(value, ast.Call) and CHANGEABLE.fullmatch(
            ast.unparse(value.func).split(".")[-1]
        )
        if empty or made:
            found += [
                ast.unparse(target)
                for target in getattr(node, "targets", [getattr(node, "target", None)])
            ]
    return found


def test_such_variables_are_found():
    source = (
        "a = {}\nb: list[int] = []\nc = threading.Lock()\nd = {1: 2}\ndef f():\n    global e\n    "
        "e = 1"
    )
    assert sorted(state_of(source)) == ["a", "b", "c", "e"]


def test_only_the_room_of_the_process_has_state():
    found = {
        str(path.relative_to(PACKAGE)): state_of(Path(path).read_text(encoding="utf-8"))
        for path in files()
    }
    assert {
        name: names
        for name, names in found.items()
        if names and not name.startswith("_core/runtime/")
    } == {}
    assert sum(map(len, found.values())) >= 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_locks_that_are_held_at_a_fork_are_free_in_the_child():
    def take() -> None:
        with process.warnings_lock, process.metis_lock:
            pass

    child = multiprocessing.get_context("fork").Process(target=take)
    with process.warnings_lock, process.metis_lock:
        child.start()
    child.join(20)
    assert child.exitcode == 0
