"""The layout of the package: rooms in one order, doors that list what is public, and light
imports.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from _support.pages import ROOT
from _support.rooms import (
    INSIDE,
    PACKAGE,
    PUBLIC,
    ROOMS,
    direct,
    files,
    imports_between,
    imports_of,
    room_of,
    target_of,
)

import nodeflow

SECOND_DOORS = {"nodeflow.sampling.base"}
"""Public modules within a room, for those who write their own."""


def test_every_room_is_in_the_order():
    assert sorted({room_of(path) for path in files()}) == sorted(ROOMS)


def test_imports_point_down():
    """Type-only imports and imports within functions count like all others."""
    up = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module} {name}"
        for path in files()
        for line, module, name in imports_of(path)
        if target_of(module, name) not in ROOMS[: ROOMS.index(room_of(path)) + 1]
    ]
    assert up == []


@pytest.mark.parametrize("room", INSIDE)
def test_imports_within_a_room_of_several_point_down(room):
    order = INSIDE[room]
    up = []
    for path in files():
        if room_of(path) != room or path == PACKAGE / room / "__init__.py":
            continue
        part = path.relative_to(PACKAGE).with_suffix("").parts[1]
        allowed = order[: order.index(part) + 1]
        for line, module, name in imports_of(path):
            parts = [*module.split("."), name]
            if parts[1] == room and parts[2] not in allowed:
                up.append(f"{path.relative_to(PACKAGE)}:{line} imports {module} {name}")
    assert up == []


def test_a_name_stands_for_one_class():
    """But for the classes of other libraries' interfaces (``compat``), which have their names."""
    places: dict[str, list[str]] = {}
    for path in files():
        if room_of(path) == "compat":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_files_behind_a_door_are_private_by_name():
    for path in files():
        inside = path.relative_to(PACKAGE).parts
        if len(inside) > 1 and not inside[0].startswith("_") and inside[-1] != "__init__.py":
            assert any(part.startswith("_") for part in inside), f"{path} looks public"


def test_other_rooms_come_through_their_door():
    """The files of a room without an underscore are its own; rooms below all others have no
    doors.
    """
    past = [
        f"{path.relative_to(PACKAGE)}:{line} takes {name} from {module}"
        for path in files()
        for line, module, name in imports_of(path)
        if target_of(module, name) in PUBLIC
        and target_of(module, name) != room_of(path)
        and module.count(".") > 1
        if module not in SECOND_DOORS
    ]
    assert past == []


def test_autograd_lives_in_ops_only():
    for path in files():
        if "torch.autograd" in path.read_text(encoding="utf-8").replace(
            "torch.autograd.gradcheck", ""
        ):
            assert room_of(path) == "ops", path


def test_compiled_loops_know_neither_torch_nor_classes_of_the_package():
    for path in (PACKAGE / "_kernels").rglob("*.py"):
        modules = {name.split(".")[0] for name in imported_by(path)}
        assert modules <= {
            "nodeflow",
            "ctypes",
            "os",
            "numba",
            "sys",
            "numpy",
            "llvmlite",
            "functools",
            "heapq",
            "math",
            "typing",
            "collections",
            "importlib",
            "types",
            "warnings",
            "__future__",
        }, path


def test_nothing_asks_how_the_package_was_installed():
    """It runs in a folder of the path, too, where Python knows no version of it. The command asks
    for the version of torch.
    """
    asking = [path.name for path in files() if "importlib.metadata" in imported_by(path)]
    assert asking == ["_cli.py"]


@pytest.mark.parametrize("folder", ["draw", "reduce"])
def test_every_file_of_compiled_loops_is_listed(folder):
    """For readers, in the docstrings of ``draw`` and ``reduce``."""
    room = PACKAGE / "_kernels" / folder
    words = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    names = sorted({path.stem for path in room.glob("*.py")} - {"__init__"})
    assert [name for name in names if f"``{name}``" not in words] == []


