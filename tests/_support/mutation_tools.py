"""Source code with a fault planted in it: a module of the package, compiled anew with one piece of
text replaced.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any
from unittest.mock import patch

from numba import njit

from nodeflow._kernels import loops


def mutated(module: ModuleType, *changes: tuple[str, str]) -> dict[str, Any]:
    """Return the names that ``module`` defines after its source was changed; compiled kernels are
    not cached.

    Every text to be replaced must be there, so that a fault cannot get lost when the code changes.
    """
    source = inspect.getsource(module).replace("cache=True", "cache=False")
    for old, new in changes:
        assert old in source, f"{module.__name__} no longer contains {old!r}: plant this fault anew"
        source = source.replace(old, new)
    names: dict[str, Any] = {"__name__": f"planted.{module.__name__}"}
    with patch.object(loops, "loop", njit):  # no file keeps what is compiled
        exec(compile(source, f"<{module.__name__} with a fault>", "exec"), names)
    return names
