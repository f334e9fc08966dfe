"""Compiled loops: numpy arrays in, numpy arrays out; no torch, no classes, no checks of what reaches them.

``from nodeflow import _kernels as kernels`` costs nothing: a file of loops, and numba with it, is imported when one of
its functions is first asked for, as in ``kernels.csr.csr_rows(...)``. The folders ``draw`` and ``reduce`` only sort the
files; ``kernels.uniform`` is ``draw/uniform.py``.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodeflow._kernels import csr, growing, openmp, prefetch, relabel, rng, simd
    from nodeflow._kernels.draw import (
        alias,
        bernoulli,
        induced,
        labor,
        labor_importance,
        layerwise,
        negative,
        pps,
        saint,
        sampford,
        systematic,
        temporal,
        uniform,
        walk,
        weighted,
    )
    from nodeflow._kernels.reduce import extremes, full_sums, gather, row_sums, softmax

_FOLDERS = {
    "": ("csr", "growing", "openmp", "prefetch", "relabel", "rng", "simd"),
    ".draw": (
        "alias", "bernoulli", "induced", "labor", "labor_importance", "layerwise", "negative", "pps", "saint",
        "sampford", "systematic", "temporal", "uniform", "walk", "weighted",
    ),
    ".reduce": ("extremes", "full_sums", "gather", "row_sums", "softmax"),
}  # fmt: skip
_FOLDER_OF = {file: folder for folder, files in _FOLDERS.items() for file in files}

__all__ = sorted(_FOLDER_OF)


def __getattr__(name: str) -> ModuleType:
    if name not in _FOLDER_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}{_FOLDER_OF[name]}.{name}")
    globals()[name] = module  # later calls find it without coming here
    return module
