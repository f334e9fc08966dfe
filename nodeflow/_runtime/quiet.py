"""Warnings ignored for the length of one call. Filters of warnings are global, so one thread at a time changes them."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()


@contextmanager
def ignored_warnings(message: str = "") -> Iterator[None]:
    """Ignore warnings whose text matches the regular expression ``message`` within the block."""
    with _lock, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message)
        yield


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held the old one, and no thread here releases it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)
