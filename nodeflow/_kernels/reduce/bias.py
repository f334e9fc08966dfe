"""Bias and ReLU of the rows of a linear map in bfloat16, and the gradients of both."""

from __future__ import annotations

import numpy as np
from numba import njit

from nodeflow._kernels.simd import LANES, add, load, mul, splat, store, where_above


@njit(nogil=True, cache=True)
def add_bias(x, bias, relu, first, last):
    """Add ``bias``, float32, to the rows ``first <= i < last`` of ``x`` in place, then set what is negative to 0.

    ``x`` is flat, of words (uint16) as in ``simd``. Without ``relu`` negative numbers stay.
    """
    width, nothing = bias.shape[0], splat(np.float32(0))
    for i in range(first, last):
        begin, c = i * width, 0
        while c + LANES <= width:
            row = add(load(x, begin + c, LANES), load(bias, c, LANES))
            store(x, begin + c, LANES, where_above(row, nothing, row, nothing) if relu else row)
            c += LANES
        if c < width:
            row = add(load(x, begin + c, width - c), load(bias, c, width - c))
            store(x, begin + c, width - c, where_above(row, nothing, row, nothing) if relu else row)


@njit(nogil=True, cache=True)
def relu_gradient(g, result, scale, out, sums, first, last):
    """Write ``out = scale * g`` where ``result`` is above 0, else 0, for rows ``first <= i < last``; add to ``sums``.

    All are flat, of words (uint16) as in ``simd``, but for ``sums``, float32, one number per column.
    """
    width, nothing, factor = sums.shape[0], splat(np.float32(0)), splat(scale)
    for i in range(first, last):
        begin, c = i * width, 0
        while c + LANES <= width:
            row = mul(load(g, begin + c, LANES), factor)
            row = where_above(load(result, begin + c, LANES), nothing, row, nothing)
            store(out, begin + c, LANES, row)
            store(sums, c, LANES, add(load(sums, c, LANES), row))
            c += LANES
        if c < width:
            row = mul(load(g, begin + c, width - c), factor)
            row = where_above(load(result, begin + c, width - c), nothing, row, nothing)
            store(out, begin + c, width - c, row)
            store(sums, c, width - c, add(load(sums, c, width - c), row))
