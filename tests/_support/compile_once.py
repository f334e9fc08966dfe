"""Let test processes that run beside each other compile a loop once: the others wait for it and
load it.

Without this every process compiles what none has stored yet, which in a fresh clone is most of it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from filelock import FileLock
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher


def share_compilation() -> None:
    """Change numba in this process: what is stored on disk is compiled under a lock of its function
    and types.
    """
    compile_here = Dispatcher.compile

    def compile_or_load(self: Any, sig: Any) -> Any:
        cache = self._cache
        if not isinstance(cache, FunctionCache) or sig in self.overloads:
            return compile_here(self, sig)
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__} {sig}"
        folder = Path(cache.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.lock"):
            return compile_here(self, sig)  # which looks for a stored one first

    Dispatcher.compile = compile_or_load
