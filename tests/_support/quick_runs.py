"""Which cases of a test a quick run has, and which are left to the slow tests."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from random import Random

import pytest

MOST_CASES = 2
"""Of a test with more cases a quick run draws so many, or as many as ``pytest.mark.cases`` says;
slow tests run all.
"""


def leave_further_cases(items: list[pytest.Item], seed: str, *, all_are_slow: bool) -> None:
    """Mark as slow what a test has beyond its most cases, or all its cases; those left are drawn by
    ``seed``.

    Tests with parameters of the same names (types, samplers) draw the same, so that few loops are
    compiled for all.
    """
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if not any(item.iter_markers("slow")) and not any(item.iter_markers("gpu")):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_test in cases.values():
        number = of_test[0].get_closest_marker("cases")
        most = MOST_CASES if number is None else number.args[0]
        if len(of_test) > most:
            of_test.sort(key=lambda item: place(item.nodeid, seed))
            for item in of_test[0 if all_are_slow else most :]:
                item.add_marker(pytest.mark.slow)


def place(test: str, seed: str) -> float:
    """Return the place of a case among those of its test: a sum of random numbers, one per name of
    a parameter.
    """
    names = test.partition("[")[2].removesuffix("]").split("-")
    return sum(number_of(name, seed) for name in names)


@cache
def number_of(name: str, seed: str) -> float:
    return Random(f"{seed} {name}").random()
