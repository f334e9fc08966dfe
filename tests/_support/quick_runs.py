"""Which cases of a test a quick run has, and which are left to the slow tests."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

MOST_CASES = 4
"""Of a test with more cases a quick run draws so many, or as many as ``pytest.mark.cases`` says; slow tests run all."""


def leave_further_cases(items: list[pytest.Item], seed: str, *, all_are_slow: bool) -> None:
    """Mark as slow what a test has beyond its most cases, or all its cases; those left are drawn by ``seed``."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if not any(item.iter_markers("slow")) and not any(item.iter_markers("gpu")):
            cases[item.nodeid.partition("[")[0]].append(item)
    for test, of_test in cases.items():
        number = of_test[0].get_closest_marker("cases")
        most = MOST_CASES if number is None else number.args[0]
        if len(of_test) > most:
            drawn = Random(f"{seed} {test}").sample(of_test, 0 if all_are_slow else most)
            for item in of_test:
                if item not in drawn:
                    item.add_marker(pytest.mark.slow)
