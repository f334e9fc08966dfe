"""Scratch memory that one batch leaves to the next: to fill fresh memory takes several times as long."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Final

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._runtime import switches

_KEPT: Final = 16
_free: deque[tuple[Ints, Ints]] = deque(maxlen=_KEPT)
"""Pairs of arrays that nothing uses, the last used one last. Single steps of the deque need no lock."""


def take() -> tuple[Ints, Ints]:
    """Return two int64 arrays of undefined content and of any length, which is 0 where no memory is kept."""
    if switches.reuse_buffers:
        with contextlib.suppress(IndexError):
            return _free.pop()
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def give_back(first: Ints, second: Ints, most: int) -> None:
    """Keep two arrays for the next ``take``; one of more than ``most`` entries is freed instead.

    Nothing may use the arrays afterwards. ``switches.reuse_buffers`` turns this off: then both are freed,
    and ``take`` returns nothing that was kept.
    """
    if switches.reuse_buffers:
        first, second = (array if len(array) <= most else np.zeros(0, np.int64) for array in (first, second))
        _free.append((first, second))
