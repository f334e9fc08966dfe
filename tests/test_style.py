"""One fact per statement: what ruff has no rule for. ``LEFT`` names rooms not yet opened; it only
shrinks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

PACKAGE = Path(__file__).parents[1] / "nodeflow"
LEFT: set[str] = set()
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
CONTAINERS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
)
DEPTH = 3  # calls within calls
SIZE = 40  # expressions of a statement, constants apart


def heads(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, without the statements of its blocks."""
    for name, value in ast.iter_fields(statement):
        if name not in BLOCKS:
            values = value if isinstance(value, list) else [value]
            yield from (part for part in values if isinstance(part, ast.AST))


def depth_of_calls(node: ast.AST) -> int:
    inside = max(map(depth_of_calls, ast.iter_child_nodes(node)), default=0)
    return inside + isinstance(node, ast.Call)


def assigns_a_tuple(statement: ast.stmt) -> TypeGuard[ast.Assign]:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Tuple):
        return False
    return isinstance(statement.targets[0], ast.Tuple)


def is_swap(statement: ast.Assign) -> bool:
    """Whether the statement gives values to names that it reads, as ``a, b = b, a + b`` does."""
    assert isinstance(statement.targets[0], ast.Tuple)
    names = {ast.unparse(target) for target in statement.targets[0].elts}
    return any(ast.unparse(part) in names for part in ast.walk(statement.value))


def faults(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement does at once that takes several."""
    parts = [part for head in heads(statement) for part in ast.walk(head)]
    if assigns_a_tuple(statement) and not is_swap(statement):
        yield "assigns several values at once (only a swap may)"
    if sum(isinstance(part, ast.IfExp) for part in parts) > 1:
        yield "has two inline ifs"
    outer = [part for part in parts if isinstance(part, COMPREHENSIONS)]
    if any(
        isinstance(part, COMPREHENSIONS)
        for one in outer
        for part in ast.walk(one)
        if part is not one
    ):
        yield "has a comprehension inside another"
    if max(map(depth_of_calls, heads(statement)), default=0) > DEPTH:
        yield "nests calls four deep"
    if (
        sum(isinstance(part, ast.expr) and not isinstance(part, ast.Constant) for part in parts)
        > SIZE
    ):
        yield f"has more than {SIZE} expressions"


def is_table(statement: ast.stmt) -> bool:
    """Whether the statement is a table of data, which is read row by row."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or assigns_a_tuple(statement):
        return False
    return isinstance(statement.value, ast.Dict | ast.Tuple)


def faults_of(text: str) -> list[str]:
    """Return the faults of a module, by line; its own tables may be large."""
    module = ast.parse(text)
    tables = {id(statement) for statement in module.body if is_table(statement)}
    found = []
    for node in ast.walk(module):
        is_plain = isinstance(node, ast.stmt) and not isinstance(node, CONTAINERS)
        if is_plain and id(node) not in tables:
            found += [f"line {node.lineno} {fault}" for fault in faults(node)]
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def faults_by_file(*, is_left: bool) -> dict[str, list[str]]:
    """Return the faults of all files of the rooms in ``LEFT``, or of all others."""
    faulty = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found = faults_of(path.read_text(encoding="utf-8"))
        if found and (room_of(path) in LEFT) == is_left:
            faulty[str(path.relative_to(PACKAGE))] = found
    return faulty


def test_a_statement_says_one_thing():
    assert faults_by_file(is_left=False) == {}


def test_a_room_that_is_open_leaves_the_list():
    assert {file.split("/")[0] for file in faults_by_file(is_left=True)} == LEFT


@pytest.mark.parametrize(
    "statement",
    ["a, b = x, y", "a = (x if c else y) + (x if d else y)", "a = [[i for i in j] for j in k]",
     "a = f(g(h(i(x))))", f"a = [{'x, ' * 41}]"],
)  # fmt: skip
def test_packed_statements_are_found(statement):
    assert len(faults_of(statement)) == 1


@pytest.mark.parametrize(
    "statement", ["a, b = b, a", "a, b = b, a + b", "a, b = f()", "a = f(g(h(x)))"]
)
def test_plain_statements_are_left_alone(statement):
    assert faults_of(statement) == []
