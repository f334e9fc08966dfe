"""How much a test does: statistics take few draws in a quick run and many in a slow one, properties
few examples.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

few_or_many_draws = pytest.mark.parametrize(
    "draws", [400, pytest.param(2000, marks=pytest.mark.slow)]
)
"""A bias is found that is larger than about 5 standard errors: a quarter of a draw's deviation, or
a ninth.
"""
EXAMPLES = {"quick": 10, "slow": 50}
"""Of a property. Slow tests are all properties too."""


def examples(number: int, **more: Any) -> settings:
    """Return the settings of a property with so many examples in a slow run, and a fifth of them in
    a quick one.

    At least 5 of them run in both.
    """
    share = settings().max_examples / EXAMPLES["slow"]
    return settings(max_examples=max(min(number, 5), round(number * share)), **more)
