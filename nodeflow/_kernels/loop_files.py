"""Files that keep compiled loops for the next process, without which a program goes on.

numba writes them into ``__pycache__`` of the loops' folder or, if that is read-only, into the
user's cache folder.
"""

from __future__ import annotations

import warnings
from typing import Any

from numba.core.caching import FunctionCache


class LoopFiles(FunctionCache):
    """The files of one loop. A disk that cannot hold them is a warning, not the end of the call
    that compiled it.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write what was compiled for one signature."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            words = (
                f"compiled loops cannot be kept in {self.cache_path}, so every process compiles "
                f"them: {error}"
            )
            warnings.warn(words, RuntimeWarning, stacklevel=2)


def tolerate(loop: Any) -> None:
    """Let the files of a compiled loop be ``LoopFiles``."""
    if type(loop._cache) is FunctionCache:  # noqa: SLF001
        loop._cache.__class__ = LoopFiles  # noqa: SLF001


def named(error: RuntimeError) -> Exception:
    """Return the error to raise for one of numba's: where it has no folder for files, one that says
    what to set.
    """
    if "no locator available" not in str(error):
        return error
    return OSError(
        f"numba stores compiled loops in the folder of {__file__} or in the user's cache folder, "
        "and both are read-only: set NUMBA_CACHE_DIR to a folder that can be written"
    )
