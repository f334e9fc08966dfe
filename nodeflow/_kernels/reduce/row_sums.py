"""Weighted sums of rows over the edges of a flow or of a whole graph, transposes, and gradients.

A row has ``groups * width`` numbers, and an edge one weight per group (``weight`` is
``[edges * groups]``), or None: 1. Everything is flat. A call does a range of rows, or of groups and
columns, so that threads can do ranges beside each other. A number is always added in the same
order, so ranges change no bit of any result.

The loops are products of a sparse and a dense matrix, row by row (Gustavson 1978). They wait for
memory: what they compute is two instructions per vector. So three things make them fast: rows are
asked for before they are needed, sums stay in registers over the edges of a row, and rows with many
edges are done in blocks of edges, so that the second half of a row is still in the cache.
"""

# What is not good yet:
# - ``sum_rows`` is long, because helpers that take arrays cost time (see its first comment). The
#   four loops over columns differ only in the number of lanes.
# - How far ahead rows are asked for (``prefetch_distance``) goes by the count of numbers: it is
#   the same for words of 16 bits as for numbers of 64.
# - ``add_rows`` reads and writes the row of a source for every edge. Sorting would save this
#   where sources have many edges; ``ops/_compiled.py`` decides by sizes alone.
# - Threads get as many edges each, but a row is done by one, however many edges it has.

import numpy as np
from numba import njit, types
from numba.extending import overload

from nodeflow._kernels.instructions import LINE, prefetch
from nodeflow._kernels.loops import loop
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import (
    HALF,
    LANES,
    WIDE,
    add,
    div,
    fence,
    load,
    load_half,
    mul_add,
    put,
    splat,
    splat_half,
    splat_wide,
    store,
    total,
)

BLOCK = 32
"""Edges of a row that are summed in all columns before the next edges are read.

64 columns are summed at a time. The other columns of a row with many edges would have left the
cache meanwhile.
"""


