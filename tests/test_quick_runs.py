"""A quick run draws some cases of every test, and the slow one has all that it may have left
out.
"""

from __future__ import annotations

from typing import Any

import pytest
from _support.quick_runs import MOST_CASES, leave_further_cases


class Case:
    """What the choice of cases knows of a test: its name, and its marks."""

    def __init__(self, nodeid: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid = nodeid
        self.marks = [decorator.mark for decorator in marks]

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)

    def add_marker(self, decorator: pytest.MarkDecorator) -> None:
        self.marks.append(decorator.mark)

    @property
    def is_slow(self) -> bool:
        return bool(self.iter_markers("slow"))


def session() -> list[Any]:
    """Tests of 1, some and 30 cases, one of 10 of which 3 are wanted, and one with cases that are
    slow or for GPUs.
    """
    sizes = {"one": 1, "some": MOST_CASES, "many": 30}
    cases = [Case(f"test_{name}[{i}]") for name, size in sizes.items() for i in range(size)]
    cases += [Case(f"test_three[{i}]", pytest.mark.cases(3)) for i in range(10)]
    cases += [
        Case(f"test_marked[{i}]", (pytest.mark.slow, pytest.mark.gpu)[i % 2]) for i in range(20)
    ]
    return cases


def quick_cases(seed: str) -> list[str]:
    items = session()
    leave_further_cases(items, seed, all_are_slow=False)
    return [item.nodeid for item in items if not item.is_slow]


def test_a_quick_run_draws_cases_by_its_seed():
    quick = quick_cases("7")
    names = ("one", "some", "many", "three")
    counts = {name: sum(test.startswith(f"test_{name}[") for test in quick) for name in names}
    assert counts == {"one": 1, "some": MOST_CASES, "many": MOST_CASES, "three": 3}
    # those of GPUs, which skip without one
    assert sum(test.startswith("test_marked") for test in quick) == 10
    assert quick == quick_cases("7")
    assert len({tuple(quick_cases(str(seed))) for seed in range(20)}) > 10
    assert {test for seed in range(200) for test in quick_cases(str(seed))} >= {
        f"test_many[{i}]" for i in range(30)
    }


def test_tests_of_the_same_parameters_draw_the_same():
    names = [f"{sampler}-{kind}" for sampler in "abc" for kind in ("float32", "float64", "int64")]
    for seed in "1234":
        items: list[Any] = [
            Case(f"{test}[{name}]") for test in ("test_it", "test_that") for name in names
        ]
        items += [
            Case(f"test_kinds[{kind}]", pytest.mark.cases(1))
            for kind in ("float32", "float64", "int64")
        ]
        leave_further_cases(items, seed, all_are_slow=False)
        drawn = [item.nodeid.partition("[")[2] for item in items if not item.is_slow]
        (kind,) = drawn[-1:]
        assert drawn[:MOST_CASES] == drawn[MOST_CASES:-1]
        assert any(name.endswith(f"-{kind}") for name in drawn[:-1])


def test_a_slow_run_has_all_cases_that_a_quick_one_may_leave_out():
    items = session()
    leave_further_cases(items, "7", all_are_slow=True)
    slow = {item.nodeid for item in items if item.is_slow}
    assert slow >= {f"test_many[{i}]" for i in range(30)} | {f"test_three[{i}]" for i in range(10)}
    assert not any(test.startswith(("test_one", "test_some")) for test in slow)
