"""How many draws a statistical test takes: few in a quick run, many in a slow one."""

from __future__ import annotations

import pytest

few_or_many_draws = pytest.mark.parametrize("draws", [400, pytest.param(2000, marks=pytest.mark.slow)])
"""A bias is found that is larger than about 5 standard errors: a quarter of a draw's deviation, or a ninth."""
