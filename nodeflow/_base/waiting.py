"""How threads of OpenMP wait for their next work, which its library reads once, when torch loads it.

By default they spin for 300,000 pauses, some milliseconds. On quiet cores that saves waking them; beside other programs
a thread spins for the one that has no core, and that one waits for it.
"""

from __future__ import annotations

import os
from typing import Final

POLICY: Final = "OMP_WAIT_POLICY"
_NAMES: Final = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def is_chosen() -> bool:
    """Whether a variable says how threads wait."""
    return any(name in os.environ for name in _NAMES)
