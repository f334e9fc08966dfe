"""Rows of narrow numbers: unpacked as they are gathered or summed, and the survey of their steps.

Rows lie one after another in ``codes``, ``stride`` numbers each: int8, or words of 16 bits as
``simd.load`` reads them. The first ``width`` are one per column; column c of a row is
``(code - zero[c]) * scale[c]``, rounded once, because all these are whole numbers below 2^24 but
the scale. Columns ``wide`` are in the same rows as float32: ``whole`` is all of them as float32,
``last`` numbers to a row, of which a row has the columns from the ``first`` on.

These are the affine codes of Jacob and others (2018), "Quantization and training of neural networks
for efficient integer-arithmetic-only inference", with a scale per column. ``survey`` finds the step
of a column by Euclid's algorithm on rounded numbers.
"""

# What is not good yet: ``sum_unpacked`` is ``row_sums.sum_rows`` once more, since a remainder of
# bytes must not be masked and the zero point is taken off on the way; rows of less than a vector
# and wide columns are not summed as codes at all; products are made in float32, not in integers.

import math

import numpy as np
from numba import njit

from nodeflow._kernels.copying import rows_ahead
from nodeflow._kernels.instructions import prefetch_lines
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import (
    LANES,
    WIDE,
    div,
    load,
    mul,
    mul_add,
    splat,
    splat_wide,
    store,
    sub,
)

# edges of a row that are summed in all columns before the next edges are read, as in ``row_sums``
_BLOCK = 32


@loop
def gather_unpacked(codes, stride, ids, zero, scale, whole, last, first, wide, out, row):
    """Write the rows ``ids`` to ``out`` in turn, as float32; return the place of the first id that
    is no row, or -1.

    They begin ``row`` numbers after one another in ``out``.
    """
    n = ids.shape[0]
    size = codes.shape[0] // stride
    width = zero.shape[0]
    ahead = max(2, rows_ahead(codes, stride, 16))
    for i in range(n):
        if ids[U64(i)] < 0 or ids[U64(i)] >= size:
            return i
    for late in range(n + ahead):
        if late < n:
            prefetch_lines(codes, ids[U64(late)] * stride, stride)
        i = late - ahead
        if i >= 0:
            begin = ids[U64(i)] * stride
            to = i * row
            if width < LANES:
                value = sub(load(codes, begin, width), load(zero, 0, width))
                store(out, to, width, mul(value, load(scale, 0, width)))
            else:
                # the last vector has numbers of the one before once more: a mask is slow for bytes
                for first_of_vector in range(0, width, LANES):
                    c = min(first_of_vector, width - LANES)
                    value = sub(load(codes, begin + c, LANES), load(zero, c, LANES))
                    store(out, to + c, LANES, mul(value, load(scale, c, LANES)))
            for k in range(wide.shape[0]):
                out[U64(to + wide[U64(k)])] = whole[U64(ids[U64(i)] * last + first + k)]
    return np.int64(-1)


