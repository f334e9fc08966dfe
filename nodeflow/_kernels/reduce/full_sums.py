"""Weighted sums of the rows of a matrix along the edges of a graph, without a copy of the edges or of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import U64

_LINE = 64  # bytes that the processor fetches at once
_AHEAD = 32  # edges of a row of the graph whose rows are asked for before they are read
_FOUR = U64(4)


def _wide(typingctx: Any, number: Any) -> Any:
    """Return the number as it is; of uint16, the bits of a bfloat16, and int16, those of a float16, the float32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, bits = signature.args[0], args[0]
        word, single = ir.IntType(32), ir.FloatType()
        if isinstance(kind, types.Float):
            return bits
        if kind == types.uint16:
            return builder.bitcast(builder.shl(builder.zext(bits, word), word(16)), single)
        # By hand, since not every processor can: exponent and fraction go to their places, a factor puts the bias of
        # the exponent right (and makes denormal numbers normal), and infinity and NaN are marked as such.
        bits = builder.sext(bits, word)
        size = builder.shl(builder.and_(bits, word(0x7FFF)), word(13))
        value = builder.bitcast(builder.fmul(builder.bitcast(size, single), single(2.0**112)), word)
        special = builder.icmp_unsigned(">=", size, word(0x7C00 << 13))
        value = builder.or_(value, builder.select(special, word(0x7F800000), word(0)))
        return builder.bitcast(builder.or_(value, builder.and_(bits, word(0x80000000))), single)

    return (number if isinstance(number, types.Float) else types.float32)(number), codegen


wide: Any = intrinsic(_wide)


@njit(nogil=True, cache=True)
def sum_rows(indptr, near, weights, rows, h, stride, width, out):
    """Write into ``out[i]`` the sum over the edges p of row ``rows[i]`` of ``weights[p] * h[near[p]]``.

    ``h`` and ``out`` are flat: a row of ``h`` has ``width`` numbers and begins ``stride`` after the one before, rows of
    ``out`` lie one after another. ``weights`` None: 1. Edges are added four at a time, in their order: the sum of a row
    depends on nothing else.
    """
    n, step, width = rows.shape[0], U64(stride), U64(width)
    line = U64(_LINE // h.itemsize)
    ahead = U64(_AHEAD)
    for i in range(n):
        if i + 16 < n:
            prefetch(indptr, rows[U64(i + 16)])
        if i + 8 < n:
            first = indptr[U64(rows[U64(i + 8)])]
            prefetch(near, first)
            if weights is not None:
                prefetch(weights, first)
        if i + 3 < n:  # rows may be short
            v = U64(rows[U64(i + 3)])
            p = U64(indptr[v])
            for q in range(p, min(p + ahead, U64(indptr[v + U64(1)]))):
                _ask(h, U64(near[q]) * step, width, line)
        v = U64(rows[U64(i)])
        p, last = U64(indptr[v]), U64(indptr[v + U64(1)])
        to = U64(i) * width
        for c in range(width):
            out[to + c] = 0
        while p + _FOUR <= last:
            for q in range(p + ahead, min(p + ahead + _FOUR, last)):
                _ask(h, U64(near[q]) * step, width, line)
            p1, p2, p3 = p + U64(1), p + U64(2), p + U64(3)
            a, b, d, e = U64(near[p]) * step, U64(near[p1]) * step, U64(near[p2]) * step, U64(near[p3]) * step
            if weights is None:
                for c in range(width):
                    out[to + c] += (wide(h[a + c]) + wide(h[b + c])) + (wide(h[d + c]) + wide(h[e + c]))
            else:
                kind = out.dtype.type
                wa, wb, wd, we = kind(weights[p]), kind(weights[p1]), kind(weights[p2]), kind(weights[p3])
                for c in range(width):
                    left = wa * wide(h[a + c]) + wb * wide(h[b + c])
                    out[to + c] += left + (wd * wide(h[d + c]) + we * wide(h[e + c]))
            p += _FOUR
        for q in range(p, last):
            a = U64(near[q]) * step
            w = out.dtype.type(1 if weights is None else weights[q])
            for c in range(width):
                out[to + c] += w * wide(h[a + c])


@njit(inline="always")
def _ask(h, begin, width, line):
    for c in range(U64(0), width, line):
        prefetch(h, np.int64(begin + c))
