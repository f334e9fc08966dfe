"""Rows of narrow numbers: unpacked as they are gathered, and columns looked through for the steps of their numbers.

Rows lie one after another in ``codes``, ``stride`` numbers each: int8, or words of 16 bits as ``simd.load`` reads them.
The first ``width`` are one per column; column c of a row is ``(code - zero[c]) * scale[c]``, rounded once, because all
these are whole numbers below 2^24 but the scale. Columns ``wide`` are in the same rows as float32: ``whole`` is all of
them as float32, ``last`` numbers to a row, of which a row has the columns from the ``first`` on.
"""

import math

import numpy as np
from numba import njit

from nodeflow._kernels.instructions import prefetch
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import LANES, load, mul, store, sub

_LINE = 64  # bytes that the processor fetches at once
_LINES = 256  # that may be asked for at a time: half of the smallest cache


@njit(nogil=True, cache=True)
def gather_unpacked(codes, stride, ids, zero, scale, whole, last, first, wide, out):
    """Write the rows ``ids`` to ``out`` in turn, as float32; return the place of the first id that is no row, or -1."""
    n, size, width, line = ids.shape[0], codes.shape[0] // stride, zero.shape[0], _LINE // codes.itemsize
    ahead = max(2, min(16, _LINES // (stride // line + 1)))
    for i in range(n):
        if ids[U64(i)] < 0 or ids[U64(i)] >= size:
            return i
    for late in range(n + ahead):
        if late < n:
            begin = ids[U64(late)] * stride
            for c in range(0, stride, line):
                prefetch(codes, begin + c)
            prefetch(codes, begin + stride - 1)
        i = late - ahead
        if i >= 0:
            begin, to = ids[U64(i)] * stride, i * width
            for c in range(0, width - LANES + 1, LANES):
                value = sub(load(codes, begin + c, LANES), load(zero, c, LANES))
                store(out, to + c, LANES, mul(value, load(scale, c, LANES)))
            c = width - LANES
            if c < 0:  # a row that is shorter than a vector
                value = sub(load(codes, begin, width), load(zero, 0, width))
                store(out, to, width, mul(value, load(scale, 0, width)))
            elif c % LANES != 0:  # the rest, with some before it once more: no mask, which is slow for bytes
                value = sub(load(codes, begin + c, LANES), load(zero, c, LANES))
                store(out, to + c, LANES, mul(value, load(scale, c, LANES)))
            for k in range(wide.shape[0]):
                out[U64(to + wide[U64(k)])] = whole[U64(ids[U64(i)] * last + first + k)]
    return np.int64(-1)


_BLUR = 2.0**-22  # how far from a multiple of a step a number may be, as a share of it: float32 has rounded both


@njit(nogil=True, cache=True, error_model="numpy")
def survey(rows, levels, low, high, unit, least, step):
    """Look through ``rows``, float32 ``[n, width]``, and go on from what was seen of each column before.

    ``low`` and ``high`` are its bounds, ``least`` the smallest number but 0 regardless of sign. ``unit`` is the largest
    power of two of which all are multiples, and ``step`` such a number of any kind, as far as it can be told from
    rounding; 0 before the first number but 0, and -1 where more than ``levels`` of them lie between the bounds. Returns
    the place of the first number that is not finite among all, row by row, or -1.
    """
    n, width = rows.shape
    for i in range(n):
        for c in range(width):
            x = np.float64(rows[U64(i), U64(c)])
            if not math.isfinite(x):
                return i * width + c
            low[U64(c)], high[U64(c)] = min(low[U64(c)], x), max(high[U64(c)], x)
            size, g, span = abs(x), step[U64(c)], high[U64(c)] - low[U64(c)]
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
            rest, blur, far = abs(size - np.rint(size / g) * g), size * _BLUR, g * _BLUR
            if rest > blur:
                while rest > blur:  # Euclid's algorithm, with bounds of what rounding may have done to its numbers
                    times = np.rint(g / rest)
                    g, rest, far, blur = rest, abs(g - times * rest), blur, far + times * blur
                g = size / np.rint(size / g) if 4 * far * size < g * g else np.float64(-1)
            step[U64(c)] = g if levels * g >= span else -1
    return np.int64(-1)