def imported_by(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.append(str(node.module))
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


# -------------------------------------------------------------------------------------------------------------
# doors


@pytest.mark.parametrize("room", PUBLIC)
def test_a_door_lists_what_is_public(room):
    module = import_module(f"nodeflow.{room}")
    for name in module.__all__:
        assert hasattr(module, name), f"nodeflow.{room}.{name}"
        assert not name.startswith("_")


def test_the_top_shows_its_public_names_and_nothing_else():
    assert dir(nodeflow) == sorted([*nodeflow.__all__, "__version__", "random"])
    assert set(PUBLIC) <= {*nodeflow.__all__, "random"}
    assert "random" not in nodeflow.__all__  # "import *" must not hide Python's module
    for name in nodeflow.__all__:
        assert hasattr(nodeflow, name), name


def test_a_name_at_the_top_is_that_of_its_room():
    doors = [import_module(f"nodeflow.{room}") for room in PUBLIC]
    for name in set(nodeflow.__all__) - set(PUBLIC) - {"ALL"}:
        owners = [door for door in doors if name in door.__all__]
        assert len(owners) == 1, f"{name} is public in {[door.__name__ for door in owners]}"
        assert getattr(owners[0], name) is getattr(nodeflow, name)


def test_no_name_is_public_in_two_rooms():
    seen: dict[str, str] = {}
    for room in (*PUBLIC, *(door.removeprefix("nodeflow.") for door in SECOND_DOORS)):
        for name in import_module(f"nodeflow.{room}").__all__:
            assert seen.setdefault(name, room) == room, f"{name} is in {seen[name]} and {room}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'kernels'"):
        nodeflow.kernels  # noqa: B018


# -------------------------------------------------------------------------------------------------------
# the documents


def test_the_index_says_what_every_public_room_has():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    table = text.partition("## The modules")[2].partition("\n## ")[0]
    named = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`nodeflow\.(\w+)`", line.split(" | ")[0])
    }
    assert named == set(PUBLIC)


def test_the_architecture_page_shows_the_rooms():
    """Its table has the rooms from top to bottom, and what each one imports directly."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [
        line.split(" | ")
        for line in text.splitlines()
        if line.startswith("| `") and line.count(" | ") == 2
    ]
    table = {
        cells[0].strip("| `/"): cells[2].strip("| ").replace("`", "").split(", ") for cells in rows
    }
    assert list(table) == [*reversed(ROOMS)]
    between = direct(imports_between())
    assert table == {room: between[room] or ["nothing"] for room in reversed(ROOMS)}


# ------------------------------------------------------------------------------------------------------
# light imports

ALLOWED = {"torch", "numpy", "nodeflow", "typing_extensions"}
"""Distributions that ``import nodeflow`` may load, beside those that torch loads itself."""


FIRST_USE = """
import torch, sys, json
found, known = [], set(sys.modules)

def note():
    found.append([*set(sys.modules) - known])

import nodeflow
note()
sampler = nodeflow.NeighborSampler(nodeflow.Graph.from_edges([0], [1]), [1])
sampler([1])
note()
nodeflow.nn.SAGEConv, nodeflow.datasets.debian, nodeflow.transform.reverse
print(json.dumps(found))
"""


def test_importing_the_package_is_light():
    """What is loaded beside torch after ``import nodeflow``, and after the first batch, in a
    process of its own.

    The process ends with an error where a room does not load when it is asked for, or where
    anything warns.
    """
    command = [sys.executable, "-W", "error", "-c", FIRST_USE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported, after_a_batch = map(set, json.loads(done.stdout))
    names = {name.split(".")[0] for name in imported}
    assert names - sys.stdlib_module_names - {"__mp_main__"} <= ALLOWED
    rooms_that_few_use = ["nn", "testing", "training", "datasets", "plot", "convert"]
    assert [room for room in rooms_that_few_use if f"nodeflow.{room}" in imported] == []
    assert "numba" not in imported  # compiled loops load when first used
    assert "numba" in after_a_batch
