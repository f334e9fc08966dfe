"""Mutants: small faults are planted in the code one by one, and the tests that run the changed line
must find them.

A random sample of every room is tried in a copy of the tree. ``make coverage`` notes which tests
run which lines, so it comes first; for some rooms their own tests are enough,
``coverage run -m pytest -p trials.contexts tests/ROOM`` and ``coverage combine``, but tests of
other rooms may find what they do not. A process that has imported torch is forked for every mutant,
so that none waits for the import. mutmut and cosmic-ray have no removed statements, raises,
keywords and copies, and change annotations too.

    python trials/mutants.py --rooms flow ops --sample 30
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from random import Random
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutants"
COVERAGE = ROOT / "build" / "coverage"
ROOMS = {
    "sampling": ["nodeflow/sampling"],
    "flow": ["nodeflow/flow"],
    "ops": ["nodeflow/ops"],
    "control_variates": ["nodeflow/control_variates"],
    "storage": ["nodeflow/storage"],
    "_files/disk": ["nodeflow/_files/disk"],
    "random": ["nodeflow/_core/random.py", "nodeflow/_kernels/rng.py"],
    "draws": ["nodeflow/_kernels/draw"],
}
_OPERATORS = (
    "Lt LtE,LtE Lt,Gt GtE,GtE Gt,Eq NotEq,NotEq Eq,Is IsNot,IsNot Is,In NotIn,NotIn In,And Or,Or "
    "And,Add Sub,"
)
_OPERATORS += (
    "Sub Add,Mult Add,Div Mult,FloorDiv Mult,Mod FloorDiv,Pow Mult,LShift RShift,RShift "
    "LShift,BitAnd BitOr,"
)
_OPERATORS += "BitOr BitAnd,BitXor BitOr,MatMult Add"
SWAPS = {
    getattr(ast, a): getattr(ast, b) for a, b in (pair.split() for pair in _OPERATORS.split(","))
}
MEMORY = 8 << 30  # bytes that a mutant may ask for


class Mutant(NamedTuple):
    """A change of a file: bytes ``begin`` to ``end`` become ``text``; the statement is on
    ``lines``.
    """

    path: str
    kind: str
    lines: tuple[int, int]
    begin: int
    end: int
    text: str


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield (kind, what is replaced, by which text) for the faults that can be planted at a
    node.
    """
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            yield (
                "comparison",
                node,
                ast.unparse(ast.Compare(node.left, [SWAPS[type(op)]()], node.comparators)),
            )
        case ast.BinOp(left, op, right) if not any(
            isinstance(x, ast.JoinedStr) or _is_text(x) for x in (left, right)
        ):
            yield "arithmetic", node, ast.unparse(ast.BinOp(left, SWAPS[type(op)](), right))
        case ast.BoolOp(op, values):
            yield "and/or", node, ast.unparse(ast.BoolOp(SWAPS[type(op)](), values))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield "sign", node, ast.unparse(operand)
        case ast.Constant(bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(int() | float() as value):
            yield "constant", node, repr(value + 1)
        case ast.Call(
            ast.Attribute(value, "clone" | "copy" | "detach" | "contiguous" as name), [], []
        ):
            yield f"no {name}", node, ast.unparse(value)
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            # a length that zip() compares is equal in all that works
            if keyword.arg not in (None, "strict"):
                rest = [other for other in node.keywords if other is not keyword]
                yield f"no {keyword.arg}=", node, ast.unparse(ast.Call(node.func, node.args, rest))
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_negated(node.test):
        yield "condition", node.test, f"not ({ast.unparse(node.test)})"
    stores = isinstance(node, ast.Assign) and isinstance(
        node.targets[0], ast.Attribute | ast.Subscript
    )
    if stores or isinstance(node, ast.AugAssign | ast.Raise | ast.Delete | ast.Expr):
        yield "no statement", node, "pass"
    if isinstance(node, ast.AugAssign):
        yield (
            "arithmetic",
            node,
            ast.unparse(ast.AugAssign(node.target, SWAPS[type(node.op)](), node.value)),
        )


def _is_negated(test: ast.AST) -> bool:
    """Return whether a swap of its operator negates a condition already."""
    equal = ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn | ast.Not
    return isinstance(test, ast.Compare | ast.UnaryOp) and isinstance(
        getattr(test, "op", None) or test.ops[0], equal
    )


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mutants_of(path: str, source: str) -> list[Mutant]:
    """List the mutants of a file: none of texts, annotations, decorators and what only type
    checkers read.
    """
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    mutants = []

    def visit(node: ast.AST, lines: tuple[int, int]) -> None:
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.stmt):
            # of a compound statement its first lines; a default of an argument shows wherever the
            # function runs
            body = None if isinstance(node, ast.FunctionDef) else getattr(node, "body", None)
            last = min(b.lineno for b in body) - 1 if body else node.end_lineno
            lines = (node.lineno, max(node.lineno, last or 0))
        for kind, old, text in changes(node):
            begin = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            mutants.append(
                Mutant(
                    path,
                    kind,
                    lines,
                    begin,
                    end,
                    f"({text})" if isinstance(old, ast.expr) else text,
                )
            )
        if isinstance(node, ast.Raise):
            return
        for name, value in ast.iter_fields(node):
            if isinstance(node, ast.keyword) and node.arg == "strict":
                continue
            if name not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child, lines)

    visit(ast.parse(source), (1, 1))
    return mutants


