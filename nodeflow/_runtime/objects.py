"""Objects that live in this process: by name, numbered, and seeded where they have no seed of their own."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any, Final

graphs: Final[weakref.WeakValueDictionary[str | None, Any]] = weakref.WeakValueDictionary()
"""Graphs by their ``uid``, while something else keeps them alive; there is none of the name None. An unpickled batch
finds the very graph that it came from."""

openings: Final = itertools.count(1)
"""Numbers of the graphs on several processes that this one opens: the same on all, which open them together."""

_lock = threading.Lock()
_seed = 0
_count = 0


def seed(value: int) -> None:
    """Begin again: objects without a seed get from now on what those made after an equal call got, in order."""
    global _seed, _count
    with _lock:
        _seed, _count = value, 0


def take_seed() -> tuple[int, int]:
    """Return the seed and how many calls there were since it was set. No two calls after one seed give the same."""
    global _count
    with _lock:
        number, _count = _count, _count + 1
        return _seed, number
