"""Compiled loops: numpy arrays in, numpy arrays out; no torch, no classes, no checks of what
reaches them.

The module is large because loops are specialised for speed: layouts and options that a loop would
have to test for every edge have a loop each.

``from nodeflow import _kernels as kernels`` costs nothing: a file of loops, and numba with it, is
imported when one of its functions is first asked for, as in ``kernels.csr.csr_rows(...)``. A Ctrl-C
during a loop that is called in this way ends in KeyboardInterrupt (see ``interruptible.py``). The
folders ``draw`` and ``reduce`` only sort the files; ``kernels.uniform`` is ``draw/uniform.py``.
Beside them are loops on edges (``csr``, ``buckets``, ``relabel``), on rows (``copying``,
``narrow``, ``caching``, ``reading``, ``row_steps``) and on scores (``ranks``, ``distance``), and
what loops are made of (``loops``, ``rng``, ``simd``, ``arrays``, ``instructions``).
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

_FOLDERS = (__name__, f"{__name__}.draw", f"{__name__}.reduce")


def __getattr__(name: str) -> Any:
    """Import a file of loops; names are unique over the folders."""
    for folder in _FOLDERS:
        if not name.startswith("_") and find_spec(f"{folder}.{name}") is not None:
            try:
                module = import_module(f"{folder}.{name}")
            except RuntimeError as error:
                raise import_module(f"{__name__}.loop_files").named(error) from None
            import_module(f"{__name__}.interruptible").make_interruptible(f"{__name__}.")
            globals()[name] = module  # later calls find it without coming here
            return module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