class Tests:
    """Which tests run a line, the fastest first, from the data of ``make coverage``."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(COVERAGE / ".coverage"))
        self.data.read()
        self.seconds: dict[str, float] = {}
        for file in (COVERAGE / "seconds").glob("*.json"):
            self.seconds |= json.loads(file.read_text())
        self.by_line: dict[str, dict[int, set[str]]] = {}

    def of_lines(self, path: str, first: int = 0, last: int = 1 << 30) -> set[str]:
        if path not in self.by_line:
            by_line = self.data.contexts_by_lineno(path).items()
            self.by_line[path] = {
                line: self.seconds.keys() & contexts for line, contexts in by_line
            }
        return set().union(
            *(tests for line, tests in self.by_line[path].items() if first <= line <= last)
        )

    def of(self, mutant: Mutant) -> list[str]:
        """List the tests of a mutant, one case of each test function before the second of any."""
        compiled = re.compile(rf"\bkernels\.{Path(mutant.path).stem}\b")
        tests = self.of_lines(mutant.path, *mutant.lines)
        # compiled lines are not seen: the lines that call the file stand for them
        if "/_kernels/" in mutant.path:
            for file in sorted((ROOT / "nodeflow").rglob("*.py")):
                for number, line in enumerate(file.read_text().splitlines(), 1):
                    if compiled.search(line):
                        tests |= self.of_lines(str(file.relative_to(ROOT)), number, number)
        tests = tests or self.of_lines(mutant.path)  # of a line that runs when it is imported
        cases: dict[str, int] = {}
        place = {}
        for test in sorted(
            self.seconds.keys() & tests, key=lambda test: (self.seconds[test], test)
        ):
            name = test.partition("[")[0]
            place[test] = cases[name] = cases.get(name, 0) + 1
        return sorted(place, key=lambda test: (place[test], self.seconds[test], test))


def run(tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """Run tests in a forked process, for seconds of its processor, until one fails.

    Return "survived", or "killed" and what killed: the test, the time or the status of a dead
    process.
    """
    log = BUILD / "log"
    if (child := os.fork()) == 0:
        try:
            os.setsid()
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
            os.chdir(tree)
            sys.path.insert(0, str(tree))
            import pytest

            options = [
                "-q",
                "-x",
                "--tb=no",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:randomly",
                "--basetemp",
            ]
            os._exit(int(pytest.main([*options, str(BUILD / "tmp"), *tests])))
        finally:
            os._exit(99)
    # others may keep the processors busy
    end = time.monotonic() + 10 * limit
    status = None
    while status is None and time.monotonic() < end:
        time.sleep(0.05)
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # also what its tests have started
    if status is None:
        os.waitpid(child, 0)
        return "killed", f"no end within {10 * limit:.0f} s"
    if status == 0:
        return "survived", ""
    failed = [
        line
        for line in log.read_text(errors="replace").splitlines()
        if line.startswith(("FAILED", "ERROR"))
    ]
    return "killed", failed[0].split(" - ")[0] if failed else f"status {status}"


def judge(mutant: Mutant, tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """Plant a mutant in the tree, run tests, and take it out again."""
    source = (ROOT / mutant.path).read_bytes()
    target = tree / mutant.path
    target.write_bytes(source[: mutant.begin] + mutant.text.encode() + source[mutant.end :])
    os.utime(target, (time.time() + 10, time.time() + 10))  # no stored bytecode is as new
    os.environ["NUMBA_CACHE_DIR"] = str(BUILD / "compiled")
    if "/_kernels/" not in mutant.path:
        del os.environ["NUMBA_CACHE_DIR"]
    try:
        return run(tree, tests, limit)
    finally:
        shutil.copy2(ROOT / mutant.path, target)
        shutil.rmtree(BUILD / "compiled", ignore_errors=True)


def judge_all(sample: list[Mutant], tests: Tests, tree: Path, seconds: float) -> dict[Mutant, int]:
    """Judge mutants with tests of up to so many seconds each; return the survivors, and how many
    tests each passed.
    """
    waiting = list(sample)
    alive = {}
    while waiting:
        killers: dict[tuple[str, ...], list[Mutant]] = {}
        for mutant in waiting:
            chosen = []
            spent = 0.0
            for test in tests.of(mutant):
                spent += tests.seconds[test]
                if spent <= seconds or not chosen:
                    chosen.append(test)
            verdict, by = (
                judge(mutant, tree, chosen, 60 + 5 * seconds) if chosen else ("survived", "")
            )
            print(
                f"{verdict} {shown(mutant)} ({len(chosen)} tests) {by}", file=sys.stderr, flush=True
            )
            if verdict == "survived":
                alive[mutant] = len(chosen)
            else:
                killers.setdefault(
                    (by.partition(" ")[2],) if "::" in by else tuple(chosen), []
                ).append(mutant)
        if (
            killers
            and run(tree, [*dict.fromkeys(chain(*killers))], 10 * (60 + 5 * seconds))[0]
            == "survived"
        ):
            break
        waiting = []  # those that a test has found which fails without a mutant too
        for names, mutants in killers.items():
            if run(tree, list(names), 60 + 5 * seconds)[0] == "killed":
                print(f"failed without a mutant: {names}", file=sys.stderr, flush=True)
                if len(names) > 1:  # not known which of them
                    alive |= dict.fromkeys(mutants, 0)
                else:
                    del tests.seconds[names[0]]
                    waiting += mutants
    return alive


def interval(killed: int, of: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share."""
    z = 1.959964
    share = killed / of
    middle = share + z * z / (2 * of)
    half = z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


