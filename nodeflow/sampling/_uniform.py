"""Uniform draws of rows in both forms: the compiled loop, and operations of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nodeflow import _kernels as kernels
from nodeflow._edges.edges import Edges
from nodeflow._edges.forms import Loop
from nodeflow._tensors import uniform

if TYPE_CHECKING:
    from nodeflow.sampling._rows import DrawingRows

Result = tuple[Any, Any, Any, Any]
"""Where the edges of each row begin ``[n + 1]``, degrees ``[n]``, positions ``[E]`` and sources ``[E]``."""


def _compiled(edges: Edges, rows: DrawingRows, counts: NDArray[Any], key: int, *, replace: bool) -> Result:
    left_out = edges.left_out
    plan = edges.indptr, rows.numbers, counts, rows.kinds, replace, left_out
    indptr, begin, degree = kernels.uniform.plan(*plan)
    positions, src = np.empty(indptr[-1], edges.position_type), np.empty(indptr[-1], np.int64)
    if replace and (counts >= 0).any():
        keys = edges.indices, rows.ident, np.uint64(key), counts, rows.kinds
        kernels.uniform.draw_with(begin, degree, *keys, indptr, positions, src)
    else:
        kernels.uniform.draw_without(begin, degree, edges.indices, rows.ident, np.uint64(key), indptr, positions, src)
    if len(left_out):
        kernels.uniform.step_over(edges.indptr, rows.numbers, left_out, edges.indices, indptr, positions, src)
    return indptr, degree, positions, src


def _in_torch(edges: Edges, rows: DrawingRows, counts: NDArray[Any], key: int, *, replace: bool) -> Result:
    arrays, left_out = edges.arrays, edges.form.array(edges.left_out)
    own = rows.numbers, rows.ident, key, int(counts[0])
    return uniform.draw(arrays.indptr, arrays.indices, *own, replace=replace, left_out=left_out)  # type: ignore[arg-type]


UNIFORM = Loop(_compiled, _in_torch)
"""How n rows draw ``counts`` edges, by kind (-1: all), without repeats or with ``replace``."""
