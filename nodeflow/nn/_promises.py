"""Promises of methods: what a base class may rely on, as long as that very method is in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def promises(fact: str) -> Callable[[F], F]:
    """Decorate a method with a promise that others rely on when a layer or model is built.

    The promise belongs to the function, not to the class: a subclass that overrides the method promises nothing, unless
    it decorates its own method too. So a faster way is taken only where the method that allows it is in use.

    The promises are:

    - "relu", of the ``forward`` of a layer: where ``self.relu`` is True it returns the positive part of its result;
    - "relu", of the ``activate`` of a model: it leaves out the ReLU of layers that have applied it;
    - "own", of ``aggregate``: it takes ``own=True``, and then returns own rows beside the sums.

    >>> class Base:
    ...     @promises("relu")
    ...     def forward(self): ...
    >>> class Changed(Base):
    ...     def forward(self): ...
    >>> promised(Base().forward, "relu"), promised(Changed().forward, "relu")
    (True, False)
    """

    def decorate(method: F) -> F:
        method.promises = {fact, *getattr(method, "promises", ())}  # type: ignore[attr-defined]
        return method

    return decorate


def promised(method: Callable[..., object], fact: str) -> bool:
    """Whether ``method`` was decorated with ``promises(fact)``."""
    return fact in getattr(method, "promises", ())