def shown(mutant: Mutant) -> str:
    """A mutant as one line: where, what, before and after."""
    old = " ".join((ROOT / mutant.path).read_bytes()[mutant.begin : mutant.end].decode().split())
    return (
        f"`{mutant.path}:{mutant.lines[0]}` {mutant.kind}: `{old}` -> "
        f"`{' '.join(mutant.text.split())}`"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=40, help="mutants of each room")
    parser.add_argument(
        "--skip", type=int, default=0, help="mutants of the same order that were judged before"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=60, help="of tests per mutant, as they took under coverage"
    )
    parser.add_argument("--least", type=float, default=0.9, help="the score of every room")
    options = parser.parse_args()
    tree = BUILD / "tree"
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(
        ROOT,
        tree,
        ignore=shutil.ignore_patterns(".git", "build", "runs", ".*_cache", ".hypothesis"),
    )
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    tests = Tests()
    for name in ("torch", "numba", "scipy.sparse", "pytest"):
        __import__(name)
    rows = []
    survivors = []
    failed = False
    for room in options.rooms:
        files = [
            file
            for part in ROOMS[room]
            for file in [ROOT / part, *(ROOT / part).rglob("*.py")]
            if file.is_file()
        ]
        paths = sorted(str(file.relative_to(ROOT)) for file in files)
        possible = [
            mutant for path in paths for mutant in mutants_of(path, (ROOT / path).read_text())
        ]
        Random(options.seed).shuffle(possible)  # a larger sample begins with the smaller one
        sample = possible[options.skip : options.skip + options.sample]
        alive = judge_all(sample, tests, tree, options.seconds)
        killed = len(sample) - len(alive)
        low, high = interval(killed, len(sample))
        failed |= killed < options.least * len(sample)
        figures = (
            f"{len(possible):,} | {len(sample)} | {killed} | {killed / len(sample):.0%} | "
            f"{low:.0%} to {high:.0%}"
        )
        rows.append(f"| {room} | {figures} |")
        survivors += [f"- {shown(mutant)} ({number} tests)" for mutant, number in alive.items()]
    print(
        "| room | mutants | sample | found | score | 95 % interval |\n|---|---|---|---|---|---|",
        *rows,
        sep="\n",
    )
    print("\nSurvivors:\n", *survivors, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
