"""Locks around state of other libraries that all threads share. A child made by fork begins with all of them free.

Take one as ``with locks.warnings:``, which looks up the lock of this very process.
"""

from __future__ import annotations

import os
import threading
import warnings as python_warnings
from collections.abc import Iterator
from contextlib import contextmanager

warnings = threading.Lock()
"""Filters of warnings."""
metis = threading.Lock()
"""The random generator of METIS."""
syntax = threading.Lock()
"""Python's reader of literals, by which numpy reads the header of a file. Before 3.11.8 and 3.12.2 it may end in a
SystemError where another thread uses it while a collection of garbage interrupts it (CPython issue 106905)."""


@contextmanager
def ignored_warnings(message: str = "") -> Iterator[None]:
    """Ignore warnings whose text matches the regular expression ``message`` within the block."""
    with warnings, python_warnings.catch_warnings():
        python_warnings.filterwarnings("ignore", message=message)
        yield


def _renew() -> None:
    global warnings, metis, syntax
    # a thread that only the parent has may hold the old ones
    warnings, metis, syntax = threading.Lock(), threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
