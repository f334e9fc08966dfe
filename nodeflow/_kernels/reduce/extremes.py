"""The largest (or smallest) number of every column over the edges of each row, and its gradient.

Rows are ``width`` numbers one after another; ``sign`` is 1 for the largest and -1 for the smallest, which is the
largest of the negated numbers. Without ``indices`` edge e reads row e.
"""

import numpy as np
from numba import njit

from nodeflow._kernels.reduce.row_sums import prefetch_distance, prefetch_row, row_of
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import LANES, add, div, load, mul, splat, store, where_above, where_equal


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