@njit
def prefetch_distance(size):
    """Return how many edges ahead rows of ``size`` numbers are prefetched: more for narrower
    rows.
    """
    return max(8, min(32, 1024 // size))


@njit
def row_of(indices, e):
    """Return the row that edge ``e`` reads: without indices, its own."""
    return e if indices is None else np.int64(indices[U64(e)])


@njit
def weight_of(weight, edges, e, groups, group):
    """Return the weight of edge ``edges[e]`` (without ``edges``: of e) for a group; without
    ``weight``, 1.
    """
    return 1 if weight is None else weight[U64(row_of(edges, e) * groups + group)]


@njit
def prefetch_row(x, begin, count):
    """Prefetch ``x[begin : begin + count]``, but for a last line that the row only begins."""
    c = 0
    step = LINE // x.itemsize
    while c < count:  # a range with a step would divide
        prefetch(x, begin + c)
        c += step


@njit
def copy_row(x, begin, out, to, count):
    """Write ``out[to : to + count] = x[begin : begin + count]``."""
    c = 0
    while c + LANES <= count:
        store(out, to + c, LANES, load(x, begin + c, LANES))
        c += LANES
    if c < count:
        store(out, to + c, count - c, load(x, begin + c, count - c))


def held_sums(out, size):
    """Return the array that accumulates a row: ``out``, or float32 if ``out`` holds words, which
    would round.
    """
    return out if out.dtype.kind == "f" else np.empty(size, np.float32)


@overload(held_sums)
def _held_sums(out, size):
    if isinstance(out.dtype, types.Float):
        return lambda out, size: out
    return lambda out, size: np.empty(size, np.float32)


@loop
def sum_rows(
    indptr,
    indices,
    edges,
    rows,
    x,
    stride,
    weight,
    groups,
    width,
    mean,
    own,
    streamed,
    out,
    first,
    last,
):
    """Write ``out[i] = sum of weight[e] * x[indices[e]]`` over the edges e of row i, for
    ``first <= i < last``.

    Arguments that may be None are left out of the compiled code, which is made once per
    combination:

    - ``indices``: the rows of ``x`` that edges read; None: edge e reads row e.
    - ``edges``: edge e has the weight of edge ``edges[e]``; None: its own.
    - ``rows``: row i has the edges of row ``rows[i]`` of ``indptr``, in any order; None: of row i.
    - ``weight``: None: 1.

    Rows of ``x`` begin ``stride`` numbers after one another. Words (uint16, int16) are read as in
    ``simd.load``. Where ``out`` holds words (uint16), sums are made in float32 and rounded once.

    With ``mean`` a sum is divided by the number of its edges. With ``own`` the rows of ``out`` are
    twice as long, and row i of ``x`` comes before the sum. With ``streamed`` sums are written past
    the caches, which needs a ``width`` of whole vectors and an ``out`` that begins a line of 64
    bytes.

    Edges are added one after another, in their order.
    """
    # One function for all of it: parts that take arrays as arguments count references to them once
    # per row, inlined or not, which took 12 to 25 % more time.
    size = groups * width
    sums = held_sums(out, size)
    words = out.dtype.type(0.5) == 0  # integers; known when compiled
    number = sums.dtype.type
    before = size if own else 0
    ahead = prefetch_distance(size)
    end = np.int64(indptr[U64(last)] if rows is None else 0)
    zero = splat(number(0))
    half = splat_half(number(0))
    for i in range(first, last):
        v = np.int64(i if rows is None else rows[U64(i)])
        if rows is not None:
            # Edges of listed rows are not contiguous, so each lookup is prefetched in turn:
            # ``indptr`` 16 rows ahead, the edges 8 rows ahead, and the rows of x 3 rows ahead.
            if i + 16 < last:
                prefetch(indptr, np.int64(rows[U64(i + 16)]))
            if i + 8 < last:
                later = np.int64(indptr[U64(rows[U64(i + 8)])])
                prefetch(indices, later)
                if weight is not None:
                    prefetch(weight, later)
            if i + 3 < last:  # rows may be short
                later = np.int64(rows[U64(i + 3)])
                start = np.int64(indptr[U64(later)])
                stop = np.int64(indptr[U64(later + 1)])
                for e in range(start, min(start + BLOCK, stop)):
                    prefetch_row(x, np.int64(indices[U64(e)]) * stride, size)
        a = np.int64(indptr[U64(v)])
        b = np.int64(indptr[U64(v + 1)])
        degree = number(max(b - a, 1))
        to = i * (before + size)
        copy_row(x, v * stride, out, to, before)
        to += before
        base = 0 if words else to
        p = a
        while True:  # once for a row without edges
            q = min(p + BLOCK, b)
            begun = p > a
            divided = mean and q == b
            streams = streamed and q == b
            if rows is None:
                # The edges of the next rows follow in memory, so the prefetches run ahead across
                # rows.
                for e in range(min(p + ahead, end), min(q + ahead, end)):
                    if indices is not None:
                        prefetch_row(x, np.int64(indices[U64(e)]) * stride, size)
                    if edges is not None:
                        prefetch(weight, edges[U64(e)] * groups)
            else:
                for e in range(q, min(q + BLOCK, b)):
                    prefetch_row(x, np.int64(indices[U64(e)]) * stride, size)
            for group in range(groups):
                at = group * width
                c = 0
                # 64 columns at a time: the additions of their four vectors do not wait for each
                # other, and they share the look-up of the edge's row and weight.
                while c + WIDE <= width:
                    o = base + at + c
                    wide = load(sums, o, WIDE) if begun else splat_wide(number(0))
                    for e in range(p, q):
                        j = row_of(indices, e) * stride + at + c
                        factor = splat_wide(number(weight_of(weight, edges, e, groups, group)))
                        wide = mul_add(factor, load(x, j, WIDE), wide)
                    put(sums, o, div(wide, splat_wide(degree)) if divided else wide, streams)
                    c += WIDE
                # One vector at a time.
                while c + LANES <= width:
                    o = base + at + c
                    s0 = load(sums, o, LANES) if begun else zero
                    for e in range(p, q):
                        j = row_of(indices, e) * stride + at + c
                        w = splat(number(weight_of(weight, edges, e, groups, group)))
                        s0 = mul_add(w, load(x, j, LANES), s0)
                    put(sums, o, div(s0, splat(degree)) if divided else s0, streams)
                    c += LANES
                # The remaining columns fill half a vector, a part of one, or both.
                if c + HALF <= width:
                    o = base + at + c
                    h0 = load(sums, o, HALF) if begun else half
                    for e in range(p, q):
                        j = row_of(indices, e) * stride + at + c
                        h = splat_half(number(weight_of(weight, edges, e, groups, group)))
                        h0 = mul_add(h, load(x, j, HALF), h0)
                    store(sums, o, HALF, div(h0, splat_half(degree)) if divided else h0)
                    c += HALF
                if c < width:
                    n = width - c
                    o = base + at + c
                    h0 = load_half(sums, o, n) if begun else half
                    for e in range(p, q):
                        j = row_of(indices, e) * stride + at + c
                        h = splat_half(number(weight_of(weight, edges, e, groups, group)))
                        h0 = mul_add(h, load_half(x, j, n), h0)
                    store(sums, o, n, div(h0, splat_half(degree)) if divided else h0)
            if q == b:
                break
            p = q
        if words:
            copy_row(sums, 0, out, to, size)
    if streamed:
        fence()


@loop
def add_rows(indptr, indices, g, weight, groups, width, out, group_range, column_range):
    """Add ``weight[e] * g[v]`` to ``out[indices[e]]`` for all edges e into v.

    These are the sums over the edges that leave each source, in the same order as after sorting the
    edges by source.

    A call does the columns in ``column_range`` of the groups in ``group_range``, pairs of first and
    last.
    """
    size = groups * width
    end = indptr[indptr.shape[0] - 1]
    ahead = prefetch_distance(size)
    unit = g.dtype.type(1)
    first, last = column_range
    lowest = group_range[0] * width + first
    count = (group_range[1] - group_range[0] - 1) * width + last - first
    for v in range(indptr.shape[0] - 1):
        for e in range(indptr[U64(v)], indptr[U64(v + 1)]):
            if e + ahead < end:
                prefetch_row(out, indices[U64(e + ahead)] * size + lowest, count)
            for group in range(group_range[0], group_range[1]):
                number = unit if weight is None else weight[U64(e * groups + group)]
                w = splat(number)
                i = v * size + group * width
                o = indices[U64(e)] * size + group * width
                c = first
                while c + LANES <= last:
                    store(
                        out,
                        o + c,
                        LANES,
                        mul_add(w, load(g, i + c, LANES), load(out, o + c, LANES)),
                    )
                    c += LANES
                if c + HALF <= last:
                    h = splat_half(number)
                    store(
                        out, o + c, HALF, mul_add(h, load(g, i + c, HALF), load(out, o + c, HALF))
                    )
                    c += HALF
                if c < last:
                    n = last - c
                    store(out, o + c, n, mul_add(w, load(g, i + c, n), load(out, o + c, n)))


@loop
def edge_dots(indptr, indices, a, b, groups, width, out, first, last):
    """Write to ``out[e, group]`` the dot product of that group of ``a[v]`` and ``b[indices[e]]``,
    for edges e into v.

    A call does the rows ``first <= v < last``.
    """
    size = groups * width
    end = indptr[U64(last)]
    ahead = prefetch_distance(size)
    nothing = a.dtype.type(0)
    for v in range(first, last):
        for e in range(indptr[U64(v)], indptr[U64(v + 1)]):
            if e + ahead < end:
                prefetch_row(b, indices[U64(e + ahead)] * size, size)
            for group in range(groups):
                i = v * size + group * width
                j = indices[U64(e)] * size + group * width
                s0 = splat(nothing)
                s1 = splat(nothing)
                h0 = splat_half(nothing)
                c = 0
                while c + 2 * LANES <= width:
                    s0 = mul_add(load(a, i + c, LANES), load(b, j + c, LANES), s0)
                    s1 = mul_add(load(a, i + c + LANES, LANES), load(b, j + c + LANES, LANES), s1)
                    c += 2 * LANES
                if c + LANES <= width:
                    s0 = mul_add(load(a, i + c, LANES), load(b, j + c, LANES), s0)
                    c += LANES
                if c + HALF <= width:
                    h0 = mul_add(load(a, i + c, HALF), load(b, j + c, HALF), h0)
                    c += HALF
                if c < width:
                    s1 = mul_add(load(a, i + c, width - c), load(b, j + c, width - c), s1)
                dot = total(h0)
                if width >= LANES or width % HALF > 0:
                    dot += total(add(s0, s1))
                out[U64(e * groups + group)] = dot
