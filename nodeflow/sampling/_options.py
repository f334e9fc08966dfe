"""The arguments of a sampler's ``__init__``, of which its settings are made."""

from __future__ import annotations

import inspect
from functools import cache

from nodeflow._core.base.frozen import Frozen


def is_plain(value: object) -> bool:
    """Whether a value prints as itself, in any process."""
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(part) for key, part in value.items())
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Frozen))


@cache
def arguments(kind: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a sampler's ``__init__`` beside the graph, by name, also those that
    it passes on.

    An ``__init__`` that ends with ``**options`` passes on what the next class takes.
    """
    parameters: dict[str, inspect.Parameter] = {}
    inits = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
    # from the class up to its bases, as long as each passes on what it does not name
    for init in inits:
        named = inspect.signature(init).parameters.values()
        for p in named:
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in ("self", "graph"):
                parameters.setdefault(p.name, p)
        if not any(p.kind is p.VAR_KEYWORD for p in named):
            break
    return parameters


@cache
def names_of(kind: type) -> frozenset[str]:
    """The names of all arguments of a sampler and of its base classes, and ``graph``."""
    return frozenset(
        ("graph", "view", *(name for base in kind.__mro__ for name in arguments(base)))
    )
