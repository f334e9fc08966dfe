"""The two kinds of compiled functions: loops, which Python calls, and parts that loops take in."""

from typing import Any

from numba import njit


def loop(function: Any) -> Any:
    """Compile a loop: other threads run meanwhile, and its machine code is kept in a file."""
    return njit(nogil=True, cache=True)(function)


def inlined(function: Any) -> Any:
    """Compile a part of loops into each of them, without a call."""
    return njit(inline="always")(function)
