"""The largest (or smallest) number of every column over the edges of each row, alone or with sums and deviations.

Rows are ``width`` numbers one after another. For ``extreme_rows``, ``sign`` is 1 for the largest and -1 for the
smallest, which is the largest of the negated numbers; without ``indices`` edge e reads row e.
"""

import numpy as np
from numba import njit

from nodeflow._kernels.reduce.row_sums import prefetch_distance, prefetch_row, row_of
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import LANES, add, div, load, mul, mul_add, splat, store, sub, where_above, where_equal


@njit(nogil=True, cache=True)
def extreme_rows(indptr, indices, x, width, sign, out, ties, first, last):
    """Write the extremes of the rows ``first <= v < last`` to ``out``, and how many edges have them to ``ties``.

    NaN where any number is NaN (then no edge equals it); 0 for rows without edges. Empty ``ties`` are not written.
    """
    end, counted, ahead = indptr[U64(last)], ties.shape[0] > 0, prefetch_distance(width)
    zero, one, signs = splat(x.dtype.type(0)), splat(x.dtype.type(1)), splat(x.dtype.type(sign))
    for v in range(first, last):
        a, b = indptr[U64(v)], indptr[U64(v + 1)]
        if indices is not None:
            for e in range(min(a + ahead, end), min(b + ahead, end)):
                prefetch_row(x, indices[U64(e)] * width, width)
        for c in range(0, width, LANES):
            n, best, count = min(LANES, width - c), zero, zero
            if a < b:
                best, count = mul(signs, load(x, row_of(indices, a) * width + c, n)), one
            for e in range(a + 1, b):
                value = mul(signs, load(x, row_of(indices, e) * width + c, n))
                if counted:
                    count = where_above(value, best, one, where_equal(value, best, add(count, one), count))
                best = where_above(value, best, value, best)
            store(out, v * width + c, n, mul(signs, best) if a < b else zero)  # -1 times 0 would be -0.0
            if counted:
                store(ties, v * width + c, n, count)


@njit(nogil=True, cache=True)
def share_rows(indptr, indices, x, best, ties, g, width, out, first, last):
    """Add ``g / ties`` to ``out`` for every edge whose number is the best of its destination, columns first to last."""
    end, ahead = indptr[indptr.shape[0] - 1], prefetch_distance(width)
    zero, part = splat(x.dtype.type(0)), np.empty(width, x.dtype)
    for v in range(indptr.shape[0] - 1):
        a, b = indptr[U64(v)], indptr[U64(v + 1)]
        if a < b:
            for c in range(first, last, LANES):
                n, i = min(LANES, last - c), v * width + c
                store(part, c, n, div(load(g, i, n), load(ties, i, n)))
        for e in range(a, b):
            if e + ahead < end:
                later = row_of(indices, e + ahead) * width + first
                prefetch_row(x, later, last - first)
                prefetch_row(out, later, last - first)
            o = row_of(indices, e) * width
            c = first
            while c + LANES <= last:
                value = where_equal(load(x, o + c, LANES), load(best, v * width + c, LANES), load(part, c, LANES), zero)
                store(out, o + c, LANES, add(load(out, o + c, LANES), value))
                c += LANES
            if c < last:
                n = last - c
                value = where_equal(load(x, o + c, n), load(best, v * width + c, n), load(part, c, n), zero)
                store(out, o + c, n, add(load(out, o + c, n), value))