@loop
def sum_unpacked(
    indptr, indices, ids, codes, stride, zero, scale, weight, mean, out, row, before, first, last
):
    """Write the sums of unpacked rows to ``out``, for ``first <= i < last``, as
    ``row_sums.sum_rows`` does of rows.

    Edge e reads row ``ids[indices[e]]``, times ``weight[e]``, or 1 if that is None. With ``mean`` a
    sum is divided by the number of its edges. Sum i begins at number ``before`` of row i of
    ``out``; these are ``row`` numbers long. A row is at least a vector wide.

    Differences code - zero are added one after another, in the order of the edges; the scale
    multiplies their sum. So sums of whole numbers are exact up to 2^24.
    """
    width = zero.shape[0]
    end = np.int64(indptr[U64(last)])
    rest = width - LANES
    ahead = max(4, rows_ahead(codes, stride, 32))
    nothing = splat(np.float32(0))
    places = np.empty(_BLOCK, np.int64)
    tail = np.empty(LANES, np.float32)
    for i in range(first, last):
        a = np.int64(indptr[U64(i)])
        b = np.int64(indptr[U64(i + 1)])
        to = i * row + before
        p = a
        degree = np.float32(b - a if b > a else 1)
        while True:  # once for a row without edges
            q = min(p + _BLOCK, b)
            begun = p > a
            for e in range(min(p + ahead, end), min(q + ahead, end)):
                prefetch_lines(codes, ids[U64(indices[U64(e)])] * stride, stride)
            for e in range(p, q):
                places[U64(e - p)] = ids[U64(indices[U64(e)])] * stride
            c = 0
            # 64 columns at a time, as in ``row_sums``; until the last block in ``out``
            while c + WIDE <= width:
                wide = load(out, to + c, WIDE) if begun else splat_wide(np.float32(0))
                for e in range(p, q):
                    code = load(codes, places[U64(e - p)] + c, WIDE)
                    factor = splat_wide(np.float32(1 if weight is None else weight[U64(e)]))
                    wide = mul_add(factor, sub(code, load(zero, c, WIDE)), wide)
                if q == b:
                    wide = mul(wide, load(scale, c, WIDE))
                    if mean:
                        wide = div(wide, splat_wide(degree))
                store(out, to + c, WIDE, wide)
                c += WIDE
            while c + LANES <= width:
                s = load(out, to + c, LANES) if begun else nothing
                z = load(zero, c, LANES)
                for e in range(p, q):
                    w = splat(np.float32(1 if weight is None else weight[U64(e)]))
                    code = load(codes, places[U64(e - p)] + c, LANES)
                    s = mul_add(w, sub(code, z), s)
                if q == b:
                    s = mul(s, load(scale, c, LANES))
                    s = div(s, splat(degree)) if mean else s
                store(out, to + c, LANES, s)
                c += LANES
            # the last vector, with some before it once more: no mask, which is slow for bytes
            if c < width:
                s = load(tail, 0, LANES) if begun else nothing
                z = load(zero, rest, LANES)
                for e in range(p, q):
                    w = splat(np.float32(1 if weight is None else weight[U64(e)]))
                    code = load(codes, places[U64(e - p)] + rest, LANES)
                    s = mul_add(w, sub(code, z), s)
                if q == b:
                    s = mul(s, load(scale, rest, LANES))
                    store(out, to + rest, LANES, div(s, splat(degree)) if mean else s)
                else:
                    store(tail, 0, LANES, s)
            if q == b:
                break
            p = q


# how far from a multiple of a step a number may be, as a share of it: float32 has rounded both
_BLUR = 2.0**-22


@njit(nogil=True, cache=True, error_model="numpy")
def survey(rows, levels, low, high, unit, least, step):
    """Look through ``rows``, float32 ``[n, width]``, and go on from what was seen of each column
    before.

    ``low`` and ``high`` are its bounds, ``least`` the smallest number but 0 regardless of sign.
    ``unit`` is the largest power of two of which all are multiples, and ``step`` such a number of
    any kind, as far as it can be told from rounding; 0 before the first number but 0, and -1 where
    more than ``levels`` of them lie between the bounds. Returns the place of the first number that
    is not finite among all, row by row, or -1.
    """
    n, width = rows.shape
    for i in range(n):
        for c in range(width):
            x = np.float64(rows[U64(i), U64(c)])
            if not math.isfinite(x):
                return i * width + c
            low[U64(c)] = min(low[U64(c)], x)
            high[U64(c)] = max(high[U64(c)], x)
            size = abs(x)
            g = step[U64(c)]
            span = high[U64(c)] - low[U64(c)]
            if size == 0:
                continue
            least[U64(c)] = min(least[U64(c)], size)
            if unit[U64(c)] >= 0:
                fraction, power = math.frexp(size)
                bits = np.int64(math.ldexp(fraction, 24))  # all that float32 has
                two = math.ldexp(np.float64(bits & -bits), power - 24)
                two = two if unit[U64(c)] == 0 else min(two, unit[U64(c)])
                unit[U64(c)] = two if levels * two >= span else -1
            if g < 0:
                continue
            g = size if g == 0 else g
            rest = abs(size - np.rint(size / g) * g)
            blur = size * _BLUR
            far = g * _BLUR
            if rest > blur:
                # Euclid's algorithm, with bounds of what rounding may have done to its numbers
                while rest > blur:
                    times = np.rint(g / rest)
                    g, rest = rest, abs(g - times * rest)
                    far, blur = blur, far + times * blur
                g = size / np.rint(size / g) if 4 * far * size < g * g else np.float64(-1)
            step[U64(c)] = g if levels * g >= span else -1
    return np.int64(-1)
