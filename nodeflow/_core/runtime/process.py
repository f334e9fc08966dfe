"""State that all threads share: off-switches, locks around state of other libraries, living graphs,
seeds.

Take a lock as ``with process.warnings_lock:``, which looks up the lock of this very process: a
child made by fork begins with all of them free.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, repeat
from typing import Any, Final

_OFF: Final = ("0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


reuse_buffers = _is_on("NODEFLOW_REUSE_BUFFERS")
"""Whether results and batches use memory that earlier ones have freed."""
torch_threads = _is_on("NODEFLOW_TORCH_THREADS")
"""Whether the threads that torch keeps share the work; else threads are started for every call."""

warnings_lock = threading.Lock()
"""Filters of warnings."""
metis_lock = threading.Lock()
"""The random generator of METIS."""
syntax_lock = threading.Lock()
"""Python's reader of literals, by which numpy reads the header of a file. Before 3.11.8 and 3.12.2
it may end in a SystemError where another thread uses it while a collection of garbage interrupts it
(CPython issue 106905).
"""

graphs: Final[weakref.WeakValueDictionary[str | None, Any]] = weakref.WeakValueDictionary()
"""Graphs by their ``uid``, while something else keeps them alive; there is none of the name None.
An unpickled batch finds the very graph that it came from.
"""
groups: Final[dict[Any, Any]] = {}
"""By torch's default process group, the one of now: its processes, with which this one
exchanges.
"""
openings: Final = count(1)
"""Numbers of the graphs on several processes that this one opens: the same on all, which open them
together.
"""
seeds: Iterator[tuple[int, int]] = zip(repeat(0), count())
"""For objects without a seed of their own: a seed, and how many of them took it before. No two get
the same.
"""


def seed(value: int) -> None:
    """Begin ``seeds`` again: objects get from now on what those made after an equal call got, in
    order.
    """
    global seeds
    seeds = zip(repeat(value), count())


@contextmanager
def ignored_warnings(message: str = "") -> Iterator[None]:
    """Ignore warnings whose text matches the regular expression ``message`` within the block."""
    with warnings_lock, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message)
        yield


def check_same(number: int, what: str) -> None:
    """Raise RuntimeError in a child made by fork: unless this is the process ``number``, which made
    ``what``.
    """
    if os.getpid() != number:
        raise RuntimeError(
            f"{what} were made in another process, {number}, and do not live on in process "
            f"{os.getpid()}, its child made by fork: make them in the child, or start it with the "
            "method 'spawn'"
        )


def _renew() -> None:
    global warnings_lock, metis_lock, syntax_lock
    # a thread that only the parent has may hold the old ones
    warnings_lock = threading.Lock()
    metis_lock = threading.Lock()
    syntax_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
