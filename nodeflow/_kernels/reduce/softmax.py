"""The softmax over the edges of each destination, for ``width`` scores per edge, and its
gradient.
"""

import numpy as np

from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import (
    LANES,
    add,
    div,
    exp_below_zero,
    load,
    mul,
    mul_add,
    splat,
    store,
    sub,
    where_above,
    where_equal,
)


@loop
def softmax_rows(indptr, scores, width, out, first, last):
    """Write the softmax of the edges of the rows ``first <= v < last``; 0 where all scores of a row
    are -inf.
    """
    zero = splat(scores.dtype.type(0))
    one = splat(scores.dtype.type(1))
    least = splat(scores.dtype.type(-np.inf))
    for v in range(first, last):
        a = indptr[U64(v)] * width
        b = indptr[U64(v + 1)] * width
        for c in range(0, width, LANES):
            n = min(LANES, width - c)
            best = least
            sums = zero
            for i in range(a + c, b, width):
                value = load(scores, i, n)
                best = where_above(value, best, value, best)
            best = where_equal(best, least, zero, best)  # -inf minus -inf would be NaN
            for i in range(a + c, b, width):
                value = exp_below_zero(sub(load(scores, i, n), best))
                sums = add(sums, value)
                store(out, i, n, value)
            by = where_equal(sums, zero, one, sums)
            for i in range(a + c, b, width):
                store(out, i, n, div(load(out, i, n), by))


@loop
def softmax_gradient(indptr, p, g, width, out, first, last):
    """Write ``p * (g - sum over the row's edges of p * g)`` for the edges of the rows
    ``first <= v < last``.
    """
    zero = splat(p.dtype.type(0))
    for v in range(first, last):
        a = indptr[U64(v)] * width
        b = indptr[U64(v + 1)] * width
        for c in range(0, width, LANES):
            n = min(LANES, width - c)
            sums = zero
            for i in range(a + c, b, width):
                sums = mul_add(load(p, i, n), load(g, i, n), sums)
            for i in range(a + c, b, width):
                difference = sub(load(g, i, n), sums)
                store(out, i, n, mul(load(p, i, n), difference))
