"""Objects that live in this process, by name: an unpickled batch finds the very graph that it came from."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Final

openings: Final = itertools.count(1)
"""Numbers of the graphs on several processes that this one opens: the same on all, which open them together."""

graphs: Final[weakref.WeakValueDictionary[str | None, Any]] = weakref.WeakValueDictionary()
"""Graphs by their ``uid``, as long as something else keeps them alive; there is none of the name None."""
