"""Every public callable of the package, and every public method."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from itertools import chain, takewhile
from typing import Any

DOORS = (
    "control_variates",
    "convert",
    "datasets",
    "distributed",
    "flow",
    "fn",
    "graph",
    "loader",
    "metrics",
    "nn",
    "ops",
    "plot",
    "propagation",
    "random",
    "sampling",
    "sampling.base",
    "storage",
    "testing",
    "training",
    "transform",
)


def public() -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every public callable, each once, then of methods with flags."""
    seen: set[int] = set()
    for door in ("", *DOORS):
        module = importlib.import_module(f"nodeflow.{door}".rstrip("."))
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not inspect.ismodule(value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{door}.{name}".lstrip("."), value


def methods() -> Iterator[tuple[str, Any]]:
    """Yield every public method and its name, under the public class that has it first."""
    classes = {value: name for name, value in public() if inspect.isclass(value)}
    for kind, owner in classes.items():
        above = takewhile(lambda base: base not in classes, kind.__mro__[1:])
        own = [base for base in above if base.__module__.startswith("nodeflow.")]  # private ones
        for name, member in chain.from_iterable(vars(base).items() for base in (kind, *own)):
            function = (
                member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            )
            if inspect.isfunction(function) and not name.startswith("_"):
                yield f"{owner}.{name}", function


def flags(function: Any) -> list[str]:
    """Return the names of the parameters whose default is True or False."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    return [
        name
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.default, bool)
    ]
