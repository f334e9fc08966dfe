"""Locks around state of other libraries that all threads share. A child made by fork begins with all of them free.

Take one as ``with locks.warnings:``, which looks up the lock of this very process.
"""

from __future__ import annotations

import os
import threading

warnings = threading.Lock()
"""Filters of warnings."""
metis = threading.Lock()
"""The random generator of METIS."""


def _renew() -> None:
    global warnings, metis
    warnings, metis = threading.Lock(), threading.Lock()  # a thread that only the parent has may hold the old ones


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
