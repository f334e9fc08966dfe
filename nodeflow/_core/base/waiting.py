"""How threads of OpenMP wait for their next work, which its library reads once, when torch loads
it.

By default they spin for 300,000 pauses, some milliseconds. On quiet cores that saves waking them;
beside other programs a thread spins for the one that has no core, and that one waits for it.
"""

from __future__ import annotations

import os
from typing import Final

SHORT: Final = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}
"""To sleep soon. GNU's library spins first for as long as it takes to wake a thread: asleep at
once, a row of small operations took 1.5 times as long on quiet cores; beside busy programs either
is 30 to 300 times as fast as the default.
"""
_NAMES: Final = (*SHORT, "KMP_BLOCKTIME")


def is_chosen() -> bool:
    """Whether a variable says how threads wait."""
    return any(name in os.environ for name in _NAMES)
