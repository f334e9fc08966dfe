"""The settings of a sampler, from the signatures of its ``__init__`` and those of its base classes."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

from nodeflow._base.frozen import Frozen


def is_plain(value: object) -> bool:
    """Whether a value prints as itself, in any process."""
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(part) for key, part in value.items())
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Frozen))


@cache
def arguments(kind: type) -> dict[str, Any]:
    """Return the arguments of a sampler's ``__init__`` beside the graph, by name, with their defaults.

    What an ``__init__`` passes on as ``**options`` are arguments of the next class that has one.
    """
    defaults: dict[str, Any] = {}
    for base in kind.__mro__:
        if "__init__" in vars(base):
            own = inspect.signature(vars(base)["__init__"]).parameters.values()
            for p in own:
                if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in ("self", "graph"):
                    defaults.setdefault(p.name, p.default)
            if not any(p.kind == p.VAR_KEYWORD for p in own):
                break
    return defaults


@cache
def names_of(kind: type) -> frozenset[str]:
    """The names of all arguments of a sampler and of its base classes, and ``graph``."""
    return frozenset(("graph", *(name for base in kind.__mro__ for name in arguments(base))))
