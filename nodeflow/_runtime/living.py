"""Objects that live in this process, by name: an unpickled batch finds the very graph that it came from."""

from __future__ import annotations

import weakref
from typing import Any, Final

graphs: Final[weakref.WeakValueDictionary[str | None, Any]] = weakref.WeakValueDictionary()
"""Graphs by their ``uid``, as long as something else keeps them alive; there is none of the name None."""