@njit(nogil=True, cache=True)
def several_rows(indptr, indices, x, width, total, largest, smallest, ties, squares, first, last):
    """Write four reductions of the rows ``first <= v < last``: each to its array, or not at all where that is empty.

    ``squares`` are sums of squared deviations from the mean. A second loop makes them while the rows are in the cache,
    because the mean must be known first. ``ties``, of two matrices one after another, count the edges that share the
    largest and the smallest number. Everything is 0 for rows without edges; extremes are NaN where any number is NaN.
    """
    end, ahead = indptr[U64(last)], prefetch_distance(width)
    zero, one, minus = splat(x.dtype.type(0)), splat(x.dtype.type(1)), splat(x.dtype.type(-1))
    half = ties.shape[0] // 2
    extremes, deviations = largest.shape[0] + smallest.shape[0] > 0, squares.shape[0] > 0
    for v in range(first, last):
        a, b = indptr[U64(v)], indptr[U64(v + 1)]
        for e in range(min(a + ahead, end), min(b + ahead, end)):
            prefetch_row(x, indices[U64(e)] * width, width)
        by = splat(x.dtype.type(max(b - a, 1)))
        for c in range(0, width, LANES):
            n, to = min(LANES, width - c), v * width + c
            sums, high, low, most, least = zero, zero, zero, zero, zero
            if a < b:
                high = load(x, indices[U64(a)] * width + c, n)
                low = mul(minus, high)
            for e in range(a, b):
                value = load(x, indices[U64(e)] * width + c, n)
                sums = add(sums, value)
                if half > 0:
                    most = where_above(value, high, one, where_equal(value, high, add(most, one), most))
                    other = mul(minus, value)
                    least = where_above(other, low, one, where_equal(other, low, add(least, one), least))
                if extremes:
                    high = where_above(value, high, value, high)
                    value = mul(minus, value)
                    low = where_above(value, low, value, low)
            if half > 0:
                store(ties, to, n, most)
                store(ties, half + to, n, least)
            if total.shape[0] > 0:
                store(total, to, n, sums)
            if largest.shape[0] > 0:
                store(largest, to, n, high)
            if smallest.shape[0] > 0:
                store(smallest, to, n, mul(minus, low) if a < b else zero)  # -1 times 0 would be -0.0
            if deviations:
                mean, sums = div(sums, by), zero
                for e in range(a, b):
                    value = sub(load(x, indices[U64(e)] * width + c, n), mean)
                    sums = mul_add(value, value, sums)
                store(squares, to, n, sums)


@njit(nogil=True, cache=True)
def share_several(
    indptr,
    indices,
    x,
    width,
    mean,
    largest,
    smallest,
    ties,
    g_total,
    g_largest,
    g_smallest,
    g_squares,
    out,
    first,
    last,
):
    """Add to ``out[u]`` the gradients of the four reductions for every edge from u, in the columns first to last.

    A gradient that is empty counts as 0. Rows that share an extreme share its gradient equally.
    """
    end, ahead, half = indptr[indptr.shape[0] - 1], prefetch_distance(width), ties.shape[0] // 2
    zero, two = splat(x.dtype.type(0)), splat(x.dtype.type(2))
    total, squares = g_total.shape[0] > 0, g_squares.shape[0] > 0
    high, low = g_largest.shape[0] > 0, g_smallest.shape[0] > 0
    highs, lows = np.empty(width, x.dtype), np.empty(width, x.dtype)
    for v in range(indptr.shape[0] - 1):
        a, b = indptr[U64(v)], indptr[U64(v + 1)]
        if a < b:  # without edges there are no ties to divide by
            for c in range(first, last, LANES):
                n, i = min(LANES, last - c), v * width + c
                if high:
                    store(highs, c, n, div(load(g_largest, i, n), load(ties, i, n)))
                if low:
                    store(lows, c, n, div(load(g_smallest, i, n), load(ties, half + i, n)))
        for e in range(a, b):
            if e + ahead < end:
                later = indices[U64(e + ahead)] * width + first
                if squares or high or low:
                    prefetch_row(x, later, last - first)
                prefetch_row(out, later, last - first)
            o = indices[U64(e)] * width
            for c in range(first, last, LANES):
                n, i = min(LANES, last - c), v * width + c
                value, gradient = load(x, o + c, n), load(out, o + c, n)
                if total:
                    gradient = add(gradient, load(g_total, i, n))
                if squares:
                    gradient = mul_add(mul(two, load(g_squares, i, n)), sub(value, load(mean, i, n)), gradient)
                if high:
                    gradient = add(gradient, where_equal(value, load(largest, i, n), load(highs, c, n), zero))
                if low:
                    gradient = add(gradient, where_equal(value, load(smallest, i, n), load(lows, c, n), zero))
                store(out, o + c, n, gradient)
