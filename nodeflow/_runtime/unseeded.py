"""Numbers for objects that draw without a seed of their own: the same ones after the same call of ``seed``."""

from __future__ import annotations

import threading

_lock = threading.Lock()
_seed = 0
_count = 0


def seed(value: int) -> None:
    """Begin again: the objects made from now on get what those made after an equal call got, in order."""
    global _seed, _count
    with _lock:
        _seed, _count = value, 0


def take() -> tuple[int, int]:
    """Return the seed and how many calls there were since it was set. No two calls after one seed give the same."""
    global _count
    with _lock:
        number, _count = _count, _count + 1
        return _seed, number
