"""Objects that live in this process, by name: an unpickled batch finds the very graph that it came from."""

from __future__ import annotations

import weakref
from typing import Any

_living: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def register(name: str, value: object) -> None:
    """Make ``find(name)`` return ``value`` as long as something else keeps it alive."""
    _living[name] = value


def find(name: str | None) -> Any:
    """Return the object of this name, or None where none lives."""
    return None if name is None else _living.get(name)
