"""A plugin of pytest for runs under coverage: notes which test ran each line, and how long each
test took.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

SECONDS: dict[str, float] = {}  # of tests that passed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if measurement := coverage.Coverage.current():
        measurement.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        SECONDS[report.nodeid] = report.duration


def pytest_sessionfinish() -> None:
    folder = Path(__file__).parents[1] / "build" / "coverage" / "seconds"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}.json").write_text(json.dumps(SECONDS))
