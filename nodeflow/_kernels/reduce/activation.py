"""Bias, ReLU and dropout of rows of features, and gradients of bias and ReLU.

Dropout keeps each number or not by bits that a key and its place decide, so a gradient needs no
stored mask.
"""

import numpy as np
from numba import njit

from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import GOLDEN, U64, mix
from nodeflow._kernels.simd import LANES, add, load, mul, splat, store, where_above

_QUARTER = 128
_PIECE = 4 * _QUARTER  # numbers whose factors are made at a time
_LOW = U64(0xFFFF)


@loop
def add_bias(x, bias, relu, first, last):
    """Add ``bias``, float32, to the rows ``first <= i < last`` of ``x`` in place, then set what is
    negative to 0.

    ``x`` is flat, of words (uint16) as in ``simd``. Without ``relu`` negative numbers stay.
    """
    width = bias.shape[0]
    nothing = splat(np.float32(0))
    for i in range(first, last):
        begin = i * width
        c = 0
        while c + LANES <= width:
            row = add(load(x, begin + c, LANES), load(bias, c, LANES))
            store(x, begin + c, LANES, where_above(row, nothing, row, nothing) if relu else row)
            c += LANES
        if c < width:
            row = add(load(x, begin + c, width - c), load(bias, c, width - c))
            store(x, begin + c, width - c, where_above(row, nothing, row, nothing) if relu else row)


@loop
def relu_gradient(g, result, scale, out, sums, first, last):
    """Write ``out = scale * g`` where ``result`` is above 0, else 0, for rows
    ``first <= i < last``; add to ``sums``.

    All are flat, of words (uint16) as in ``simd``, but for ``sums``, float32, one number per
    column.
    """
    width = sums.shape[0]
    nothing = splat(np.float32(0))
    factor = splat(scale)
    for i in range(first, last):
        begin = i * width
        c = 0
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


@loop
def drop(x, bias, width, key, least, scale, out, first, last):
    """Write ``out[i] = scale * x[i]`` where the upper 32 bits of place i are ``least`` or more,
    else 0 * ``x[i]``.

    With ``bias``, of numbers are kept the positive parts of ``x[i] + bias[i % width]``; it is
    float32, and goes on from the beginning for LANES numbers more. Words (uint16) are read and
    written as in ``simd``. ``key`` is uint64, ``scale`` float32. A call does ``first <= i < last``.
    """
    factors = np.empty(_PIECE, np.float32)
    nothing = np.float32(0)
    for begin in range(first, last, _PIECE):
        count = min(_PIECE, last - begin)
        # always a whole piece, which needs no remainder; 16 bits for each number
        for i in range(_QUARTER):
            bits = mix(key + U64(begin + i) * GOLDEN)
            factors[i] = scale if (bits >> U64(48)) >= least else nothing
            factors[i + _QUARTER] = scale if ((bits >> U64(32)) & _LOW) >= least else nothing
            factors[i + 2 * _QUARTER] = scale if ((bits >> U64(16)) & _LOW) >= least else nothing
            factors[i + 3 * _QUARTER] = scale if (bits & _LOW) >= least else nothing
        c = 0
        column = begin % width
        while c + LANES <= count:
            row = entering(load(x, begin + c, LANES), bias, column)
            store(out, begin + c, LANES, mul(row, load(factors, c, LANES)))
            c += LANES
            column += LANES
            while column >= width:
                column -= width
        if c < count:
            row = entering(load(x, begin + c, count - c), bias, column)
            store(out, begin + c, count - c, mul(row, load(factors, c, count - c)))


@njit
def entering(row, bias, column):
    """Return a vector of numbers as they enter dropout: with ``bias``, which begins at ``column``,
    the ReLU of sums.
    """
    if bias is None:
        return row
    total = add(row, load(bias, column, LANES))
    nothing = splat(np.float32(0))
    return where_above(total, nothing, total, nothing)
