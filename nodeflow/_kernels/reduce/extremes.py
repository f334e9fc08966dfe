"""Sums, extremes and squared deviations of every column over the edges of each row, from one
reading, and gradients.

Rows are ``width`` numbers one after another; without ``indices`` edge e reads row e. Results that
are None are left out of the compiled code, which is made once per combination.
"""

import numpy as np

from nodeflow._kernels.loops import loop
from nodeflow._kernels.reduce.row_sums import prefetch_distance, prefetch_row, row_of
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import (
    LANES,
    add,
    div,
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
def reduce_rows(
    indptr, indices, x, width, total, largest, smallest, squares, most, least, first, last
):
    """Write the reductions of the rows ``first <= v < last``, each to its array.

    ``squares`` are sums of squared deviations from the mean. A second loop makes them while the
    rows are in the cache, because the mean must be known first. ``most`` and ``least`` count the
    edges that share the largest and the smallest number. Everything is 0 for rows without edges.
    Extremes are NaN where any number is NaN, which no edge equals.
    """
    end = indptr[U64(last)]
    ahead = prefetch_distance(width)
    zero = splat(x.dtype.type(0))
    one = splat(x.dtype.type(1))
    minus = splat(x.dtype.type(-1))
    for v in range(first, last):
        a = indptr[U64(v)]
        b = indptr[U64(v + 1)]
        if indices is not None:
            for e in range(min(a + ahead, end), min(b + ahead, end)):
                prefetch_row(x, indices[U64(e)] * width, width)
        by = splat(x.dtype.type(max(b - a, 1)))
        for c in range(0, width, LANES):
            n = min(LANES, width - c)
            to = v * width + c
            sums = zero
            high = zero
            low = zero
            tops = zero
            bottoms = zero
            if a < b:
                high = load(x, row_of(indices, a) * width + c, n)
                low = mul(minus, high)
            # the compiler removes what is not stored below
            for e in range(a, b):
                value = load(x, row_of(indices, e) * width + c, n)
                sums = add(sums, value)
                tops = where_above(value, high, one, where_equal(value, high, add(tops, one), tops))
                high = where_above(value, high, value, high)
                value = mul(minus, value)
                bottoms = where_above(
                    value, low, one, where_equal(value, low, add(bottoms, one), bottoms)
                )
                low = where_above(value, low, value, low)
            if total is not None:
                store(total, to, n, sums)
            if largest is not None:
                store(largest, to, n, high)
            if smallest is not None:
                # -1 times 0 would be -0.0
                store(smallest, to, n, mul(minus, low) if a < b else zero)
            if most is not None:
                store(most, to, n, tops)
            if least is not None:
                store(least, to, n, bottoms)
            if squares is not None:
                mean = div(sums, by)
                sums = zero
                for e in range(a, b):
                    value = sub(load(x, row_of(indices, e) * width + c, n), mean)
                    sums = mul_add(value, value, sums)
                store(squares, to, n, sums)


@loop
def share_rows(
    indptr,
    indices,
    x,
    width,
    mean,
    largest,
    smallest,
    ties,
    g_sum,
    g_largest,
    g_smallest,
    g_squares,
    out,
    columns,
):
    """Add to ``out`` the gradients of the four reductions for the row of every edge; ``columns``:
    first and last.

    Edges that share an extreme share its gradient equally; ``ties`` are ``most`` and ``least``.
    """
    end = indptr[indptr.shape[0] - 1]
    ahead = prefetch_distance(width)
    first, last = columns
    zero = splat(x.dtype.type(0))
    two = splat(x.dtype.type(2))
    highs = np.empty(width, x.dtype)
    lows = np.empty(width, x.dtype)
    for v in range(indptr.shape[0] - 1):
        a = indptr[U64(v)]
        b = indptr[U64(v + 1)]
        if a < b:  # without edges there are no ties to divide by
            for c in range(first, last, LANES):
                n = min(LANES, last - c)
                i = v * width + c
                if g_largest is not None:
                    store(highs, c, n, div(load(g_largest, i, n), load(ties[0], i, n)))
                if g_smallest is not None:
                    store(lows, c, n, div(load(g_smallest, i, n), load(ties[1], i, n)))
        for e in range(a, b):
            if e + ahead < end:
                later = row_of(indices, e + ahead) * width + first
                prefetch_row(x, later, last - first)
                prefetch_row(out, later, last - first)
            o = row_of(indices, e) * width
            for c in range(first, last, LANES):
                n = min(LANES, last - c)
                i = v * width + c
                value = load(x, o + c, n)
                gradient = load(out, o + c, n)
                if g_sum is not None:
                    gradient = add(gradient, load(g_sum, i, n))
                if g_squares is not None:
                    gradient = mul_add(
                        mul(two, load(g_squares, i, n)), sub(value, load(mean, i, n)), gradient
                    )
                if g_largest is not None:
                    gradient = add(
                        gradient, where_equal(value, load(largest, i, n), load(highs, c, n), zero)
                    )
                if g_smallest is not None:
                    gradient = add(
                        gradient, where_equal(value, load(smallest, i, n), load(lows, c, n), zero)
                    )
                store(out, o + c, n, gradient)
