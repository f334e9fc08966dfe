"""Two tools for immutable objects: a base class that refuses rebinding, and a value computed when
first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import torch

T = TypeVar("T")

# looked up once: a small batch sets 400 attributes
_assign = object.__setattr__


class Frozen:
    """Base of classes whose attributes are set once, in ``__init__`` through ``_set``, and never
    again.
    """

    __slots__ = ()

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            _assign(self, name, value)

    def __setstate__(self, state: Any) -> None:
        # fills copies and pickles, which __setattr__ would refuse; the state of slots is the second
        # of two
        self._set(**(state[1] if isinstance(state, tuple) else state))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} is immutable: cannot set {name!r} (columns of frames can be "
            "set)"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name!r}")


class Lazy(Generic[T]):
    """A value computed when first asked for. ``make`` must be pure: two threads that race compute
    the same value.
    """

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._value: T

    @classmethod
    def of(cls, value: T) -> Lazy[T]:
        """A Lazy that already has its value."""
        return cls(lambda: value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Lazy.of, (self.get(),)  # functions do not travel

    def get(self) -> T:
        """Return the value, computing it on the first call."""
        make = self._make
        if make is not None:
            # the value serves later calls, which may need gradients
            with torch.inference_mode(mode=False):
                self._value = make()
            # frees the objects that the function refers to
            self._make = None
        return self._value
