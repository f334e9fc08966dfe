"""Functions that ``torch.compile`` calls as they are, without tracing them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def opaque(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` such that a compiled model calls it as it is.

    For operations on a structure: their loops are compiled already, they keep what they derive from a structure on it,
    and how many steps they take depends on its values. Traced, they would be compiled again and again.
    """
    plain: list[Callable[P, R]] = []  # made when first needed, because that imports the compiler, which takes seconds

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if not plain:
            plain.append(torch.compiler.disable(function))
        return plain[0](*args, **kwargs)

    # The compiler counts by code object how often it has looked at a function, and gives up after a few. All these
    # functions would share the code of ``call``, so each gets a copy.
    call.__code__ = call.__code__.replace(co_name=function.__name__)  # type: ignore[attr-defined]
    return call
