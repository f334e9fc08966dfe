"""Weighted sums of rows over the edges of a CSR structure, by destination or by source, and their weights' gradients.

A row has ``groups * width`` numbers, and an edge one weight per group (``weight`` is ``[edges * groups]``), or none:
then ``weight`` is empty. Everything is flat. Kernels do a range of rows, or of groups and columns, so that ranges can
run beside each other; a number is always added in the same order, so ranges change no bit of any result.
"""

from __future__ import annotations

from numba import njit

from nodeflow._kernels.prefetch import prefetch
from nodeflow._kernels.rng import U64
from nodeflow._kernels.simd import HALF, LANES, add, div, fence, load, mul_add, splat, splat_half, store, stream, total

_LINE = 64  # bytes that the processor fetches at once


@njit(inline="always")
def distance(size):
    """Return how many edges before it is read a row of ``size`` numbers is asked for: the narrower, the more."""
    return max(8, min(32, 1024 // size))


@njit(inline="always")
def row_of(indices, e):
    """Return the row that edge ``e`` reads: without indices, its own."""
    return indices[U64(e)] if indices.shape[0] > 0 else e


@njit(inline="always")
def ask(x, begin, count):
    """Ask for ``x[begin : begin + count]``."""
    c, step = 0, _LINE // x.itemsize
    while c < count:  # a range with a step would divide
        prefetch(x, begin + c)
        c += step


@njit(inline="always")
def copy_row(x, begin, out, to, count):
    """Write ``out[to : to + count] = x[begin : begin + count]``."""
    c = 0
    while c + LANES <= count:
        store(out, to + c, LANES, load(x, begin + c, LANES))
        c += LANES
    if c < count:
        store(out, to + c, count - c, load(x, begin + c, count - c))


@njit(inline="always")
def put(out, at, vector, past):
    """Write a whole vector, into the caches or past them."""
    if past:
        stream(out, at, vector)
    else:
        store(out, at, LANES, vector)


@njit(nogil=True, cache=True)
def sum_rows(indptr, indices, edges, x, weight, groups, width, mean, own, past, out, first, last):
    """Write ``out[v] = sum of weight[e] * x[indices[e]]`` for the rows ``first <= v < last``, divided by their edges.

    Edge e of the structure has the weight of edge ``edges[e]`` (without ``edges``: of e); divided only with ``mean``.
    With ``own`` the rows of ``out`` are twice as long: ``x[v]`` comes before the sum. With ``past`` they are written
    past the caches, for a ``width`` of whole vectors, and ``out`` that begins a line of 64 bytes.
    """
    weighted, size, end = weight.shape[0] > 0, groups * width, indptr[U64(last)]
    before = size if own else 0
    ahead = distance(size)
    unit = x.dtype.type(1)
    zero, one, half = splat(unit - unit), splat(unit), splat_half(unit - unit)
    for v in range(first, last):
        a, b = indptr[U64(v)], indptr[U64(v + 1)]
        for e in range(min(a + ahead, end), min(b + ahead, end)):
            if indices.shape[0] > 0:
                ask(x, indices[U64(e)] * size, size)
            if weighted and edges.shape[0] > 0:
                prefetch(weight, edges[U64(e)] * groups)
        degree = x.dtype.type(max(b - a, 1))
        by = splat(degree)
        to = v * (before + size)
        copy_row(x, v * size, out, to, before)
        to += before
        for group in range(groups):
            at, c = group * width, 0
            while c + 4 * LANES <= width:
                s0, s1, s2, s3 = zero, zero, zero, zero
                for e in range(a, b):
                    i = row_of(indices, e) * size + at + c
                    w = splat(weight[U64(row_of(edges, e) * groups + group)]) if weighted else one
                    s0 = mul_add(w, load(x, i, LANES), s0)
                    s1 = mul_add(w, load(x, i + LANES, LANES), s1)
                    s2 = mul_add(w, load(x, i + 2 * LANES, LANES), s2)
                    s3 = mul_add(w, load(x, i + 3 * LANES, LANES), s3)
                if mean:
                    s0, s1, s2, s3 = div(s0, by), div(s1, by), div(s2, by), div(s3, by)
                o = to + at + c
                put(out, o, s0, past)
                put(out, o + LANES, s1, past)
                put(out, o + 2 * LANES, s2, past)
                put(out, o + 3 * LANES, s3, past)
                c += 4 * LANES
            while c + LANES <= width:
                s0 = zero
                for e in range(a, b):
                    w = splat(weight[U64(row_of(edges, e) * groups + group)]) if weighted else one
                    s0 = mul_add(w, load(x, row_of(indices, e) * size + at + c, LANES), s0)
                put(out, to + at + c, div(s0, by) if mean else s0, past)
                c += LANES
            if c + HALF <= width:
                h0 = half
                for e in range(a, b):
                    w = splat_half(weight[U64(row_of(edges, e) * groups + group)] if weighted else unit)
                    h0 = mul_add(w, load(x, row_of(indices, e) * size + at + c, HALF), h0)
                store(out, to + at + c, HALF, div(h0, splat_half(degree)) if mean else h0)
                c += HALF
            if c < width:
                n, s0 = width - c, zero
                for e in range(a, b):
                    w = splat(weight[U64(row_of(edges, e) * groups + group)]) if weighted else one
                    s0 = mul_add(w, load(x, row_of(indices, e) * size + at + c, n), s0)
                store(out, to + at + c, n, div(s0, by) if mean else s0)
    if past:
        fence()


@njit(nogil=True, cache=True)
def add_rows(indptr, indices, g, weight, groups, width, out, group_range, column_range):
    """Add ``weight[e] * g[v]`` to ``out[indices[e]]`` for all edges e into v: what transposed rows sum, without them.

    Of every row it does the columns in ``column_range`` of the groups in ``group_range``, pairs of first and last.
    """
    weighted, size, end = weight.shape[0] > 0, groups * width, indptr[indptr.shape[0] - 1]
    ahead = distance(size)
    unit, (first, last) = g.dtype.type(1), column_range
    lowest, count = group_range[0] * width + first, (group_range[1] - group_range[0] - 1) * width + last - first
    for v in range(indptr.shape[0] - 1):
        for e in range(indptr[U64(v)], indptr[U64(v + 1)]):
            if e + ahead < end:
                ask(out, indices[U64(e + ahead)] * size + lowest, count)
            for group in range(group_range[0], group_range[1]):
                number = weight[U64(e * groups + group)] if weighted else unit
                w, i, o = splat(number), v * size + group * width, indices[U64(e)] * size + group * width
                c = first
                while c + LANES <= last:
                    store(out, o + c, LANES, mul_add(w, load(g, i + c, LANES), load(out, o + c, LANES)))
                    c += LANES
                if c + HALF <= last:
                    h = splat_half(number)
                    store(out, o + c, HALF, mul_add(h, load(g, i + c, HALF), load(out, o + c, HALF)))
                    c += HALF
                if c < last:
                    n = last - c
                    store(out, o + c, n, mul_add(w, load(g, i + c, n), load(out, o + c, n)))


@njit(nogil=True, cache=True)
def edge_dots(indptr, indices, a, b, groups, width, out, first, last):
    """Write ``out[e, group]``, the dot product of that group of ``a[v]`` and ``b[indices[e]]``, for edges e into v.

    For the rows ``first <= v < last``.
    """
    size, end = groups * width, indptr[U64(last)]
    ahead = distance(size)
    nothing = a.dtype.type(0)
    for v in range(first, last):
        for e in range(indptr[U64(v)], indptr[U64(v + 1)]):
            if e + ahead < end:
                ask(b, indices[U64(e + ahead)] * size, size)
            for group in range(groups):
                i, j = v * size + group * width, indices[U64(e)] * size + group * width
                s0, s1, h0, c = splat(nothing), splat(nothing), splat_half(nothing), 0
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
                found = total(h0)
                if width >= LANES or width % HALF > 0:
                    found += total(add(s0, s1))
                out[U64(e * groups + group)] = found
