"""Warnings ignored for the length of one call. Filters of warnings are global, so one thread at a time changes them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from nodeflow._runtime import locks


@contextmanager
def ignored_warnings(message: str = "") -> Iterator[None]:
    """Ignore warnings whose text matches the regular expression ``message`` within the block."""
    with locks.warnings, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message)
        yield
